from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.extract.reply import ReplyError, read_reply, reply_schema

ROW = ("A", "r", "B", "A r B.")


def triples(text: str) -> list[tuple[str, str, str, str]]:
    facts, _ = read_reply(text)
    return [(t.head, t.relation, t.tail, t.evidence) for t in facts.triples]


def names(text: str) -> list[str]:
    return [e.name for e in read_reply(text)[0].entities]


@pytest.mark.parametrize(
    "text",
    [
        '{"entities": [], "triples": [{"head": "A", "relation": "r", "tail": "B", "evidence": "A r B."}]}',
        '```json\n[["A", "r", "B", "A r B."]]\n```',
        '{"Triples": [["A", "r", "B", "A r B."]]}',
        'Sure! {"triples": [["A", "r", "B", "A r B."]]}',
        '{"subject": "A", "predicate": "r", "object": "B", "sentence": "A r B."}',
        '[{"Subject": "A", "Predicate": "r", "Object": "B", "Quote": "A r B."}]',
        '{"result": {"data": {"relationships": [{"source": "A", "label": "r", "target": "B", "evidence": "A r B."}]}}}',
        '{"triples": {"1": {"head": "A", "relation": "r", "tail": "B", "evidence": "A r B."}}}',
        '{"triples": {"head": "A", "relation": "r", "tail": "B", "evidence": "A r B."}}',
        '<think>{"head": x}</think>{"facts": [["A", "r", "B", "A r B."]]}',
        "{'triples': [{'head': 'A', 'relation': 'r', 'tail': 'B', 'evidence': 'A r B.',}]}",
        '{"triples": [{"head": {"name": "A"}, "relation": ["r"], "tail": "B", "evidence": ["A r B."]}]}',
    ],
)
def test_one_triple_in_many_clothes(text: str) -> None:
    assert triples(text) == [ROW]


def test_a_wrong_item_is_dropped_alone_and_counted() -> None:
    text = json.dumps(
        {
            "entities": ["A", None, {"name": "B"}, ["C", "D"], True],
            "triples": [["A", "r"], ["A", "r", "B"], ["A", "r", "B", "x"], "A r B", {"head": "A", "tail": None}],
        }
    )
    facts, dropped = read_reply(text)
    assert [e.name for e in facts.entities] == ["A", "B"]
    assert triples(text) == [("A", "r", "B", ""), ("A", "r", "B", "x")]
    assert dropped == {"malformed": 6}


def test_a_number_is_taken_for_its_text() -> None:
    assert triples('{"triples": [{"head": "A", "relation": "in", "tail": 1911, "evidence": "A."}]}')[0][2] == "1911"


def test_entities_alone_and_as_a_table_of_types() -> None:
    assert names('{"entities": {"A": "person", "B": "place"}}') == ["A", "B"]
    assert names('[{"name": "A"}, {"name": "B"}]') == ["A", "B"]
    facts, _ = read_reply('{"nodes": [{"label": "A", "type": "person"}]}')
    assert (facts.entities[0].name, facts.entities[0].type) == ("A", "person")


@pytest.mark.parametrize("text", ['{"entities": [], "triples": []}', "[]", '{"triples": []}'])
def test_nothing_found_is_no_failure(text: str) -> None:
    facts, dropped = read_reply(text)
    assert (facts.entities, facts.triples, dropped) == ((), (), {})


def test_of_a_reply_that_breaks_off_the_last_item_is_left_out() -> None:
    whole = json.dumps({"triples": [list(ROW), ["C", "r", "Port Isk", "C r Port Isk."]]})
    cut = whole[: whole.index("Port Isk") + 4]
    facts, dropped = read_reply(cut)
    assert [t.head for t in facts.triples] == ["A"]
    assert dropped["cut off"] == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "an empty reply"),
        (" \n", "an empty reply"),
        ("I am sorry, but I cannot help with that.", "expected JSON with entities and triples, found: 'I am sorry"),
        ('{"answer": "BANANA"}', "expected JSON with entities and triples"),
        ("[1, 2, 3]", "expected JSON"),
        ('{"triples": [1, 2]}', "none of 2 items is an entity or a triple"),
    ],
)
def test_what_cannot_be_used_is_told(text: str, reason: str) -> None:
    with pytest.raises(ReplyError, match=reason):
        read_reply(text)


def test_the_schema_asks_for_the_names_that_are_read() -> None:
    lists = reply_schema()["properties"]
    row: dict[str, Any] = dict.fromkeys(lists["triples"]["items"]["required"], "x")
    assert triples(json.dumps({"triples": [row]})) == [("x", "x", "x", "x")]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["entities", "triples", "head", "tail", "name", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        facts, _ = read_reply(json.dumps(value))
    except ReplyError:
        return
    assert all(isinstance(t.head, str) and t.head and t.tail for t in facts.triples)
