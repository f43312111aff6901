"""The page as text: nothing of the data is markup, nothing is loaded, and its colours can be read."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gfm.viewer.page import page

FOLDER = Path(__file__).resolve().parents[2] / "gfm" / "viewer" / "page"


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside].append(data)


@pytest.fixture(scope="module")
def text(hostile: dict[str, Any]) -> str:
    return page(hostile)


@pytest.fixture(scope="module")
def tags(text: str) -> Tags:
    return Tags(text)


def test_the_tags_are_those_of_the_template_whatever_the_data(tags: Tags) -> None:
    template = Tags((FOLDER / "page.html").read_text(encoding="utf-8"))
    assert [tag for tag, _ in tags.tags] == [tag for tag, _ in template.tags]
    assert not {"img", "link", "iframe", "object", "embed", "base", "form", "svg"} & {tag for tag, _ in tags.tags}


def test_no_attribute_runs_or_loads_anything(tags: Tags) -> None:
    names = {name for _, attributes in tags.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "action", "style", "srcset")]
    assert [a["href"] for _, a in tags.tags if "href" in a] == ["#passages"]


def test_the_data_survive_and_hold_no_sign_of_markup(text: str, tags: Tags, hostile: dict[str, Any]) -> None:
    data, _ = tags.raw["script"]
    assert data.isascii()
    assert not set("<>&") & set(data)
    read = json.loads(data)
    assert read["graph"] == json.loads(json.dumps(hostile["graph"]))
    assert read["query"] == hostile["query"]
    assert "window.hacked" in read["graph"]["texts"]["evil"]["text"]
    assert tags.raw["title"] == [f"{hostile['query']['text']} (gfm explain)"]


def test_the_policy_allows_the_script_and_style_of_the_page_alone(tags: Tags) -> None:
    (policy,) = [a["content"] for _, a in tags.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    hashes = [
        base64.b64encode(hashlib.sha256(part.encode("utf-8")).digest()).decode()
        for part in (tags.raw["script"][1], tags.raw["style"][0])
    ]
    assert f"script-src 'sha256-{hashes[0]}'" in policy
    assert f"style-src 'sha256-{hashes[1]}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_scripts_name_no_address_and_set_no_markup() -> None:
    scripts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js")}
    assert len(scripts) == 7
    wrong = re.compile(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|fetch\(|import\(|XMLHttp"
    )
    assert {name: wrong.findall(text) for name, text in scripts.items() if wrong.search(text)} == {}
    addresses = {m for text in scripts.values() for m in re.findall(r"https?://[^\"' ]+", text)}
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace


def test_the_same_explanation_gives_the_same_page(text: str, hostile: dict[str, Any]) -> None:
    assert page(hostile) == text


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("front", "back"),
    [
        ("ink", "paper"),
        ("quiet", "paper"),
        ("quiet", "panel"),
        ("quiet", "band-b"),
        ("path", "paper"),
        ("ink", "sentence"),
        ("ink", "name"),
        ("on-mark", "passage-high"),
        ("ink", "passage-low"),
    ],
)
def test_text_can_be_read_in_both_themes(front: str, back: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 at least."""
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", style)
    themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert len(themes) == 3
    assert themes[1] == themes[2]  # dark by the system, and dark by the button
    for theme in themes:
        light, dark = sorted((luminance(theme[front]), luminance(theme[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
