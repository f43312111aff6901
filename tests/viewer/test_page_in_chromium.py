"""The page in a real browser, offline: what is seen, what the keyboard does, what a screen reader is told.

Needs Debian's Chromium: ``apt-get install chromium``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.viewer.page import page

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium"),
]
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(hostile: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("page")
    pages = {"hostile": hostile, "large": large(), "empty": empty(hostile)}
    for name, explained in pages.items():
        (folder / f"{name}.html").write_text(page(explained), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def opened(browser: Any, written: dict[str, Path]) -> Iterator[Open]:
    """Opens a page; whatever it asks of the network or complains about fails the test."""
    contexts, wrong = [], []

    def open_page(name: str = "hostile", width: int = 1280, height: int = 800, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(15_000)
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        tab.goto(written[name].as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def until(tab: Any, expression: str) -> None:
    """Wait for frames until an expression holds; the page's policy forbids what Playwright's own waiting does."""
    frames = f"(async () => {{ while (!({expression})) await new Promise(requestAnimationFrame); return true; }})()"
    assert tab.evaluate(frames)


def large() -> dict[str, Any]:
    """An explanation of 700 nodes and 1,500 links, 200 nodes kept, drawn at random."""
    rng = np.random.default_rng(3)
    names = [
        " ".join(rng.choice(["Tarn", "Mill", "Orla", "Venn", "Port", "Isk"], rng.integers(1, 4))) for _ in range(700)
    ]
    nodes: list[dict[str, Any]] = [
        {"id": f"n{i}", "name": f"{name} {i}", "score": float(rng.random() ** 3), "kept": i % 7 < 2}
        for i, name in enumerate(names)
    ]
    for i, node in enumerate(nodes):
        node |= {"kind": "entity", "hop": int(rng.integers(0, 3))} if i < 500 else {"kind": "passage", "kept": i < 560}
    ends = rng.integers(0, 500, (1500, 2)).tolist()
    links: list[dict[str, Any]] = [
        {"source": a, "target": b, "kind": "fact", "relation": "knows", "fact": 0, "score": 0.1}
        | {"kept": bool(nodes[a]["kept"] and nodes[b]["kept"])}
        for a, b in ends
        if a != b
    ]
    links.append({"source": 500, "target": 0, "kind": "mention", "spans": [], "kept": True})
    texts = {n["id"]: {"title": n["name"], "document_id": n["id"], "text": "Some words."} for n in nodes[500:]}
    hit = {"id": "n500", "rank": 1, "score": 0.5, "text": "Some words."}
    graph = {"nodes": nodes, "links": links, "facts": [{"text": "A knows B.", "passages": ["n500"], "spans": {}}]}
    trace = {"retriever": "gfm", "reach": "all", "nodes": 700, "edges": 3000, "kept_nodes": 200, "kept_edges": 100}
    return {
        "query": {"text": "Who knows whom?"},
        "score_unit": "relevance",
        "passages": [hit],
        "trace": {**trace, "pruned_nodes": 500, "pruned_edges": 2900, "start_entities": 9, "hubs": 0, "fallback": None},
        "seconds": {"network": 0.01},
        "graph": {**graph, "paths": {"n500": [(len(links) - 1, False)]}, "texts": texts},
        "against": None,
    }


def empty(hostile: dict[str, Any]) -> dict[str, Any]:
    """An explanation in which nothing was found."""
    graph: dict[str, Any] = {"nodes": [], "links": [], "facts": [], "paths": {}, "texts": {}}
    return {**hostile, "passages": [], "graph": graph, "against": None}


def test_markup_in_the_data_is_only_text(opened: Open, hostile: dict[str, Any]) -> None:
    tab = opened()
    assert tab.evaluate("window.hacked") is None
    assert tab.text_content("h1") == hostile["query"]["text"]
    tab.click('.hit[data-passage="evil"]')
    assert tab.text_content("#detail .text") == hostile["graph"]["texts"]["evil"]["text"]
    tab.click("#node-table summary")
    tab.check("#node-table input[type=checkbox]")
    tab.click("#fact-table summary")
    assert tab.locator("#fact-table tbody tr").count() == 4
    assert tab.evaluate("document.querySelectorAll('img, script:not(#data), svg svg, b b').length") == 1
    assert tab.evaluate("window.hacked") is None


def test_the_first_view_is_the_best_passage_and_its_path(opened: Open, hostile: dict[str, Any]) -> None:
    tab, best = opened(), hostile["passages"][0]
    title = hostile["graph"]["texts"][best["id"]]["title"] or best["id"]
    assert tab.text_content("#detail-title") == title
    assert tab.get_attribute(".hit >> nth=0", "aria-current") == "true"
    steps = [text.strip() for text in tab.locator("#detail .path .open:not(.quote)").all_text_contents()]
    path = hostile["paths"][best["id"]]
    assert steps == [path[0]["source"], *(s["target"] for s in path[:-1]), title]
    assert tab.evaluate("pathNodes(view.path).every((i) => nodes[i].kept)")
    assert tab.evaluate("document.activeElement === document.body")  # nothing takes the focus by itself


def test_a_fact_shows_its_sentence_and_the_passage_with_the_words_marked(opened: Open) -> None:
    """The marks stand after two rockets, which JavaScript counts as four units."""
    tab = opened()
    tab.click('.hit[data-passage="evil"]')
    tab.locator("#detail .facts .quote", has_text="Tarn Mill").first.click()
    assert "Tarn Mill" in tab.text_content("#detail blockquote")
    marks = tab.locator("#detail mark").all_text_contents()
    assert marks == ["Tarn Mill", "Orla Venn"]
    assert tab.evaluate("view.selected.link != null")


def test_a_click_on_a_node_opens_it(opened: Open) -> None:
    tab = opened()
    number = tab.evaluate("nodes.findIndex((node) => node.name === 'Port Isk' && node.kind === 'entity')")
    x, y = tab.evaluate(f"view.at({number})")
    tab.click("#canvas", position={"x": x, "y": y})
    assert tab.text_content("#detail-title") == "Port Isk"
    assert "born in" in tab.text_content("#detail .facts")


def test_the_keyboard_goes_everywhere_and_comes_back(opened: Open) -> None:
    tab = opened()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.focus("#canvas")
    seen = set()
    for key in ["ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"] * 3:
        tab.keyboard.press(key)
        seen.add(tab.text_content("#live"))
    assert len(seen) >= 3
    assert all(", score " in text for text in seen)
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "detail-title"
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.activeElement.id") == "canvas"
    before = tab.evaluate("view.view.zoom")
    tab.keyboard.press("+")
    until(tab, f"view.view.zoom > 1.3 * {before}")
    tab.focus(".hit >> nth=1")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "detail-title"
    assert tab.get_attribute(".hit >> nth=1", "aria-current") == "true"


def test_focus_can_be_seen(opened: Open) -> None:
    tab = opened()
    for _ in range(4):
        tab.keyboard.press("Tab")
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_screen_reader_is_told_all_of_it(opened: Open, hostile: dict[str, Any]) -> None:
    tab = opened()
    assert tab.get_by_role("main").count() == 1
    for name in ("Passages by relevance", "Candidate graph", "Details", "Trace", "The graph in words"):
        assert tab.get_by_role("region", name=name, exact=True).count() == 1, name
    assert tab.get_by_role("list").first.get_by_role("listitem").count() == len(hostile["passages"])
    assert tab.get_by_role("application", name="Candidate graph: ").count() == 1
    tab.click("#node-table summary")
    kept = [n for n in hostile["graph"]["nodes"] if n["kept"]]
    table = tab.get_by_role("table").first
    assert table.get_by_role("rowheader").count() == len(kept)
    tab.check("#node-table input[type=checkbox]")
    assert table.get_by_role("rowheader").count() == len(hostile["graph"]["nodes"])
    tab.fill("#node-table input[type=search]", "port isk")
    assert table.get_by_role("rowheader").all_text_contents() == ["Port Isk"]
    assert tab.evaluate(
        "[...document.querySelectorAll('button, input')].every((e) => e.innerText || e.labels?.length || e.ariaLabel)"
    )


def test_what_was_cut_is_faded_and_can_be_hidden(opened: Open) -> None:
    tab = opened()
    cut = tab.evaluate("nodes.findIndex((node) => !node.kept)")
    picture = "(view.draw(), view.canvas.toDataURL())"
    shown = tab.evaluate(picture)
    assert tab.get_by_label("Show 2 cut").is_checked()
    tab.uncheck("#pruned")
    assert tab.evaluate(picture) != shown
    assert not tab.evaluate(f"view.visible({cut})")


def test_light_and_dark_by_the_system_and_by_the_button(opened: Open) -> None:
    tab = opened(color_scheme="dark")
    ground = "[getComputedStyle(document.body).backgroundColor, view.colour.paper]"
    assert tab.evaluate(ground) == ["rgb(20, 23, 27)", "#14171b"]
    tab.click("#theme")
    assert tab.text_content("#theme") == "Theme: light"
    assert tab.evaluate(ground) == ["rgb(252, 251, 248)", "#fcfbf8"]
    tab.click("#theme")
    assert tab.evaluate(ground) == ["rgb(20, 23, 27)", "#14171b"]


def test_nothing_glides_where_motion_is_not_wanted(opened: Open) -> None:
    tab = opened(reduced_motion="reduce")
    steps = """(async () => {
        let drawn = 0;
        const draw = view.draw.bind(view);
        view.draw = () => { drawn++; draw(); };
        zoomBy(view, 2);
        for (let frame = 0; frame < 20; frame++) await new Promise(requestAnimationFrame);
        return [drawn, view.view.zoom];
    })()"""
    assert tab.evaluate(steps) == [1, 2]


@pytest.mark.parametrize("width", [320, 390, 800])
def test_nothing_is_wider_than_the_screen(opened: Open, width: int) -> None:
    tab = opened(width=width)
    tab.click("#fact-table summary")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    box = tab.locator("#canvas").bounding_box()
    assert box["width"] > 250
    assert box["height"] > 250


def test_700_nodes_are_all_drawn_and_no_label_covers_another(opened: Open) -> None:
    tab = opened("large", width=1440, height=900)
    found = tab.evaluate(
        """(() => {
          const boxes = [], [text, drawNode] = [view.text.bind(view), view.drawNode.bind(view)];
          view.text = (word, x, y, style) => {
            text(word, x, y, style);
            const width = view.pen.measureText(word).width;
            const left = x - (style.align === "center" ? width / 2 : 0);
            if (style.halo) boxes.push([left, y - style.size / 2, left + width, y + style.size / 2]);
          };
          let drawn = 0;
          view.drawNode = (...all) => { drawn++; drawNode(...all); };
          view.draw();
          const covered = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => overlap(a, b)));
          const kept = nodes.filter((node) => node.kept).length;
          return { labels: boxes.length, covered: covered.length, drawn, kept };
        })()"""
    )
    assert found["covered"] == 0
    assert found["labels"] > 15
    assert found["drawn"] == found["kept"] > 150


def test_another_retriever_stands_beside(opened: Open, hostile: dict[str, Any]) -> None:
    tab = opened()
    assert tab.text_content("#beside-title") == "The same question, gfm and bm25"
    columns = tab.locator("#slopes ol")
    assert [columns.nth(k).locator("li").count() for k in (0, 1)] == [3, len(hostile["against"]["passages"])]
    both = {hit["id"] for hit in hostile["passages"]} & {hit["id"] for hit in hostile["against"]["passages"]}
    until(tab, f"document.querySelectorAll('#slopes path').length === {len(both)}")


def test_a_page_of_nothing_still_stands(opened: Open) -> None:
    tab = opened("empty")
    assert tab.text_content("#passages .none") == "No passage was found."
    tab.focus("#canvas")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Enter")
    assert not tab.is_visible("#beside")
