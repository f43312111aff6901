from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gfm.extract.extraction import Extraction, Mention, Predicate, Statement, unite

ONE = Extraction(
    sentences=((0, 41),),
    mentions=(Mention(0, 9, "FAC"), Mention(23, 32, "PERSON")),
    predicates=(Predicate(28, 5, False, "was built by"),),
    triples=(("Tarn Mill", "built by", "Orla Venn"),),
)
NUMBERS = st.integers(0, 10**6)
EXTRACTIONS = st.builds(
    Extraction,
    st.lists(st.tuples(NUMBERS, NUMBERS)).map(tuple),
    st.lists(st.builds(Mention, NUMBERS, NUMBERS, st.text())).map(tuple),
    st.lists(st.builds(Predicate, NUMBERS, NUMBERS, st.booleans(), st.text())).map(tuple),
    st.lists(st.tuples(st.text(), st.text(), st.text())).map(tuple),
    st.lists(
        st.builds(Statement, *[st.text()] * 4, st.none() | st.floats(allow_nan=False, allow_infinity=False), st.text())
    ).map(tuple),
    st.lists(st.text()).map(tuple),
)


def test_json_is_one_plain_line() -> None:
    line = ONE.to_json()
    assert "\n" not in line
    assert json.loads(line) == {
        "sentences": [[0, 41]],
        "mentions": [[0, 9, "FAC"], [23, 32, "PERSON"]],
        "predicates": [[28, 5, 0, "was built by"]],
        "triples": [["Tarn Mill", "built by", "Orla Venn"]],
    }


@given(EXTRACTIONS)
def test_json_goes_both_ways(extraction: Extraction) -> None:
    line = extraction.to_json()
    assert "\n" not in line
    assert Extraction.from_json(line) == extraction
    assert Extraction.from_json(line).to_json() == line
    assert hash(Extraction.from_json(line)) == hash(extraction)


def test_an_empty_extraction() -> None:
    assert Extraction.from_json(Extraction().to_json()) == Extraction()


def test_unite_keeps_the_order_of_the_extractors() -> None:
    statement = Statement("It rained.")
    other = Extraction(((50, 60),), triples=(("A", "", "B"),), statements=(statement,), names=("C",))
    both = unite([ONE, other])
    assert both.sentences == ((0, 41), (50, 60))
    assert both.mentions == ONE.mentions
    assert both.predicates == ONE.predicates
    assert both.triples == (("Tarn Mill", "built by", "Orla Venn"), ("A", "", "B"))
    assert (both.statements, both.names) == ((statement,), ("C",))
    assert unite([ONE]) == ONE
