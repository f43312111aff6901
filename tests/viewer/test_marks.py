"""Where the words of facts stand in passages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.text.normalise import clean, is_visible
from gfm.viewer.marks import name_pattern, name_spans, sentence_span


@pytest.mark.parametrize(
    ("sentence", "text", "shown"),
    [
        ("It was built in 1911.", "Tarn Mill stands. It was built in 1911. It is red.", "It was built in 1911."),
        ("Tarn Mill: It was built in 1911.", "It was built in 1911.", "It was built in 1911."),
        ("Film: Part 2: It was shot in 1911.", "Well. It was shot in 1911.", "It was shot in 1911."),
        ("He said: go on.", "Once he spoke. He said: go on. They went.", "He said: go on."),
        ("It was built by Orla.", "It was\n  built\u200b by Orla. More.", "It was\n  built\u200b by Orla."),
        ("Ona żyła.", "🚀 Ona żyła.", "Ona żyła."),
        ("它在海边。", "钟楼。它在海边。", "它在海边。"),
    ],
)
def test_a_sentence_is_found_as_it_stands_in_the_passage(sentence: str, text: str, shown: str) -> None:
    span = sentence_span(sentence, text)
    assert span is not None
    assert text[slice(*span)] == shown


@pytest.mark.parametrize("sentence", ["Tarn Mill built by Orla Venn", "", "A: ", "\u200b"])
def test_a_sentence_worded_otherwise_is_not_found(sentence: str) -> None:
    assert sentence_span(sentence, "Tarn Mill was built by Orla Venn.") is None


@settings(max_examples=40, deadline=None)
@given(st.text(), st.text(), st.text())
def test_what_was_cleaned_is_found_again(before: str, part: str, after: str) -> None:
    seen = [c for c in clean(part) if is_visible(c)]
    span = sentence_span(clean(part), before + part + after)
    assert (span is not None) == bool(seen)
    if span is not None:
        assert [c for c in (before + part + after)[slice(*span)] if is_visible(c)] == seen


@pytest.mark.parametrize(
    ("names", "text", "shown"),
    [
        ({"Orla Venn"}, "Orla Venn met orla\n venn, not Orla Vennston.", ["Orla Venn", "orla\n venn"]),
        ({"Mill", "Tarn Mill"}, "Tarn Mill is a mill.", ["Tarn Mill", "mill"]),
        ({"C++ (language)"}, "He wrote C++ (language).", ["C++ (language)"]),
        ({"钟楼"}, "这座钟楼在海边", ["钟楼"]),
        ({"art"}, "The artist started.", []),
        (set(), "Nothing.", []),
        ({" "}, "Nothing here.", []),
    ],
)
def test_names_are_found_as_whole_words(names: set[str], text: str, shown: list[str]) -> None:
    assert [text[start:end] for start, end in name_spans(name_pattern(names), text)] == shown
