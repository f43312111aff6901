from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.graph.entity_table import Alias, EntityTable, make_aliases
from gfm.types import GfmError, GivenEntity


def test_a_form_of_one_name_merges_and_one_of_several_names_is_shared() -> None:
    table = EntityTable({}, make_aliases([("IBM", "Big Blue Ltd"), ("Moss", "Lee Moss"), ("MOSS", "Kate Moss")]))
    assert table.aliases["moss"] == Alias("MOSS", ("Kate Moss", "Lee Moss"))
    assert table.canonical("ibm") == "big blue ltd"
    assert table.canonical("moss") == "moss"
    assert table.shared() == {"moss": ("kate moss", "lee moss")}


def test_aliases_are_followed_to_their_end() -> None:
    table = EntityTable({}, make_aliases([("B", "C"), ("A", "b"), ("S", "A"), ("S", "D")]))
    assert table.canonical("a") == "c"
    assert table.shared() == {"s": ("c", "d")}


def test_a_form_with_the_key_of_its_name_is_no_alias() -> None:
    assert make_aliases([("TARN MILL", "Tarn Mill"), ("Tarn  Mill", "Tarn Mill")]) == {}


@pytest.mark.parametrize("pairs", [[("A", "B"), ("B", "A")], [("A", "B"), ("B", "C"), ("C", "a")]])
def test_a_circle_is_an_error(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(GfmError, match="leads back to itself"):
        EntityTable({}, make_aliases(pairs))


def test_later_aliases_come_before_earlier_ones() -> None:
    table = EntityTable({}, make_aliases([("A", "B"), ("X", "Y")])).with_aliases([("a", "C")])
    assert (table.canonical("a"), table.canonical("x")) == ("c", "y")


def test_spellings_are_those_of_the_rows_before_those_of_the_aliases() -> None:
    table = EntityTable({"lee moss": GivenEntity("Lee Moss")}, make_aliases([("Moss", "LEE MOSS"), ("K", "Kate")]))
    assert table.spellings() == {"lee moss": "Lee Moss", "kate": "Kate"}


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABab"), st.sampled_from("CDcd")), max_size=6), st.randoms())
def test_order_plays_no_part(pairs: list[tuple[str, str]], chance: object) -> None:
    shuffled = list(pairs)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert make_aliases(pairs) == make_aliases(shuffled)
