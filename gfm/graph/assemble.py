"""Extractions to graph parts: a pure function of the set of passages and their extractions.

Order of input plays no part: passages are taken by id, entities sorted by key, facts by first passage and position.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import regex as re  # knows scripts and combining marks

from gfm.extract.extraction import Extraction, Statement
from gfm.graph.entity_table import EntityTable
from gfm.graph.linker import TitleLinker
from gfm.graph.occurrences import NOTHING, Reading, merge
from gfm.graph.parts import GraphParts, number
from gfm.text.normalise import clean, name_key, plain_name, statement_text, strip_bracket
from gfm.types import Passage

# Goes up with every change to what a text says: to splitting, names, the linker or this file. An index whose rules are
# older is read again as a whole when something is added to it. tests/graph/test_assemble.py notices a change.
RULES = 1

_LEADING = re.compile(r"^(?:the|a|an)\s+(?=\S)", re.IGNORECASE)
# Marks end names of many scripts (Hindi vowels, decomposed accents); U+2019 and U+201D are curly quotes.
_TRIM = re.compile(r"^[^\p{L}\p{N}]+|(?:['\u2019]s)?[^\p{L}\p{N}\p{M})\.!?\"\u201D]*$")
_BLOCK = re.compile(r"\n\s*\n|(?m:^#+[^\n]*\n)")


def read(linker: TitleLinker, passage: Passage, extraction: Extraction) -> Reading:
    """What one passage says: a pure function of it, of its extraction, and of what ``linker`` answers for its names."""
    names = _Names(linker, extraction)
    reading = Reading(subject=names.subject(passage.title))
    if reading.subject:
        reading.mention(reading.subject, passage.title)
    if extraction.sentences:
        _sentence_facts(reading, names, passage, extraction)
    for head, relation, tail in extraction.triples:
        _statement(reading, names, Statement(statement_text(head, relation, tail), head, relation, tail))
    for statement in extraction.statements:
        _statement(reading, names, statement)
    for name in extraction.names:
        if key := names.given(name):
            reading.mention(key, name)
    return reading


def assemble(
    passages: Sequence[Passage], extractions: Sequence[Extraction], table: EntityTable | None = None
) -> GraphParts:
    """Put the graph together.

    Args:
        passages: Sorted by id.
        extractions: One a passage.
        table: What is known of entities beside the texts.
    """
    linker = TitleLinker((p.title for p in passages), table)
    readings = ((i, read(linker, p, x)) for i, (p, x) in enumerate(zip(passages, extractions, strict=True)))
    return number(merge(NOTHING, np.zeros(0, np.int64), readings, len(passages)), linker)


class _Names:
    """Names as one passage means them: a form that several entities share is the one that the passage is given.

    Args:
        linker: Of the titles and aliases of all passages.
        extraction: Of the passage.
    """

    def __init__(self, linker: TitleLinker, extraction: Extraction):
        self.linker = linker
        ends = (name for s in extraction.statements for name in (s.head, s.tail))
        ends_of_triples = (name for h, _, t in extraction.triples for name in (h, t))
        found = (linker.resolve_exactly(name) for name in (*extraction.names, *ends, *ends_of_triples))
        self._senses = linker.senses(found)

    def _meant(self, key: str) -> str:
        return self._senses.get(key, key)

    def subject(self, title: str) -> str:
        """Key of what the passage is about."""
        return self._meant(self.linker.subject(title))

    def given(self, name: str) -> str:
        """Key of a name that was handed in."""
        return self._meant(self.linker.resolve_exactly(name))

    def mentioned(self, name: str) -> str:
        """Key of a name in the text."""
        return self._meant(self.linker.resolve(name))

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, key) of titles and aliases in the text."""
        return [(start, end, self._meant(key)) for start, end, key in self.linker.find(text)]


def _statement(reading: Reading, names: _Names, given: Statement) -> None:
    """One given statement; one of a thing about itself only mentions it, and is counted."""
    if not (given.head or given.tail):
        reading.fact(given.text)
        return
    head, tail = names.given(given.head), names.given(given.tail)
    if not (head and tail):
        return
    for key, form in ((head, given.head), (tail, given.tail)):
        reading.mention(key, form)
    if head == tail:
        reading.self_loops.add((head, given.text))
        return
    reading.fact(given.text)
    reading.triple(given.text, head, tail, clean(given.relation), given.weight)
    if given.description:
        reading.descriptions.add((given.text, head, tail, given.description))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a span: outer punctuation, a leading article and a possessive ending are no part of a name."""
    name = _TRIM.sub("", text[start:end])
    start = text.index(name, start) if name else end
    if article := _LEADING.match(name):
        start += article.end()
        name = name[article.end() :]
    return start, start + len(name)


def _spans(names: _Names, text: str, extraction: Extraction) -> list[tuple[int, int, str]]:
    """(start, end, key) of every name in the text: titles, and named entities that are not just such a title."""
    spans = names.find(text)
    starts = [start for start, _, _ in spans]
    ends = [end for _, end, _ in spans]
    for mention in extraction.mentions:
        start, end = _trim(text, mention.start, mention.end)
        title = bisect_right(starts, start) - 1  # titles do not overlap: only the last that starts before can hold it
        inside = title >= 0 and end <= ends[title]
        if end - start > 1 and not inside and (key := names.mentioned(text[start:end])):
            spans.append((start, end, key))
    return sorted(spans)


def _sentence_facts(reading: Reading, names: _Names, passage: Passage, extraction: Extraction) -> None:
    subject = reading.subject
    spans = _spans(names, passage.text, extraction)
    for start, end, key in spans:
        reading.mention(key, passage.text[start:end])
    relations = _Relations(extraction, spans)
    bare = name_key(strip_bracket(passage.title))
    for sentence_start, sentence_end in _sentences(passage.text, extraction.sentences):
        sentence = clean(passage.text[sentence_start:sentence_end])
        if len(sentence) < 3:
            continue
        inside = [x for x in spans if sentence_start <= x[0] and x[1] <= sentence_end]
        named = not subject or any(key == subject for _, _, key in inside) or bare in name_key(sentence)
        text = sentence if named else f"{plain_name(names.linker.short(passage.title))}: {sentence}"
        reading.fact(text)
        head = subject or (inside[0][2] if inside else "")
        previous = head
        for start, end, key in inside:
            for source in dict.fromkeys((head, previous)):
                if source != key:
                    reading.triple(text, source, key, relations.between(source, start, end, source == subject))
            previous = key


def _sentences(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sentence spans, also ended by blank lines and headings, wherever the parse ended them."""
    blocks = [block.span() for block in _BLOCK.finditer(text)]
    out = []
    for start, end in spans:
        for block_start, block_end in blocks:
            if block_start < end and start < block_end:
                out.append((start, block_start))
                start = block_end
        out.append((start, end))
    return [(s, e) for s, e in out if text[s:e].strip()]


class _Relations:
    """The predicates of one passage by the names at their ends.

    Args:
        extraction: Of the passage.
        spans: (start, end, key) of the names in its text.
    """

    def __init__(self, extraction: Extraction, spans: Sequence[tuple[int, int, str]]):
        self._predicates = sorted(extraction.predicates, key=lambda p: p.object)
        self._objects = [p.object for p in self._predicates]
        self._subjects = [{key for s, e, key in spans if s <= p.subject < e} for p in self._predicates]

    def between(self, head: str, start: int, end: int, is_subject: bool) -> str:
        """The predicate from ``head`` to the name at [start, end); empty where the parse gave no clean one.

        Args:
            head: Entity key.
            start: First character of the name.
            end: End of the name (exclusive).
            is_subject: Whether ``head`` is the passage's own subject, for which a pronoun may stand.
        """
        for i in range(bisect_left(self._objects, start), bisect_left(self._objects, end)):
            predicate = self._predicates[i]
            if head in self._subjects[i] or (is_subject and predicate.pronoun):
                return predicate.text
        return ""
