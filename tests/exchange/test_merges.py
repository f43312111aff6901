from __future__ import annotations

from pathlib import Path

import pytest

from gfm.exchange.merges import Merge, merges_of
from gfm.index.index import GraphIndex


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Names in several spellings, with a bracket, and under an alias."""
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "p1", "title": "Mercury (planet)", "text": "x"}\n{"_id": "p2", "text": "y"}\n', encoding="utf-8"
    )
    rows = [("Mercury", "orbits", "Sun"), ("TARN MILL", "near", "Tarn Mill Pond"), ("Tarn Mill", "near", "IBM")]
    lines = [f'{{"head": "{h}", "relation": "{r}", "tail": "{t}", "passage_id": "p2"}}\n' for h, r, t in rows]
    (tmp_path / "triples.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def build(corpus: Path, aliases: Path | None = None) -> GraphIndex:
    triples = corpus / "triples.jsonl"
    return GraphIndex.build(
        corpus / "corpus.jsonl", corpus / "index", encoder="hashing:16", triples=triples, aliases=aliases
    )


def test_merges_are_listed_with_their_reason(corpus: Path) -> None:
    assert merges_of(build(corpus)) == [
        Merge("mercury (planet)", "Mercury", "bracket", {"Mercury (planet)": 1}),
        Merge("tarn mill", "Tarn Mill", "spelling", {"TARN MILL": 1}),
    ]


@pytest.mark.parametrize("name", ["aliases.csv", "aliases.jsonl"])
def test_aliases_merge_and_go_when_the_index_is_built_without_them(corpus: Path, name: str) -> None:
    """B03: a reviewable list with undo."""
    plain = build(corpus)
    lines = {
        "aliases.csv": "alias,name\nIBM,Big Blue Ltd\n",
        "aliases.jsonl": '{"alias":"IBM","name":"Big Blue Ltd"}\n',
    }
    (corpus / name).write_text(lines[name], encoding="utf-8")
    merged = build(corpus, corpus / name)
    assert Merge("big blue ltd", "Big Blue Ltd", "alias", {"IBM": 1}) in merges_of(merged)
    assert merged.table("aliases", "alias", "name") == [["IBM"], ["Big Blue Ltd"]]
    assert "ibm" not in merged.table("entities", "key")[0]
    undone = build(corpus)
    assert undone.generation == plain.generation
    assert "ibm" in undone.table("entities", "key")[0]


def test_an_index_without_other_spellings_has_no_merges(z_index: Path) -> None:
    assert merges_of(GraphIndex.open(z_index)) == []
