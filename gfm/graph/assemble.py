"""Extractions to graph parts: a pure function of the set of passages and their extractions.

Order of input plays no part: passages are taken by id, entities sorted by key, facts by first passage and position.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import regex as re  # knows scripts and combining marks

from gfm.extract.extraction import Extraction, Statement
from gfm.graph.entity_table import EntityTable
from gfm.graph.linker import TitleLinker
from gfm.text.normalise import best_form, clean, name_key, plain_name, statement_text, strip_bracket
from gfm.types import GivenEntity, Passage

_LEADING = re.compile(r"^(?:the|a|an)\s+(?=\S)", re.IGNORECASE)
# Marks end names of many scripts (Hindi vowels, decomposed accents); U+2019 and U+201D are curly quotes.
_TRIM = re.compile(r"^[^\p{L}\p{N}]+|(?:['\u2019]s)?[^\p{L}\p{N}\p{M})\.!?\"\u201D]*$")
_BLOCK = re.compile(r"\n\s*\n|(?m:^#+[^\n]*\n)")


@dataclass
class GraphParts:
    """Everything of a graph but the synonym edges, which need vectors.

    Attributes:
        entities: (key, display name), sorted by key.
        facts: Texts, in order.
        fact_passages: Source passages of each fact.
        triples: (head, tail, fact, relation, weight), sorted by fact.
        mentions: int64[M, 2] of passage, entity; unique, sorted.
        subjects: int64[P], the entity each passage is about (its title), or -1.
        aliases: Entity pairs that are the same name with and without its bracket, or that share an alias.
        given: For each entity what was handed in of it, if anything.
        forms: For each entity the spellings that were found, with their counts, by the alphabet.
        descriptions: For each triple the words that were given beside its relation.
        apart: Groups of entities that share a form and are different things: never near-equal.
        self_loops: Number of given statements left out because both ends are one entity.
    """

    entities: list[tuple[str, str]]
    facts: list[str]
    fact_passages: list[tuple[int, ...]]
    triples: list[tuple[int, int, int, str, float]]
    mentions: np.ndarray
    subjects: np.ndarray
    aliases: list[tuple[int, int]]
    given: list[GivenEntity | None] = field(default_factory=list)
    forms: list[list[tuple[str, int]]] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    apart: list[tuple[int, ...]] = field(default_factory=list)
    self_loops: int = 0


@dataclass
class _Builder:
    """Collects by key; numbers are given out at the end, by sorted order."""

    forms: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    facts: dict[str, dict[int, None]] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    mentions: set[tuple[int, str]] = field(default_factory=set)
    subjects: list[str] = field(default_factory=list)
    weights: dict[tuple[str, str, str], float] = field(default_factory=dict)
    descriptions: dict[tuple[str, str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    self_loops: set[tuple[str, str]] = field(default_factory=set)

    def mention(self, passage: int, key: str, form: str) -> None:
        self.forms[key][form] += 1
        self.mentions.add((passage, key))

    def fact(self, passage: int, text: str) -> None:
        self.facts.setdefault(text, {})[passage] = None

    def triple(self, text: str, head: str, tail: str, relation: str) -> None:
        if head != tail:
            relations = self.triples.setdefault((text, head, tail), [])
            if relation and relation not in relations:
                relations.append(relation)


def assemble(
    passages: Sequence[Passage], extractions: Sequence[Extraction], table: EntityTable | None = None
) -> GraphParts:
    """Put the graph together.

    Args:
        passages: Sorted by id.
        extractions: One a passage.
        table: What is known of entities beside the texts.
    """
    table = table or EntityTable()
    linker = TitleLinker((p.title for p in passages), table)
    builder = _Builder()
    for number, (passage, extraction) in enumerate(zip(passages, extractions, strict=True)):
        names = _Names(linker, extraction)
        subject = names.subject(passage.title)
        builder.subjects.append(subject)
        if subject:
            builder.mention(number, subject, passage.title)
        if extraction.sentences:
            _sentence_facts(builder, names, number, passage, extraction, subject)
        for head, relation, tail in extraction.triples:
            text = statement_text(head, relation, tail)
            _statement(builder, names, number, Statement(text, head, relation, tail))
        for statement in extraction.statements:
            _statement(builder, names, number, statement)
        for name in extraction.names:
            if key := names.given(name):
                builder.mention(number, key, name)
    return _number(builder, linker, table)


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


def _statement(builder: _Builder, names: _Names, number: int, given: Statement) -> None:
    """One given statement; one of a thing about itself only mentions it, and is counted."""
    if not (given.head or given.tail):
        builder.fact(number, given.text)
        return
    head, tail = names.given(given.head), names.given(given.tail)
    if not (head and tail):
        return
    for key, form in ((head, given.head), (tail, given.tail)):
        builder.mention(number, key, form)
    if head == tail:
        builder.self_loops.add((head, given.text))
        return
    triple = (given.text, head, tail)
    builder.fact(number, given.text)
    builder.triple(*triple, clean(given.relation))
    if given.weight is not None:
        builder.weights[triple] = max(given.weight, builder.weights.get(triple, given.weight))
    if given.description:
        builder.descriptions[triple].add(given.description)


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


def _sentence_facts(
    builder: _Builder, names: _Names, number: int, passage: Passage, extraction: Extraction, subject: str
) -> None:
    spans = _spans(names, passage.text, extraction)
    for start, end, key in spans:
        builder.mention(number, key, passage.text[start:end])
    relations = _Relations(extraction, spans)
    bare = name_key(strip_bracket(passage.title))
    for sentence_start, sentence_end in _sentences(passage.text, extraction.sentences):
        sentence = clean(passage.text[sentence_start:sentence_end])
        if len(sentence) < 3:
            continue
        inside = [x for x in spans if sentence_start <= x[0] and x[1] <= sentence_end]
        named = not subject or any(key == subject for _, _, key in inside) or bare in name_key(sentence)
        text = sentence if named else f"{plain_name(names.linker.short(passage.title))}: {sentence}"
        builder.fact(number, text)
        head = subject or (inside[0][2] if inside else "")
        previous = head
        for start, end, key in inside:
            for source in dict.fromkeys((head, previous)):
                if source != key:
                    builder.triple(text, source, key, relations.between(source, start, end, source == subject))
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


def _number(builder: _Builder, linker: TitleLinker, table: EntityTable) -> GraphParts:
    keys = sorted(builder.forms)
    entity = {key: i for i, key in enumerate(keys)}
    fact = {text: i for i, text in enumerate(builder.facts)}
    forms = {key: _plain_forms(found) for key, found in builder.forms.items()}
    given = _given(linker, table)
    shown = {key: plain_name(entity.name) for key, entity in given.items()} | table.spellings()
    triples = sorted(
        (entity[head], entity[tail], fact[text], "; ".join(relations), builder.weights.get((text, head, tail), 1.0))
        for (text, head, tail), relations in builder.triples.items()
    )
    triples.sort(key=lambda t: t[2])
    mentions = np.array(sorted((p, entity[key]) for p, key in builder.mentions), dtype=np.int64).reshape(-1, 2)
    aliases = sorted((entity[form], entity[key]) for form, key in linker.aliases if form in entity and key in entity)
    groups = (tuple(entity[key] for key in group if key in entity) for group in table.shared().values())
    said = {
        (entity[head], entity[tail], fact[text]): " ".join(sorted(d))
        for (text, head, tail), d in builder.descriptions.items()
    }
    return GraphParts(
        entities=[(key, shown.get(key) or best_form(forms[key])) for key in keys],
        facts=list(builder.facts),
        fact_passages=[tuple(passages) for passages in builder.facts.values()],
        triples=triples,
        mentions=mentions,
        subjects=np.array([entity.get(key, -1) for key in builder.subjects], dtype=np.int64),
        aliases=aliases,
        given=[given.get(key) for key in keys],
        forms=[sorted(forms[key].items()) for key in keys],
        descriptions=[said.get(t[:3], "") for t in triples],
        apart=sorted({group for group in groups if len(group) > 1}),
        self_loops=len(builder.self_loops),
    )


def _given(linker: TitleLinker, table: EntityTable) -> dict[str, GivenEntity]:
    """Rows of the table by the key of their entity; its own before one that an alias or a title merges with it."""
    resolved = {linker.resolve_exactly(row.name): row for _, row in sorted(table.entities.items(), reverse=True)}
    return resolved | {key: row for key, row in table.entities.items() if linker.resolve_exactly(row.name) == key}


def _plain_forms(forms: Counter[str]) -> Counter[str]:
    """Spellings that look alike once markup and invisible characters are gone, counted together."""
    plain: Counter[str] = Counter()
    for form, count in forms.items():
        plain[plain_name(form)] += count
    return plain
