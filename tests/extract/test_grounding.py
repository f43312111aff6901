from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.extract.extraction import Extraction
from gfm.extract.grounding import GroundedText, Wanted, ground
from gfm.extract.reply import FoundEntity, FoundFacts, FoundTriple
from gfm.graph.assemble import assemble
from gfm.types import Passage

TEXT = (
    "Tarn Mill was built by Orla Venn in 1911. She was born in Port\nIsk, near the Halder Sea. It freezes each winter."
)
BUILT, BORN = "Tarn Mill was built by Orla Venn in 1911.", "She was born in Port Isk, near the Halder Sea."


def facts(*triples: tuple[str, str, str, str], entities: tuple[tuple[str, str], ...] = ()) -> FoundFacts:
    rows = [dict(zip(("head", "relation", "tail", "evidence"), t, strict=True)) for t in triples]
    return FoundFacts(
        entities=tuple(FoundEntity(name=n, type=t) for n, t in entities), triples=tuple(FoundTriple(**r) for r in rows)
    )


def grounded(
    *triples: tuple[str, str, str, str],
    entities: tuple[tuple[str, str], ...] = (),
    types: tuple[str, ...] = (),
    relations: tuple[str, ...] = (),
    text: str = TEXT,
) -> tuple[Extraction, dict[str, int]]:
    found, dropped = ground(text, facts(*triples, entities=entities), Wanted.of(types, relations))
    return found, dict(dropped)


def names(found: Extraction, text: str = TEXT) -> list[str]:
    return [text[m.start : m.end] for m in found.mentions]


def edges(found: Extraction, title: str = "", text: str = TEXT) -> set[tuple[str, str, str]]:
    """(head, relation, tail) of the graph that comes of it, those without a relation left out."""
    parts = assemble([Passage("p", "p", title, text, 0, len(text))], [found])
    key = [name for _, name in parts.entities]
    return {(key[h], relation, key[t]) for h, t, _, relation, _ in parts.triples if relation}


def test_a_triple_between_neighbours_is_a_predicate_of_the_sentence() -> None:
    found, dropped = grounded(("Orla Venn", "built in", "1911", BUILT))
    assert dropped == {}
    assert names(found) == ["Orla Venn", "1911"]
    assert found.statements == ()
    assert [p.text for p in found.predicates] == ["built in"]
    assert edges(found) == {("Orla Venn", "built in", "1911")}


def test_a_triple_against_the_order_of_the_words_is_a_statement() -> None:
    found, _ = grounded(("Orla Venn", "built", "Tarn Mill", BUILT))
    (statement,) = found.statements
    assert (statement.text, statement.head, statement.relation, statement.tail) == (
        BUILT,
        "Orla Venn",
        "built",
        "Tarn Mill",
    )
    assert edges(found) == {("Orla Venn", "built", "Tarn Mill")}
    assert len(assemble([Passage("p", "p", "", TEXT, 0, len(TEXT))], [found]).facts) == 3  # one for each sentence


def test_a_triple_over_another_name_is_a_statement() -> None:
    found, _ = grounded(("Tarn Mill", "built in", "1911", BUILT), entities=(("Orla Venn", "person"),))
    assert [s.tail for s in found.statements] == ["1911"]
    assert ("Tarn Mill", "built in", "1911") in edges(found)


def test_a_name_of_another_sentence_leads_the_evidence() -> None:
    found, _ = grounded(("Orla Venn", "born in", "Port Isk", BORN))
    (statement,) = found.statements
    assert statement.text == f"Orla Venn: {BORN}"
    assert statement.tail == "Port\nIsk"
    assert edges(found, "Orla Venn") == {("Orla Venn", "born in", "Port Isk")}
    with_title = assemble([Passage("p", "p", "Orla Venn", TEXT, 0, len(TEXT))], [found])
    assert f"Orla Venn: {BORN}" in with_title.facts
    assert len(with_title.facts) == 3  # that of the sentence and that of the statement are one


def test_a_pronoun_stands_for_what_the_passage_is_about() -> None:
    found, dropped = grounded(("She", "born in", "Port Isk", BORN))
    assert dropped == {}
    assert names(found) == ["Port\nIsk"]
    assert edges(found, "Orla Venn") == {("Orla Venn", "born in", "Port Isk")}


@pytest.mark.parametrize(
    ("triple", "reason"),
    [
        (("Orla Venn", "built", "Tarn Mill", ""), "no evidence"),
        (("Orla Venn", "built", "Tarn Mill", "Orla Venn built Tarn Mill."), "evidence not in the passage"),
        (("Orla Venn", "loves", "Tarn Mill", "It freezes each winter."), "evidence names neither end"),
        (("Sam Pell", "built", "Tarn Mill", BUILT), "an end not in the passage"),
        (("Tarn Mill", "was built by", "Sam Pell", BUILT), "an end not in the passage"),
        (("Tarn Mill", "was built by", "her", BUILT), "an end without a name"),
        (("!!", "was built by", "Orla Venn", BUILT), "an end not in the passage"),
        (("Tarn", "was built by", "Venn", "..."), "evidence not in the passage"),
    ],
)
def test_what_does_not_stand_there_is_dropped_and_counted(triple: tuple[str, str, str, str], reason: str) -> None:
    found, dropped = grounded(triple)
    assert dropped == {reason: 1}
    assert (found.mentions, found.predicates, found.statements) == ((), (), ())
    assert len(found.sentences) == 3


def test_case_and_blanks_of_a_quotation_play_no_part() -> None:
    found, dropped = grounded(("orla  venn", "built", "TARN MILL", BUILT.upper().replace(" ", "\n ")))
    assert dropped == {}
    assert (found.statements[0].head, found.statements[0].text) == ("Orla Venn", BUILT)


def test_of_a_long_quotation_the_sentence_with_both_ends_counts() -> None:
    found, _ = grounded(("She", "born in", "Port Isk", TEXT))
    assert edges(found, "Orla Venn") == {("Orla Venn", "born in", "Port Isk")}


def test_the_longer_of_two_names_is_mentioned() -> None:
    found, _ = grounded(entities=(("Mill", "thing"), ("Tarn Mill", "building"), ("Sea", ""), ("He", "person")))
    assert [(TEXT[m.start : m.end], m.label) for m in found.mentions] == [("Tarn Mill", "building"), ("Sea", "")]


def test_only_types_that_are_wanted() -> None:
    built, born = ("Orla Venn", "built", "Tarn Mill", BUILT), ("Orla Venn", "born in", "Port Isk", BORN)
    entities = (("Orla Venn", "Person"), ("Port Isk", "PLACE"), ("Tarn Mill", "building"))
    found, dropped = grounded(built, born, entities=entities, types=("person", "place"))
    assert names(found) == ["Orla Venn", "Port\nIsk"]
    assert [s.tail for s in found.statements] == ["Port\nIsk"]
    assert dropped == {"entity of another type": 1, "an end of another type": 1}
    found, dropped = grounded(built, born, relations=("BORN_IN",))
    assert [s.relation for s in found.statements] == ["born in"]
    assert dropped == {"another relation": 1}


def test_a_script_without_blanks() -> None:
    text = "李明创办了海港书店。海港书店位于临川。"
    found, dropped = grounded(("李明", "创办", "海港书店", "李明创办了海港书店"), text=text)
    assert dropped == {}
    assert names(found, text) == ["李明", "海港书店", "海港书店"]
    assert edges(found, text=text) == {("李明", "创办", "海港书店")}


def test_an_article_is_no_hindrance() -> None:
    text = "Port Isk lies on the Halder Sea."
    found, _ = grounded(("Port Isk", "lies on", "the Halder Sea", text), text=text)
    assert edges(found, text=text) == {("Port Isk", "lies on", "Halder Sea")}


@given(
    st.text(alphabet="AB ab.\n", max_size=30),
    st.text(alphabet="AB ab", min_size=1, max_size=6),
    st.text(alphabet="AB .", max_size=9),
)
def test_whatever_is_kept_stands_in_the_text(text: str, name: str, evidence: str) -> None:
    found, _ = ground(text, facts((name, "r", "B", evidence), entities=((name, ""),)), Wanted.of((), ()))
    assert all(0 <= m.start < m.end <= len(text) for m in found.mentions)
    for statement in found.statements:
        assert any(GroundedText(text).find(statement.tail))
    for predicate in found.predicates:
        assert any(m.start <= predicate.object < m.end for m in found.mentions)
