"""Sentences without a parser, by their marks, in any script."""

from __future__ import annotations

import regex as re  # knows scripts

_CLOSING = "\"'\u201d\u2019»)\\]"
# A full stop ends a sentence where a blank and something that may begin one follow; the stops of scripts written
# without blanks (\uff01, \uff1f and \uff09 are full-width signs) end it by themselves; a blank line ends everything.
_END = re.compile(
    rf"[.!?…؟\u06d4।॥][{_CLOSING}]*(?=\s+[\"'\u201c\u2018«(\[]*[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}])"
    rf"|[。\uff01\uff1f｡][」』\uff09\u201d\u2019]*|(?=\n\s*\n)"
)
# "Dr. Moss" and "J. Moss" are no ends. Single letters of scripts without capitals never stand before a full stop.
_ABBREVIATION = re.compile(
    r"(?<![\p{L}\p{M}])(?:\p{Lu}|Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|Mt|Gen|Col|Lt|Capt|Rev|Hon|No|Nr|vs|cf|ca|approx|e\.g|i\.e"
    r"|etc|al|Fig|vol|Vol|pp|bzw|z\.B|Bd)\.$"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, without the blanks at their ends; together they hold all else of the text."""
    spans, start = [], 0
    for end in _END.finditer(text):
        if _ABBREVIATION.search(text, max(start, end.end() - 8), end.end()):
            continue
        spans.append((start, end.end()))
        start = end.end()
    return [span for s, e in [*spans, (start, len(text))] if (span := _stripped(text, s, e))]


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    return (start, end) if start < end else None
