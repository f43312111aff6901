from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.graph.entity_table import EntityTable, make_aliases
from gfm.graph.linker import TitleLinker
from gfm.text.normalise import name_key
from gfm.types import GivenEntity


def found(titles: list[str], text: str) -> list[tuple[str, str]]:
    """(words of the text, entity key) of every match."""
    return [(text[s:e], key) for s, e, key in TitleLinker(titles).find(text)]


def test_the_longest_match_wins() -> None:
    titles = ["Port", "Port Isk", "Port Isk Harbour Board", "Isk"]
    assert found(titles, "Port Isk Harbour, Port Isk harbour board, Port and Isk.") == [
        ("Port Isk", "port isk"),
        ("Port Isk harbour board", "port isk harbour board"),
        ("Port", "port"),
        ("Isk", "isk"),
    ]


def test_matches_do_not_overlap() -> None:
    assert found(["A B", "B C"], "A B C") == [("A B", "a b")]
    assert found(["A B", "B C"], "A A B C") == [("A B", "a b")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Orla Venn came.", [("Orla Venn", "orla venn")]),
        ("ORLA VENN came.", [("ORLA VENN", "orla venn")]),
        ("Orla-Venn's", [("Orla-Venn", "orla venn")]),
        ("orla venn came.", []),
        ("Orla came. Venn left.", []),
        ("", []),
        ("Orla", []),
        ("Ｏｒｌａ Ｖｅｎｎ", [("Ｏｒｌａ Ｖｅｎｎ", "orla venn")]),
        ("Orla\u200b Venn", [("Orla\u200b Venn", "orla venn")]),
    ],
)
def test_a_match_starts_with_a_capital(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(["Orla Venn"], text) == expected


def test_a_match_may_start_with_a_digit() -> None:
    assert found(["1911", "7 Hills"], "In 1911 there were 7 hills.") == [("1911", "1911"), ("7 hills", "7 hills")]


@pytest.mark.parametrize(
    ("title", "text", "match"),
    [
        ("海港书店", "李明创办了海港书店。", "海港书店"),
        ("الرياض", "مدينة الرياض كبيرة", "الرياض"),
        ("दिल्ली", "वह दिल्ली में है", "दिल्ली"),
        ("น้ำตก", "ไปน้ำตกกัน", "น้ำตก"),
        ("한국", unicodedata.normalize("NFD", "나는 한국 사람"), unicodedata.normalize("NFD", "한국")),
        ("Cafe\u0301 Noor", "Im Café Noor.", "Café Noor"),
        ("½ Gang", "The ½ Gang rode.", "½ Gang"),
        ("Straße", "Die STRASSE.", "STRASSE"),
        ("Sport &amp; Leisure", "At Sport & Leisure.", "Sport & Leisure"),
    ],
)
def test_titles_of_many_scripts(title: str, text: str, match: str) -> None:
    assert found([title], text) == [(match, name_key(title))]


def test_a_bracket_is_dropped_where_one_title_has_the_name() -> None:
    linker = TitleLinker(["Mercury (planet)"])
    assert list(linker.find("Mercury is hot.")) == [(0, 7, "mercury (planet)")]
    assert list(linker.find("Mercury (planet) is hot.")) == [(0, 15, "mercury (planet)")]
    assert linker.resolve("MERCURY") == linker.resolve("Mercury (planet)") == "mercury (planet)"
    assert linker.aliases == set()


def test_a_name_of_two_titles_stands_for_neither() -> None:
    linker = TitleLinker(["Lee Moss (treasurer)", "Lee Moss (diver)"])
    assert [key for _, _, key in linker.find("Lee Moss met Lee Moss (diver).")] == ["lee moss", "lee moss (diver)"]
    assert linker.aliases == {("lee moss", "lee moss (diver)"), ("lee moss", "lee moss (treasurer)")}


def test_a_title_that_is_the_bare_form_keeps_its_name() -> None:
    linker = TitleLinker(["Mercury", "Mercury (planet)"])
    assert linker.resolve("Mercury") == "mercury"
    assert linker.aliases == {("mercury", "mercury (planet)")}


def test_titles_in_another_case_are_one() -> None:
    linker = TitleLinker(["TARN MILL", "Tarn Mill"])
    assert linker.resolve("tarn mill") == "tarn mill"
    assert linker.aliases == set()


def test_resolve_of_an_unknown_name_is_its_own_key() -> None:
    linker = TitleLinker(["Tarn Mill"])
    assert linker.resolve("Ｏrla  VENN") == "orla venn"
    assert linker.resolve("") == linker.resolve(" \u200b") == ""


def test_exact_names_keep_their_punctuation() -> None:
    linker = TitleLinker(["C", "Mercury (planet)"])
    assert linker.resolve("C++") == "c"  # in text, outer punctuation is the sentence's
    assert linker.resolve_exactly("C++") == "c++"
    assert linker.resolve_exactly("c") == "c"
    assert linker.resolve_exactly("Mercury") == "mercury (planet)"
    assert linker.resolve_exactly("Orla  Venn") == "orla venn"


def test_blank_and_unreadable_titles_are_passed_over() -> None:
    linker = TitleLinker(["", "  ", "\u200b", "<p></p>", "???"])
    assert list(linker.find("??? What? Nothing.")) == []
    assert linker.resolve("???") == "???"


def test_the_order_of_titles_plays_no_part() -> None:
    titles = ["Lee Moss (diver)", "Lee Moss (treasurer)", "Yes!", "Yes", "Foo (1990)", "Foo 1990"]
    one, other = TitleLinker(titles), TitleLinker(reversed(titles))
    text = "Lee Moss said Yes! to Foo 1990 and Foo (1990)."
    assert list(one.find(text)) == list(other.find(text))
    assert one.aliases == other.aliases


def test_a_very_long_title_costs_little() -> None:
    linker = TitleLinker(["The " * 5000, "The End"])
    text = "The " * 4000 + "End"
    start = time.perf_counter()
    assert [key for _, _, key in linker.find(text)] == ["the end"]
    assert time.perf_counter() - start < 5


WORDS = st.sampled_from(["Tarn", "Mill", "tarn", "mill", "(x)", "(y)", "1911", "李", "É", "ß", "-", "\u200b", "SS"])
NAMES = st.lists(WORDS, max_size=4).map(" ".join)


@given(st.lists(NAMES, max_size=6), st.lists(WORDS, max_size=30).map(" ".join))
def test_matches_are_ordered_spans_of_known_titles(titles: list[str], text: str) -> None:
    linker = TitleLinker(titles)
    known = {name_key(t) for t in titles} | {form for form, _ in linker.aliases}
    end = 0
    for start, stop, key in linker.find(text):
        assert end <= start < stop
        assert not text[start].islower()
        assert key in known
        assert linker.resolve(text[start:stop]) == key
        end = stop


def test_aliases_are_found_like_titles_and_come_before_bare_forms() -> None:
    table = EntityTable({}, make_aliases([("IBM", "Big Blue Ltd"), ("Mercury", "Quicksilver")]))
    linker = TitleLinker(["Mercury (planet)"], table)
    text = "IBM sold Mercury to Big Blue Ltd."
    assert [(text[s:e], key) for s, e, key in linker.find(text)] == [
        ("IBM", "big blue ltd"),
        ("Mercury", "quicksilver"),
        ("Big Blue Ltd", "big blue ltd"),
    ]
    assert linker.resolve("ibm") == linker.resolve_exactly("IBM") == linker.subject("IBM") == "big blue ltd"


def test_a_shared_alias_stands_for_none_and_is_tied_to_each() -> None:
    linker = TitleLinker([], EntityTable({}, make_aliases([("Moss", "Lee Moss"), ("Moss", "Kate Moss")])))
    assert linker.resolve_exactly("MOSS") == "moss"
    assert linker.aliases == {("moss", "lee moss"), ("moss", "kate moss")}
    assert linker.senses(["lee moss", "x"]) == {"moss": "lee moss"}
    assert linker.senses(["lee moss", "kate moss"]) == {}


def test_a_bare_form_that_a_table_knows_beside_the_title_stands_for_itself() -> None:
    rows = {name_key(n): GivenEntity(n) for n in ("Mercury", "Mercury (planet)")}
    linker = TitleLinker(["Mercury (planet)", "Venus (planet)"], EntityTable({**rows, "venus": GivenEntity("Venus")}))
    assert linker.resolve_exactly("Mercury") == "mercury"
    assert linker.aliases == {("mercury", "mercury (planet)")}
    assert linker.resolve_exactly("Venus") == "venus (planet)"


def test_an_entity_with_an_id_is_its_own() -> None:
    linker = TitleLinker(["Mercury (planet)"], EntityTable({"mercury": GivenEntity("Mercury", "e1")}))
    assert linker.resolve_exactly("Mercury") == "mercury"


TANGLED = st.lists(
    st.sampled_from([*("C", "C++", "Mill", "(x)", "(x) (y)", "<i>", "</i>", "mill", "Ｃ", "1")]), max_size=4
)
TITLES = st.lists(TANGLED.map(" ".join), max_size=6)


@given(TITLES, TITLES)
def test_whatever_is_answered_otherwise_is_touched(before: list[str], after: list[str]) -> None:
    old, new = TitleLinker(before), TitleLinker(after)
    forms, keys = new.touched(set(before) ^ set(after))
    assert {form for form, _ in old._key_of.items() ^ new._key_of.items()} <= forms
    assert {key for key, _ in old._key_of_name.items() ^ new._key_of_name.items()} <= keys


def test_only_namesakes_are_touched() -> None:
    linker = TitleLinker(["Mercury (planet)", "Mercury (god)", "Tarn Mill", "Mercury Lake"])
    forms, keys = linker.touched(["Mercury (god)"])
    assert forms == {("mercury",), ("mercury", "god"), ("mercury", "planet")}
    assert keys == {"mercury", "mercury (god)", "mercury (planet)"}
    assert linker.touched([]) == (set(), set())
