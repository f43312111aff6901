from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.llm.json_reply import read_json, without_reasoning


def weigh(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else -1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n[["A", "r", "B"]]\n```', [["A", "r", "B"]]),
        ('Sure! {"triples": [1]} Anything else?', {"triples": [1]}),
        ('<think>try {x} or [y]</think>{"keywords": ["mill"]}', {"keywords": ["mill"]}),
        ('<think>try {x} or [y] {"keywords": ["mill"]}', {"keywords": ["mill"]}),
        ('or {"keywords": ["no"]}</think>{"keywords": ["mill"]}', {"keywords": ["mill"]}),
        ("{'a': 'b',}", {"a": "b"}),
        ('{"a": 1, // why\n "b": 2}', {"a": 1, "b": 2}),
        ('first {"a": 1} then {"a": 2}', {"a": 2}),
        ('{"a": {"b": 1, "c": 2}}', {"a": {"b": 1, "c": 2}}),
        ("[]", []),
    ],
)
def test_the_value_is_found(text: str, value: Any) -> None:
    found = read_json(text, weigh)
    assert found is not None
    assert found.value == value
    assert not found.cut


@pytest.mark.parametrize("text", ["", "I am sorry.", "[sorry] {no}", "<think>hm", "[" * 5000, '{"a":' * 3000])
def test_what_is_no_json_is_none(text: str) -> None:
    assert read_json(text, lambda value: -1 if value in ([], {}) else weigh(value)) is None or text[0] in "[{"


def test_a_reply_that_breaks_off_is_mended_and_told() -> None:
    found = read_json('```json\n{"triples": ["one", "two", "thr', lambda v: len(v.get("triples", "")) if v else -1)
    assert found is not None
    assert found.value["triples"][:2] == ["one", "two"]
    assert found.cut


def test_only_the_thought_is_dropped() -> None:
    assert without_reasoning("<think>a</think> b <THINK>c</THINK>d") == " b d"
    assert without_reasoning("a</think>b") == "b"


@given(st.text(alphabet='[]{}":,a\n 1<think>/', max_size=80))
def test_any_text_gives_a_value_or_none(text: str) -> None:
    found = read_json(text, weigh)
    assert found is None or isinstance(found.value, list | dict)
