from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gfm.extract.extraction import Extraction
from gfm.graph.linker import TitleLinker
from gfm.index import store
from gfm.index.builder import build_index
from gfm.index.carry import carry
from gfm.index.content import Content, read_content
from gfm.text.encoder import HashingEncoder
from gfm.types import Passage
from tests.index.fakes import Capitals, document


def passage(identifier: str, text: str, title: str = "") -> Passage:
    return Passage(identifier, identifier, title, text, 0, len(text))


OLD = [
    ("a", "Nobody is named here.", ""),
    ("b", "He went to the old tarn mill by night.", "Tarn Mill"),
    ("c", "An old mill stood by the Tarn.", ""),
    ("d", "Mercury has no moon.", "Mercury (planet)"),
    ("e", "It has no moon.", "Mercury (planet)"),
    ("f", "She met X-Orla.", "X"),
]


@pytest.fixture
def old(tmp_path: Path) -> Content:
    documents = [document(*row) for row in OLD]
    build_index(documents, tmp_path / "i", HashingEncoder(16), [Stated()])
    return read_content(tmp_path / "i" / store.current(tmp_path / "i"))


class Stated(Capitals):
    """Also states a triple whose names do not stand in the text."""

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        stated = ("C++", "extends", "<i>Simula</i>")
        made = super().extract(passages)
        return [replace(x, triples=(stated,)) if "Nobody" in p.text else x for p, x in zip(passages, made, strict=True)]


def carried(old: Content, passages: list[Passage], given: Sequence[str] = ()) -> tuple[list[int], list[int]]:
    linker = TitleLinker(p.title for p in passages)
    same, said = carry(old, passages, given, linker)
    return same.tolist(), said.tolist()


def with_title(title: str) -> list[Passage]:
    return sorted([*(passage(*row) for row in OLD), passage("bb", "New.", title)], key=lambda p: p.id)


PLACES = [0, 1, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("title", "again"),
    [
        ("", ""),
        ("Lake Town", ""),
        ("Old Mill", "c"),  # its words stand together there, and in b they do not
        ("Moon", "de"),
        ("Mercury (god)", "de"),  # a new namesake; e shows its title
        ("Orla", "f"),
        ("C++", "a"),  # only given
        ("Simula (language)", "a"),
        ("Tarn Mill (lake)", "b"),
    ],
)
def test_what_a_new_title_may_be_named_by_is_read_again(old: Content, title: str, again: str) -> None:
    same, said = carried(old, with_title(title))
    assert same == PLACES
    assert "".join(OLD[i][0] for i, place in enumerate(said) if place < 0) == again
    assert [place for place in said if place >= 0] == [
        place for (name, *_), place in zip(OLD, PLACES, strict=True) if name not in again
    ]


def test_a_title_that_goes_does_the_same(old: Content) -> None:
    same, said = carried(old, [passage(*row) for row in OLD if row[0] != "b"])
    assert same == [0, -1, 1, 2, 3, 4]
    assert said == same  # no other passage names the mill in one piece
    same, said = carried(old, [passage(*row) for row in OLD if row[0] != "d"])
    assert said == same  # e has the title still


def test_new_text(old: Content) -> None:
    passages = [passage(*row) for row in OLD]
    passages[2] = passage("c", "Another text.")
    assert carried(old, passages) == ([0, 1, -1, 3, 4, 5],) * 2


def test_where_anything_is_given_all_is_read_again(old: Content) -> None:
    passages = [passage(*row) for row in OLD]
    assert carried(old, passages, ["[]"]) == ([0, 1, 2, 3, 4, 5], [-1] * 6)
    assert carried(replace(old, given=["[]"]), passages) == ([0, 1, 2, 3, 4, 5], [-1] * 6)


def test_nothing_old(old: Content) -> None:
    assert carried(Content(), [passage("a", "Text.", "Title")], []) == ([], [])
