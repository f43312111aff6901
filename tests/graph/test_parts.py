from __future__ import annotations

from gfm.graph.entity_table import EntityTable, make_aliases
from gfm.graph.linker import TitleLinker
from gfm.graph.parts import number
from gfm.text.normalise import name_key
from gfm.types import GivenEntity
from tests.graph.test_occurrences import ONE, TWO, collected, reading


def test_parts_by_hand() -> None:
    """C may be A or Z, and Z is not named."""
    linker = TitleLinker([], EntityTable({}, make_aliases([("C", "A"), ("C", "Z")])))
    parts = number(collected([ONE, TWO]), linker)
    assert parts.entities == [("a", "A"), ("b", "B"), ("c", "C")]
    assert parts.fact_passages == [(0, 1), (0,), (1,)]
    assert parts.triples == [(0, 1, 0, "met; greeted", 1.0), (1, 2, 2, "saw", 1.0)]
    assert parts.mentions.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    assert parts.subjects.tolist() == [0, -1]
    assert parts.aliases == [(2, 0)]
    assert (parts.given, parts.descriptions, parts.apart, parts.self_loops) == ([None] * 3, [""] * 2, [], 0)


def test_what_is_given_of_an_entity() -> None:
    rows = {name_key(row.name): row for row in (GivenEntity("A", "e1", "person"), GivenEntity("B"))}
    noted = reading(("A met b.", [("a", "b", "met")]))
    noted.descriptions |= {("A met b.", "a", "b", "in Oslo"), ("A met b.", "a", "b", "by day")}
    noted.self_loops.add(("a", "A met a."))
    parts = number(collected([ONE, noted, TWO, noted]), TitleLinker([], EntityTable(rows)))
    assert [row and (row.id, row.type) for row in parts.given] == [("e1", "person"), ("", ""), None]
    assert parts.descriptions == ["by day in Oslo", ""]
    assert parts.self_loops == 1


def test_the_strongest_of_several_weights() -> None:
    weak, strong = (reading(("A met b.", [])) for _ in range(2))
    for made, weight in ((weak, 0.5), (strong, 2.0)):
        for key in "ab":
            made.mention(key, key)
        made.triple("A met b.", "a", "b", "met", weight)
    assert number(collected([weak, strong]), TitleLinker([])).weight.tolist() == [2.0]
