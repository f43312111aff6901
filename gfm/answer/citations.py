"""Citations in an answer: those of sources that are not there are taken out, also while the answer is still coming."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gfm.text.normalise import tokens
from gfm.text.sentences import sentence_spans

# Lenticular brackets are what some hosted models write.
_CITATION = re.compile(r"\s*[\[【](\s*\d[\d\s,;\u2013-]*)[\]】]")
_MAYBE_CITATION = re.compile(r"\s*(?:[\[【][\d\s,;\u2013-]*)?$")
_RANGE = re.compile(r"(\d+)\s*[\u2013-]\s*(\d+)|(\d+)")
_OPEN, _CLOSE = "<think>", "</think>"
_MOST_OF_A_RANGE = 50
_LEAST_LETTERS = 4  # of a word that tells what a sentence is about; numbers always do


@dataclass
class CitationFilter:
    """Passes an answer on piece by piece, without reasoning before it and without citations of unknown sources.

    Attributes:
        known: Numbers of the sources.
        cited: Known numbers in the order in which they first came.
        removed: Unknown numbers, so.
    """

    known: Collection[int]
    cited: dict[int, None] = field(default_factory=dict)
    removed: dict[int, None] = field(default_factory=dict)
    _held: str = ""
    _begun: bool = False

    def feed(self, piece: str) -> str:
        """What of the answer so far is certain and new."""
        self._held += piece
        if not self._begun and not self._past_reasoning():
            return ""
        tail = _MAYBE_CITATION.search(self._held)
        certain = tail.start() if tail else len(self._held)
        out, self._held = self._held[:certain], self._held[certain:]
        return self._checked(out)

    def close(self) -> str:
        """The rest."""
        if not self._begun and not self._past_reasoning(at_end=True):
            self._held = ""
        out, self._held = self._held, ""
        return self._checked(out)

    def _past_reasoning(self, at_end: bool = False) -> bool:
        """Whether the answer proper has begun; a thought before it is dropped."""
        text = self._held.lstrip()
        if not at_end and _OPEN.startswith(text[: len(_OPEN)].lower()) and len(text) < len(_OPEN):
            return False
        if text[: len(_OPEN)].lower() == _OPEN:
            _, closed, text = text.partition(_CLOSE)
            if not closed:
                return False
            text = text.lstrip()
        self._held, self._begun = text, bool(text)
        return self._begun

    def _checked(self, text: str) -> str:
        return _CITATION.sub(self._kept, text)

    def _kept(self, found: re.Match[str]) -> str:
        numbers = _numbers(found[1])
        known = [n for n in numbers if n in self.known]
        self.cited |= dict.fromkeys(known)
        self.removed |= dict.fromkeys(n for n in numbers if n not in self.known)
        blanks = found[0][: len(found[0]) - len(found[0].lstrip())]
        return f"{blanks}[{', '.join(map(str, known))}]" if known else ""


def _numbers(inside: str) -> list[int]:
    """1, 2 and 3 of "1, 2-3"; the ends alone of a range that is too long to be meant."""
    out: dict[int, None] = {}
    for first, last, alone in _RANGE.findall(inside):
        low, high = (int(alone), int(alone)) if alone else (int(first), int(last))
        out |= dict.fromkeys(range(low, high + 1) if 0 <= high - low <= _MOST_OF_A_RANGE else (low, high))
    return list(out)


def unsupported(text: str, sources: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """Sentences to be careful with.

    Args:
        text: Of the answer, its citations checked.
        sources: Title and text of each source, by its number.

    Returns:
        Sentences without any citation, and sentences of which no telling word stands in a source that they cite.
    """
    uncited, strange = [], []
    for sentence, numbers in _sentences(text):
        if not numbers:
            uncited.append(sentence)
            continue
        said = _telling(sentence)
        if said and not any(said & _telling(sources.get(n, "")) for n in numbers):
            strange.append(sentence)
    return uncited, strange


def _sentences(text: str) -> list[tuple[str, list[int]]]:
    """Each sentence with its citations, also where they follow its full stop."""
    out: list[tuple[str, list[int]]] = []
    moved = re.sub(rf"([.!?。])((?:{_CITATION.pattern})+)", r"\2\1", text)  # "… in 1911. [1]" cites as "… in 1911 [1]."
    for start, end in sentence_spans(moved):
        sentence = moved[start:end]
        numbers = [n for found in _CITATION.finditer(sentence) for n in _numbers(found[1])]
        bare = _CITATION.sub("", sentence).strip()
        if tokens(bare):
            out.append((bare, numbers))
    return out


def _telling(text: str) -> set[str]:
    plain = _CITATION.sub("", text)
    return {
        word
        for word, start, end in tokens(plain)
        if end - start >= _LEAST_LETTERS or any(c.isdigit() for c in word) or not word.isascii()
    }


def cited_in_order(filtered: CitationFilter, numbers: Sequence[int]) -> list[int]:
    """The sources that were cited, in their own order."""
    return [n for n in numbers if n in filtered.cited]
