"""The nouns of the system. Every room speaks in these; none of them reads or writes a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class GfmError(Exception):
    """Something a person can mend: says what was expected, what was found, and the command that mends it."""


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading of a document, the heading itself left out.

    Attributes:
        title: What its passages are about: the document's title, with the headings above the section in brackets.
        start: First character of the span in the document (inclusive).
        end: End of the span in the document (exclusive).
    """

    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """One source text.

    Attributes:
        id: Unique among the documents of an index.
        title: What the document is about; may be empty.
        text: The whole text; never blank.
        metadata: Free fields kept as they came. Under ``sources``, a document read from a file has the names of all
            files that hold it, sorted.
        sections: In order, where the text has headings; passages are cut from them alone. Empty where it has none.
    """

    id: str
    title: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document: ``document.text[start:end] == text``.

    Attributes:
        id: The document's id, followed by ``#k`` where a document makes several passages.
        title: That of the document, or of the section that it was cut from.
        start: First character of the span in the document (inclusive).
        end: End of the span in the document (exclusive).
    """

    id: str
    document_id: str
    title: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Triple:
    """A directed statement about two entities, with the sentence that is embedded for it.

    Attributes:
        head: Display name of the subject.
        relation: The predicate for people to read; may be empty where only the sentence is known.
        tail: Display name of the object.
        text: The sentence whose vector stands for this triple.
        weight: Strength of the statement, 1.0 unless imported.
        passage_ids: The passages that state it.
    """

    head: str
    relation: str
    tail: str
    text: str
    weight: float
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entity:
    """A named thing of the graph, by its normal key and its best-looking name.

    Attributes:
        type: What kind of thing it is, where somebody told (an imported graph); else empty.
        description: What somebody told of it; else empty.
    """

    key: str
    name: str
    type: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class GivenEntity:
    """An entity as somebody hands it in, with a graph of their own.

    Attributes:
        name: Its name; may be empty where it has an id.
        id: What tells it from another entity of the same name; empty where the name alone does.
        aliases: Other names of it.
        passage_ids: Documents, or passages of them, that mention it.
        place: The file and line that it was read from, for messages.
    """

    name: str
    id: str = ""
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class GivenTriple:
    """A statement as somebody hands it in; without head and tail, a sentence (``text``) that links no two entities.

    Attributes:
        passage_ids: Documents, or passages of them, that state it.
        weight: Its strength; None where none was given, which counts as 1.
        description: More words on the relation.
        text: The sentence to embed, where it is not made of the names, the relation and the description.
        head_id: Id of the subject; empty where its name is enough.
        head_type: Type of the subject, to tell it from another of its name.
        place: The file and line that it was read from, for messages.
    """

    head: str
    relation: str
    tail: str
    passage_ids: tuple[str, ...] = ()
    weight: float | None = None
    description: str = ""
    text: str = ""
    head_id: str = ""
    tail_id: str = ""
    head_type: str = ""
    tail_type: str = ""
    place: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A question. ``metadata`` carries what a benchmark knows of it (type, answer, …)."""

    id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit(Generic[T]):
    """One result. ``rank`` counts from 1; the order is total: score descending, then id ascending."""

    item: T
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of an evidence path: from one node to the next over one statement.

    Attributes:
        source: Name of the node that the step leaves.
        kind: ``fact``, ``inverse fact`` (from its tail to its head), ``synonym``, ``mention``, or ``subject`` (the
            passage is about the entity).
        text: What a reader sees on the arrow (the sentence of a fact; empty for the others).
        target: Name of the node that the step reaches.
        passage_id: The passage that states it (empty for a synonym).
    """

    source: str
    kind: str
    text: str
    target: str
    passage_id: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What any retriever returns; the context builder and every report see only this.

    Attributes:
        score_unit: What a passage score means ("relevance", "cosine", "BM25", …).
        paths: For each returned passage id with one, the evidence path from a seed entity to it.
        trace: What the retriever did: seeds, hops, kept, pruned, reach, fallback; JSON-ready.
        seconds: Wall time by stage.
    """

    query: Query
    entities: list[Hit[Entity]]
    triples: list[Hit[Triple]]
    passages: list[Hit[Passage]]
    score_unit: str
    paths: dict[str, list[PathStep]] = field(default_factory=dict)
    trace: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """Entry ``n`` of a context: the passage and the character span in its document that it was taken from."""

    n: int
    passage_id: str
    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Context:
    """Text for a language model: ``num_tokens`` counts the finished text and never exceeds the budget.

    Attributes:
        cut: The ids of the facts and passages that did not fit, best first.
    """

    text: str
    sources: list[Source]
    num_tokens: int
    cut: list[str]
