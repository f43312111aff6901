from __future__ import annotations

from pathlib import Path

import pytest

from gfm.exchange.tables import (
    GraphTables,
    canonical,
    is_title,
    known_ids,
    lost_note,
    not_kept,
    one_row_each,
    prepare,
    read_json,
    titled,
)
from gfm.types import Document, GfmError, GivenEntity, GivenTriple


def test_what_no_passage_states_gets_one_by_its_head() -> None:
    tables = GraphTables(
        [],
        [GivenEntity("Tarn Mill", "e1", "mill", "An old mill"), GivenEntity("Solo", type="cat")],
        [GivenTriple("TARN MILL", "built by", "Orla Venn"), GivenTriple("Tarn Mill", "in", "Port Isk", text="So.")],
    )
    documents, graph = prepare(tables)
    assert documents == [
        Document("entity:Solo", "Solo", "Solo: cat.", {"made_from": "graph"}),
        Document(
            "entity:Tarn Mill",
            "Tarn Mill",
            "An old mill.\nSo.\nTARN MILL built by Orla Venn.",
            {"made_from": "graph"},
        ),
    ]
    assert {t.passage_ids for t in graph.resolved.triples} == {("entity:Tarn Mill",)}
    assert tables.notes == ["passages made of descriptions and triples that name none: 2"]


def test_an_entity_that_a_passage_states_gets_none() -> None:
    documents, _ = prepare(
        GraphTables(
            [Document("p1", "", "x")],
            [GivenEntity("A"), GivenEntity("C", passage_ids=("p1",), description="Tall.")],
            [GivenTriple("A", "r", "B", ("p1",))],
        )
    )
    assert [d.id for d in documents] == ["p1"]


def test_a_made_passage_takes_a_free_id() -> None:
    documents, _ = prepare(GraphTables([Document("entity:A", "", "x")], [], [GivenTriple("A", "r", "B")]))
    assert [d.id for d in documents] == ["entity:A", "entity:A (2)"]


def test_nothing_is_an_error_and_so_is_an_unknown_passage() -> None:
    with pytest.raises(GfmError, match="expected documents, entities or triples"):
        prepare(GraphTables())
    with pytest.raises(GfmError, match=r"t\.csv:2: .*found 'p9'"):
        prepare(GraphTables([Document("p1", "", "x")], [], [GivenTriple("A", "r", "B", ("p9",), place="t.csv:2")]))


def test_canonical_rows_name_every_entity_once() -> None:
    tables = GraphTables(
        [Document("d", "", "x")],
        [GivenEntity("Big Blue Ltd", aliases=("IBM",))],
        [GivenTriple("IBM", "made", "PC", ("d#3",)), GivenTriple("", "", "", ("d",), text="So.")],
    )
    found = canonical(tables, whole_documents=False)
    assert found.entities == [
        GivenEntity("Big Blue Ltd", aliases=("IBM",), passage_ids=("d",)),
        GivenEntity("PC", passage_ids=("d",)),
    ]
    assert found.triples == [
        GivenTriple("", "", "", ("d",), text="So."),
        GivenTriple("Big Blue Ltd", "made", "PC", ("d",)),
    ]
    assert canonical(tables, whole_documents=True).triples[1].passage_ids == ("d#3",)


def test_types_of_one_name_are_put_together() -> None:
    """B02: where the name alone is the identity, types keep nothing apart."""
    rows = [GivenEntity("Café Noor", type="shop"), GivenEntity("CAFÉ NOOR", type="place"), GivenEntity("X")]
    assert [row.type for row in one_row_each(rows)] == ["place, shop", "place, shop", ""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("TARN MILL", True), ("Tarn Mill (ruin)", True), ("book.txt", False), ("p17", False), ("", False)],
)
def test_a_title_is_the_name_of_an_entity_of_the_text(name: str, expected: bool) -> None:
    assert is_title(name, ["Tarn Mill", "Orla"]) is expected


def test_another_name_of_a_text_is_kept() -> None:
    assert titled("a", "book.txt", "x\x00", {"n": 1}, []) == Document("a", "", "x", {"n": 1, "file_path": "book.txt"})
    assert titled("a", "Orla", "x", {}, ["Orla"]) == Document("a", "Orla", "x", {})
    assert titled("a", "", "x", {}, ["Orla"]) == Document("a", "", "x", {})


def test_references_that_lead_nowhere_are_counted_with_the_first_place() -> None:
    lost: dict[str, str] = {}
    assert known_ids(["b", "a", "z", "b"], {"a", "b"}, "f:2", lost) == ("a", "b")
    assert known_ids(["y"], set(), "f:1", lost) == ()
    assert lost_note(lost, "chunks") == ["chunks that are not there, left out: 2, such as 'y' (f:1)"]
    assert lost_note({}, "chunks") == []


def test_what_a_format_does_not_keep_is_counted() -> None:
    tables = GraphTables([], [GivenEntity("A", aliases=("B", "C"))], [GivenTriple("A", "r", "D", weight=2.0)])
    assert not_kept(tables, "weights", "aliases", "titles") == [
        "not part of this format, and left out: 1 weights, 2 aliases"
    ]
    assert not_kept(tables, "titles") == []


@pytest.mark.parametrize(("data", "words"), [("{", "expected JSON"), ("[1]", "expected an object, found list")])
def test_bad_json(tmp_path: Path, data: str, words: str) -> None:
    (tmp_path / "x.json").write_text(data, encoding="utf-8")
    with pytest.raises(GfmError, match=rf"x\.json: {words}"):
        read_json(tmp_path / "x.json", dict)
