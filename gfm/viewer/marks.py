"""Where the words of a statement stand in a passage."""

from __future__ import annotations

import re
from collections.abc import Collection

from gfm.text.normalise import is_visible

Span = tuple[int, int]


def sentence_span(sentence: str, text: str) -> Span | None:
    """Where a fact's sentence stands in a passage; None where it was worded otherwise.

    A fact has the sentence with its spaces collapsed and invisible characters dropped, often with the title before it
    ("Tarn Mill: It was built in 1911."), so only what can be seen is compared, with and without such a beginning.

    Returns:
        First character and end (exclusive) in ``text``.
    """
    places = [i for i, c in enumerate(text) if is_visible(c)]
    seen = "".join(text[i] for i in places)
    while sentence:
        wanted = "".join(c for c in sentence if is_visible(c))
        at = seen.find(wanted)
        if wanted and at >= 0:
            return places[at], places[at + len(wanted) - 1] + 1
        sentence = sentence.partition(": ")[2]
    return None


def name_pattern(names: Collection[str]) -> re.Pattern[str]:
    """Finds any of some names, whatever their case and the spaces in them; the longest of those that begin together."""
    ordered = sorted({" ".join(name.split()) for name in names} - {""}, key=lambda name: (-len(name), name))
    either = "|".join(r"\s+".join(map(re.escape, name.split())) for name in ordered) or r"(?!)"
    return re.compile(either, re.IGNORECASE)


def name_spans(pattern: re.Pattern[str], text: str) -> list[Span]:
    """Where a pattern of `name_pattern` finds names in a text: whole words, or anything where there are none such.

    The second is for scripts that put no spaces between words.
    """
    found = [match.span() for match in pattern.finditer(text)]
    whole = [(start, end) for start, end in found if not (_joined(text, start) or _joined(text, end))]
    return whole or [(start, end) for start, end in found if not text[start:end].isascii()]


def _joined(text: str, place: int) -> bool:
    """Whether a word goes on across a place in a text."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
