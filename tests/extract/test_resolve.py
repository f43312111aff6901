from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.extract.resolve import Resolved, resolve
from gfm.types import GfmError, GivenEntity, GivenTriple


def ends(resolved: Resolved) -> list[tuple[str, str]]:
    return [(t.head, t.tail) for t in resolved.triples]


def names(resolved: Resolved) -> list[str]:
    return [entity.name for entity in resolved.entities]


def test_plain_triples_stay_as_they_are() -> None:
    triples = [GivenTriple("ORLA VENN", "born in", "Port Isk"), GivenTriple("Orla Venn", "built", "Tarn Mill")]
    assert resolve([], triples) == Resolved([], triples, resolve([], []).table, 0, [])


def test_two_ids_are_two_entities_named_by_their_types() -> None:
    """B03."""
    entities = [GivenEntity("Lee Moss", "e1", "treasurer"), GivenEntity("Lee Moss", "e2", "diver")]
    triples = [
        GivenTriple("", "keeps the books of", "Abel Works", head_id="e1"),
        GivenTriple("Lee Moss", "dives at", "Port Isk", head_id="e2"),
        GivenTriple("Lee Moss", "likes", "tea"),
    ]
    found = resolve(entities, triples)
    assert ends(found) == [
        ("Lee Moss (treasurer)", "Abel Works"),
        ("Lee Moss (diver)", "Port Isk"),
        ("Lee Moss", "tea"),
    ]
    assert names(found) == ["Lee Moss (diver)", "Lee Moss (treasurer)"]
    assert found.homonyms == ["Lee Moss"]
    assert found.table.shared() == {"lee moss": ("lee moss (diver)", "lee moss (treasurer)")}
    assert found.table.canonical("lee moss") == "lee moss"


def test_two_types_are_two_entities_without_any_id() -> None:
    triples = [
        GivenTriple("Lee Moss", "keeps the books of", "Abel Works", head_type="treasurer"),
        GivenTriple("LEE MOSS", "dives at", "Port Isk", head_type="Diver"),
        GivenTriple("Orla Venn", "knows", "Lee Moss", tail_type="DIVER"),
    ]
    assert ends(resolve([], triples)) == [
        ("Lee Moss (treasurer)", "Abel Works"),
        ("Lee Moss (Diver)", "Port Isk"),
        ("Orla Venn", "Lee Moss (Diver)"),
    ]


def test_one_type_is_one_entity_and_a_spelling_of_its_name_stays() -> None:
    triples = [
        GivenTriple("Lee Moss", "dives at", "Port Isk", head_type="diver"),
        GivenTriple("LEE MOSS", "likes", "x"),
    ]
    assert ends(resolve([], triples)) == [("Lee Moss", "Port Isk"), ("LEE MOSS", "x")]
    assert [(e.name, e.type) for e in resolve([], triples).entities] == [("Lee Moss", "diver")]


def test_a_type_finds_the_entity_with_an_id() -> None:
    entities = [GivenEntity("Lee Moss", "e1", "diver"), GivenEntity("Lee Moss", "e2")]
    triples = [
        GivenTriple("Lee Moss", "r", "x", head_type="diver"),
        GivenTriple("Lee Moss", "r", "y", head_type="cook"),
    ]
    assert ends(resolve(entities, triples)) == [("Lee Moss (diver)", "x"), ("Lee Moss (cook)", "y")]


def test_ids_of_one_name_and_type_are_told_apart_by_id() -> None:
    found = resolve([GivenEntity("Lee Moss", "e1", "diver"), GivenEntity("Lee Moss", "e2", "diver")], [])
    assert names(found) == ["Lee Moss (e1)", "Lee Moss (e2)"]


def test_a_bracket_that_is_taken_gets_the_id() -> None:
    rows = [
        GivenEntity("Lee Moss", "e1", "diver"),
        GivenEntity("Lee Moss", "e2", "cook"),
        GivenEntity("Lee Moss (diver)", "e3"),
    ]
    assert names(resolve(rows, [])) == ["Lee Moss (cook)", "Lee Moss (diver)", "Lee Moss (e1)"]


def test_an_unknown_id_names_its_place() -> None:
    """A10."""
    triples = [GivenTriple("", "r", "", head_id="7", tail_id="99", place="edges.csv:3")]
    with pytest.raises(GfmError, match=r"edges\.csv:3: unknown node '99'"):
        resolve([GivenEntity("", "7")], triples)


def test_one_id_with_two_names_names_both_places() -> None:
    rows = [GivenEntity("A", "1", place="n:2"), GivenEntity("B", "1", place="n:5")]
    with pytest.raises(GfmError, match="n:5: the id '1' stands for 'A' at n:2 and for 'B'"):
        resolve(rows, [])


def test_rows_of_one_entity_accumulate() -> None:
    rows = [
        GivenEntity("Tarn Mill", type="mill", description="Burned.", passage_ids=("p2",), aliases=("The Mill",)),
        GivenEntity("tarn mill", description="Built in 1911.", passage_ids=("p1", "p2")),
    ]
    (entity,) = resolve(rows, []).entities
    assert (entity.name, entity.type, entity.passage_ids) == ("Tarn Mill", "mill", ("p1", "p2"))
    assert (entity.description, entity.aliases) == ("Built in 1911. Burned.", ("The Mill",))


def test_an_entity_without_a_name_gets_a_stand_in_that_is_no_id() -> None:
    """A15."""
    rows = [GivenEntity("", "e17", "place"), GivenEntity("", "e3"), GivenEntity("", "e9", aliases=("The Quay",))]
    found = resolve(rows, [GivenTriple("", "near", "Tarn Mill", head_id="e17")])
    assert names(found) == ["The Quay", "unnamed entity 2", "unnamed place 1"]
    assert ends(found) == [("unnamed place 1", "Tarn Mill")]
    assert found.unnamed == 2


def test_aliases_merge_unless_they_are_shared_or_names_of_their_own() -> None:
    rows = [
        GivenEntity("Big Blue Ltd", aliases=("IBM", "Blue")),
        GivenEntity("Blue Note", aliases=("Blue",)),
        GivenEntity("Tarn Mill", aliases=("Blue Note", "TARN  MILL")),
    ]
    table = resolve(rows, []).table
    assert table.canonical("ibm") == "big blue ltd"
    assert table.canonical("blue note") == "blue note"
    assert table.shared() == {"blue": ("big blue ltd", "blue note"), "blue note": ("blue note", "tarn mill")}


def test_another_name_beside_an_id_is_an_alias() -> None:
    found = resolve([GivenEntity("Big Blue Ltd", "e1")], [GivenTriple("IBM", "made", "PC", head_id="e1")])
    assert ends(found) == [("Big Blue Ltd", "PC")]
    assert found.table.canonical("ibm") == "big blue ltd"


ENTITIES = st.lists(
    st.builds(
        GivenEntity,
        st.sampled_from(["Lee Moss", "LEE MOSS", "Kate", "Lee Moss (diver)"]),
        type=st.sampled_from(["", "diver", "cook"]),
        description=st.sampled_from(["", "x", "y"]),
        aliases=st.lists(st.sampled_from(["Moss", "Kate", "K"]), max_size=2).map(tuple),
        passage_ids=st.lists(st.sampled_from(["p1", "p2"]), max_size=2).map(tuple),
    ),
    max_size=5,
)
TRIPLES = st.lists(
    st.builds(
        GivenTriple,
        st.sampled_from(["Lee Moss", "lee moss", "Kate", "Moss"]),
        st.just("r"),
        st.sampled_from(["Lee Moss", "Port Isk"]),
        head_id=st.sampled_from(["", "e1", "e2"]),
        head_type=st.sampled_from(["", "diver", "cook"]),
        tail_type=st.sampled_from(["", "diver"]),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(ENTITIES, TRIPLES, st.integers(0, 9))
def test_order_plays_no_part(entities: list[GivenEntity], triples: list[GivenTriple], seed: int) -> None:
    one = resolve(entities, triples)
    triples = [replace(t, relation=str(i)) for i, t in enumerate(triples)]
    numbered = resolve(entities, triples)
    Random(seed).shuffle(triples)
    Random(seed).shuffle(entities)
    other = resolve(entities, triples)
    assert (other.entities, other.table, other.homonyms) == (one.entities, one.table, one.homonyms)
    assert sorted(map(repr, other.triples)) == sorted(map(repr, numbered.triples))


@settings(deadline=None)
@given(ENTITIES, TRIPLES)
def test_names_are_unique_and_resolving_again_changes_nothing(
    entities: list[GivenEntity], triples: list[GivenTriple]
) -> None:
    one = resolve(entities, triples)
    keys = [name.casefold() for name in names(one)]
    assert len(set(keys)) == len(keys)
    assert all(t.head_id == t.head_type == "" for t in one.triples)
    again = resolve(one.entities, one.triples)
    assert (again.entities, again.triples) == (one.entities, one.triples)
    assert again.table == one.table
