"""What a language model claims, held against the passage: only what stands there becomes part of an extraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gfm.extract.extraction import Extraction, Mention, Predicate, Statement
from gfm.extract.reply import FoundFacts, FoundTriple
from gfm.text.normalise import clean, name_key, plain_name, tokens
from gfm.text.sentences import sentence_spans

_PRONOUNS = {"he", "she", "it", "they"}
_NAMELESS = _PRONOUNS | {
    "i",
    "we",
    "you",
    "this",
    "that",
    "these",
    "those",
    "who",
    "which",
    "him",
    "her",
    "them",
    "his",
}
Span = tuple[int, int]
_OTHER_TYPE, _OTHER_RELATION, _OTHER_END = "entity of another type", "another relation", "an end of another type"
UNWANTED = {_OTHER_TYPE, _OTHER_RELATION, _OTHER_END}  # reasons that speak of the settings, not of the reply


class GroundedText:
    """A passage's text, in which names and quotations are found by their words: case and blanks play no part.

    Args:
        text: Of the passage.
    """

    def __init__(self, text: str):
        self.text = text
        self.sentences = sentence_spans(text)
        self._tokens = tokens(text)
        self._words = [word for word, _, _ in self._tokens]

    def find(self, quoted: str) -> Iterator[Span]:
        """Character spans of all places where the words of ``quoted`` stand in a row."""
        words = [word for word, _, _ in tokens(quoted)]
        n = len(words)
        for i in range(len(self._words) - n + 1 if n else 0):
            if self._words[i] == words[0] and self._words[i : i + n] == words:
                yield self._tokens[i][1], self._tokens[i + n - 1][2]

    def within(self, span: Span) -> list[Span]:
        """The sentences that a span touches."""
        return [s for s in self.sentences if s[0] < span[1] and span[0] < s[1]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Types and relations to keep, folded; all where a set is empty."""

    entity_types: frozenset[str]
    relation_types: frozenset[str]

    @classmethod
    def of(cls, entity_types: Iterable[str], relation_types: Iterable[str]) -> Wanted:
        """From the words of the settings."""
        return cls(frozenset(map(_folded, entity_types)), frozenset(map(_folded, relation_types)))


def ground(text: str, facts: FoundFacts, wanted: Wanted) -> tuple[Extraction, Counter[str]]:
    """The extraction of a passage, and how many claims were dropped for what reason.

    A name has to stand in the text. A statement needs an evidence that stands in the text and names one of its ends;
    the other end stands somewhere in the text, or is a pronoun for what the passage is about. What is embedded is the
    passage's own sentence, never the model's words.

    Args:
        text: Of the passage.
        facts: What the model claims.
        wanted: Types and relations to keep.
    """
    grounded, dropped = GroundedText(text), Counter[str]()
    types: dict[str, str] = {}
    for entity in facts.entities:
        if _folded(entity.name) in _NAMELESS or not any(grounded.find(entity.name)):
            dropped["entity not in the passage"] += 1
        elif wanted.entity_types and _folded(entity.type) not in wanted.entity_types:
            dropped[_OTHER_TYPE] += 1
        else:
            types.setdefault(name_key(entity.name), clean(entity.type))
    kept = []
    for triple in facts.triples:
        sentence = _sentence(grounded, triple)
        reason = _reason_against(grounded, triple, sentence, types, wanted)
        if reason or sentence is None:
            dropped[reason] += 1
        else:
            kept.append((triple, sentence))
    if not wanted.entity_types:
        for name in (name for triple, _ in kept for name in (triple.head, triple.tail)):
            if _folded(name) not in _PRONOUNS:
                types.setdefault(name_key(name), "")
    mentions = _mentions(grounded, types)
    predicates, statements = _relations(grounded, kept, mentions)
    found = Extraction(
        sentences=tuple(grounded.sentences), mentions=mentions, predicates=predicates, statements=statements
    )
    return found, dropped


def _folded(word: str) -> str:
    return name_key(word).replace("_", " ")


def _sentence(grounded: GroundedText, triple: FoundTriple) -> Span | None:
    """The sentence of the evidence that says most of a triple: with both ends, or the tail, or the head."""
    touched = (s for span in grounded.find(triple.evidence) for s in grounded.within(span))
    scored = [((2 * _in(grounded, triple.tail, s) + _in(grounded, triple.head, s)), s) for s in touched]
    best = max(scored, key=lambda pair: (pair[0], -pair[1][0]), default=(0, None))
    return best[1] if best[0] else None


def _in(grounded: GroundedText, name: str, sentence: Span) -> bool:
    return any(sentence[0] <= start and end <= sentence[1] for start, end in grounded.find(name))


def _reason_against(
    grounded: GroundedText, triple: FoundTriple, sentence: Span | None, types: dict[str, str], wanted: Wanted
) -> str:
    """Why a triple is dropped; empty where it stands."""
    if not triple.evidence.strip():
        return "no evidence"
    if not any(grounded.find(triple.evidence)):
        return "evidence not in the passage"
    if sentence is None:
        return "evidence names neither end"
    head, tail = _folded(triple.head), _folded(triple.tail)
    if tail in _NAMELESS or head in _NAMELESS - _PRONOUNS:
        return "an end without a name"
    if not any(grounded.find(triple.head)) or not any(grounded.find(triple.tail)):
        return "an end not in the passage"
    if wanted.relation_types and _folded(triple.relation) not in wanted.relation_types:
        return _OTHER_RELATION
    ends = {name_key(triple.head), name_key(triple.tail)} - _PRONOUNS
    return _OTHER_END if wanted.entity_types and not ends <= set(types) else ""


def _mentions(grounded: GroundedText, types: dict[str, str]) -> tuple[Mention, ...]:
    """Where the names stand; of two that overlap the longer one counts."""
    places = [(start, end, types[name]) for name in types for start, end in grounded.find(name)]
    taken: list[Mention] = []
    for start, end, label in sorted(places, key=lambda p: (p[0] - p[1], p[0], p[2])):
        if all(end <= m.start or m.end <= start for m in taken):
            taken.append(Mention(start, end, label))
    return tuple(sorted(taken, key=lambda m: m.start))


def _relations(
    grounded: GroundedText, kept: Sequence[tuple[FoundTriple, Span]], mentions: Sequence[Mention]
) -> tuple[tuple[Predicate, ...], tuple[Statement, ...]]:
    """Triples in the two forms that the graph takes.

    A sentence links each of its names with the one before it, and with the passage's subject: there a predicate names
    the link. Any other pair, or the other direction, is a statement of its own with the same sentence.
    """
    predicates: dict[Predicate, None] = {}
    statements: dict[Statement, None] = {}
    for triple, sentence in kept:
        relation = clean(triple.relation)
        heads, tails = ([s for s in grounded.find(n) if _inside(s, sentence)] for n in (triple.head, triple.tail))
        pronoun = _folded(triple.head) in _PRONOUNS
        if tails and heads and (pronoun or _neighbours(heads[0], tails[0], mentions)):
            object_word, subject_word = _last_word(grounded.text, tails[0]), _last_word(grounded.text, heads[0])
            predicates[Predicate(object_word, subject_word, pronoun, relation)] = None
        elif not pronoun:
            text = clean(grounded.text[sentence[0] : sentence[1]])
            head, tail = (_spelling(grounded, name) for name in (triple.head, triple.tail))
            shown = text if heads else f"{plain_name(head)}: {text}"
            statements[Statement(shown, head, relation, tail)] = None
    return tuple(sorted(predicates, key=lambda p: (p.object, p.subject, p.text))), tuple(statements)


def _inside(span: Span, sentence: Span) -> bool:
    return sentence[0] <= span[0] and span[1] <= sentence[1]


def _last_word(text: str, span: Span) -> int:
    """Where the last word of a name begins: it is part of the name however much is trimmed off its beginning."""
    return max(span[0], text.rfind(" ", *span) + 1)


def _neighbours(head: Span, tail: Span, mentions: Sequence[Mention]) -> bool:
    """Whether the head comes before the tail with no other name between them."""
    return head[1] <= tail[0] and not any(head[1] <= m.start and m.end <= tail[0] for m in mentions)


def _spelling(grounded: GroundedText, name: str) -> str:
    """A name as the passage spells it first."""
    start, end = next(grounded.find(name))
    return grounded.text[start:end]
