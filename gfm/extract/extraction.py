"""What an extractor says of one passage: a pure value, cached by the hash of the text and of the extractor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from gfm.types import Passage


@dataclass(frozen=True, slots=True)
class Mention:
    """A named entity in the text, ``text[start:end]``, with the extractor's label for it."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """The word at ``object`` stands to the word at ``subject`` in the relation ``text`` ("born in").

    Attributes:
        object: First character of the object's syntactic head word.
        subject: First character of the subject's syntactic head word.
        pronoun: Whether the subject is a pronoun, so that the passage's own subject may be meant.
    """

    object: int
    subject: int
    pronoun: bool
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A given fact that carries more than three names; without head and tail, a sentence that links no two entities.

    Attributes:
        text: The sentence that is embedded.
        weight: Its strength; None where none was given.
        description: More words on the relation, where they were given.
    """

    text: str
    head: str = ""
    relation: str = ""
    tail: str = ""
    weight: float | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Facts of one passage, independent of every other passage.

    Attributes:
        sentences: Character spans of the sentences.
        mentions: Named entities, by position.
        predicates: Clean predicates of a dependency parse, by position of the object.
        triples: (head, relation, tail) given or extracted as such.
        statements: Triples with a sentence, a weight or a description of their own, and sentences without a triple.
        names: Entities that the passage mentions, where their place in the text is not known.
        failure: Why the extractor could make nothing of the passage; never cached, so the next build asks again.
    """

    sentences: tuple[tuple[int, int], ...] = ()
    mentions: tuple[Mention, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    statements: tuple[Statement, ...] = ()
    names: tuple[str, ...] = ()
    failure: str = ""

    def to_json(self) -> str:
        """One JSON line, read back by `from_json`; what only given graphs have is left out where there is none."""
        rows: dict[str, Any] = {
            "sentences": self.sentences,
            "mentions": [(m.start, m.end, m.label) for m in self.mentions],
            "predicates": [(p.object, p.subject, int(p.pronoun), p.text) for p in self.predicates],
            "triples": self.triples,
        }
        if self.statements:
            rows["statements"] = [
                (s.text, s.head, s.relation, s.tail, s.weight, s.description) for s in self.statements
            ]
        if self.names:
            rows["names"] = self.names
        return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Extraction:
        """The inverse of `to_json`."""
        row = json.loads(line)
        return cls(
            tuple((s, e) for s, e in row["sentences"]),
            tuple(Mention(*m) for m in row["mentions"]),
            tuple(Predicate(o, s, bool(p), t) for o, s, p, t in row["predicates"]),
            tuple((h, r, t) for h, r, t in row["triples"]),
            tuple(Statement(*s) for s in row.get("statements", ())),
            tuple(row.get("names", ())),
        )


class Extractor(Protocol):
    """What the index builder asks of an extractor.

    Attributes:
        name: By which `restore_extractor` makes it again.
        cached: Whether an extraction depends on the passage's text and on ``settings`` alone, so that the cache may
            keep it by their hash.
        rows: What else it takes to make it again, as JSON lists that begin with a kind; an index keeps them.
    """

    name: str
    cached: bool
    rows: Sequence[str]

    @property
    def settings(self) -> str:
        """Everything that its output depends on besides the text; part of the cache key."""

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage, in order. ``progress`` names a bar shown on a terminal."""


@runtime_checkable
class CostlyExtractor(Extractor, Protocol):
    """An extractor whose every extraction costs money or minutes: the cache keeps each as soon as it is there."""

    def extract_each(self, passages: Sequence[Passage], progress: str = "") -> Iterator[tuple[int, Extraction]]:
        """Extractions with the number of their passage, in the order in which they come."""


def unite(extractions: Sequence[Extraction]) -> Extraction:
    """What several extractors say of one passage, put together in their order."""
    first, *rest = extractions
    for other in rest:
        first = Extraction(
            first.sentences + other.sentences,
            first.mentions + other.mentions,
            first.predicates + other.predicates,
            first.triples + other.triples,
            first.statements + other.statements,
            first.names + other.names,
            first.failure or other.failure,
        )
    return first
