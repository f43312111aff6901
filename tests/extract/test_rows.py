from __future__ import annotations

from pathlib import Path

import pytest

from gfm.extract.rows import entity_of, read_aliases, triple_of
from gfm.text.reading import Row
from gfm.types import GfmError, GivenEntity, GivenTriple

PLACE = Path("rows.jsonl")


def row(**fields: object) -> Row:
    return Row(PLACE, 4, dict(fields))


def test_a_triple_with_everything() -> None:
    found = triple_of(
        row(
            head=" Lee\nMoss ",
            relation="dives  at",
            tail="Port\x07 Isk",
            passage_ids=["p1", 2, "p1"],
            weight=2,
            description="Every\nday.",
            text="He dives.",
            head_id=7,
            tail_type="town",
        )
    )
    assert found == GivenTriple(
        *("Lee Moss", "dives at", "Port Isk", ("p1", "2"), 2.0, "Every day.", "He dives.", "7"), tail_type="town"
    )
    assert found.place == "rows.jsonl:4"


@pytest.mark.parametrize(
    "names", [("subject", "predicate", "object"), ("source", "label", "target"), ("from", "type", "to")]
)
def test_ends_under_other_names(names: tuple[str, str, str]) -> None:
    assert triple_of(row(**dict(zip(names, "ArB", strict=True)))) == GivenTriple("A", "r", "B")


def test_a_sentence_without_a_triple() -> None:
    assert triple_of(row(text="It rained.", passage_id="p1")) == GivenTriple("", "", "", ("p1",), text="It rained.")


def test_an_end_may_be_an_id_alone() -> None:
    assert triple_of(row(head_id="e1", relation="", tail="B")) == GivenTriple("", "", "B", head_id="e1")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "It rained."}, "'passage_id'"),
        ({"head": "A", "relation": "r", "tail": "B", "weight": "2"}, "'weight': expected a number, found '2'"),
        ({"head": "A", "relation": "r", "tail": "B", "weight": True}, "'weight'"),
        ({"head": "A", "relation": "r", "tail": "B", "weight": float("inf")}, "'weight'"),
        ({"head": "A", "relation": "r", "tail": "B", "passage_ids": "p1"}, "'passage_ids': expected an array"),
        ({"head": "A", "relation": "r", "tail": "B", "passage_ids": ["a\tb"]}, "without control characters"),
        ({"head": "A", "relation": "r", "tail": "B", "passage_ids": [1.5]}, "found 1.5"),
        ({"head": "A", "relation": "r", "text": "x"}, "'tail'"),
    ],
)
def test_bad_triples_are_named(fields: dict[str, object], words: str) -> None:
    with pytest.raises(GfmError) as error:
        triple_of(row(**fields))
    assert str(error.value).startswith("rows.jsonl:4: ")
    assert words in str(error.value)


def test_an_entity_with_everything() -> None:
    found = entity_of(
        row(_id=3, label="Tarn\x00 Mill", type="mill", description="Old.", aliases=["TM", " "], passage_id="p")
    )
    assert found == GivenEntity("Tarn Mill", "3", "mill", "Old.", ("TM",), ("p",))


@pytest.mark.parametrize("name", [None, "", " ", "<p></p>"])
def test_an_entity_without_a_name_needs_an_id(name: str | None) -> None:
    """A15."""
    assert entity_of(row(id="e17", name=name)) == GivenEntity("", "e17")
    with pytest.raises(GfmError, match="'name'"):
        entity_of(row(name=name))


@pytest.mark.parametrize("aliases", ["TM", [1], {"a": "b"}])
def test_bad_aliases_of_an_entity(aliases: object) -> None:
    with pytest.raises(GfmError, match="'aliases': expected an array of strings"):
        entity_of(row(name="Tarn Mill", aliases=aliases))


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.jsonl", '{"alias": "TM", "name": "Tarn Mill"}\n'), ("a.csv", "alias,name\nTM,Tarn Mill\n")],
)
def test_aliases_from_either_form(tmp_path: Path, name: str, data: str) -> None:
    (tmp_path / name).write_text(data, encoding="utf-8")
    assert read_aliases(tmp_path / name) == [("TM", "Tarn Mill")]


def test_bad_alias_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("alias,name\nTM,Tarn Mill\nX,\n", encoding="utf-8")
    with pytest.raises(GfmError, match=r"a\.csv:3: expected the field 'name'"):
        read_aliases(path)
    path.write_text("alias,name\n", encoding="utf-8")
    with pytest.raises(GfmError, match="found none"):
        read_aliases(path)
