from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tarn Mill burned. It reopened!  Did it? “Yes.” She left.", 5),
        ("It was built by Dr. Orla Venn and J. R. Moss in St. Gall.", 1),
        ("It cost 3.5 million, e.g. for mills.", 1),
        ("A heading\n\nA text without an end", 2),
        ("李明创办了海港书店。海港书店位于临川。", 2),
        ("क ख। ग घ।", 2),
        ("هل هذا؟ نعم.", 2),
        ("", 0),
        (" \n\t ", 0),
    ],
)
def test_sentences_of_many_scripts(text: str, expected: int) -> None:
    assert len(sentences(text)) == expected


@given(st.text(alphabet='aA .!\n。"', max_size=40))
def test_nothing_but_blanks_is_left_out(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(text[s:e].strip() == text[s:e] != "" for s, e in spans)
