"""A graph that somebody already has, as the extractor: no language model, no parse."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gfm.extract.extraction import Extraction, Statement
from gfm.extract.resolve import Resolved, resolve, table_of
from gfm.extract.rows import read_triple_rows
from gfm.text.chunk import embedded_text
from gfm.text.normalise import name_key, statement_text
from gfm.types import GfmError, GivenEntity, GivenTriple, Passage


class GivenGraph:
    """An extractor that looks up what is given of a passage.

    Args:
        resolved: The rows, each name an entity of its own; each triple with a passage or document that states it.

    Attributes:
        cached: False: what is given belongs to a passage id, so a cache by the hash of the text would mix it up.
        settings: Changes with every row.
        rows: One JSON list a row: ``entity`` or ``triple``, and its fields; they make the same graph again.
        resolved: As given, triples by passage; its table is what the graph has to know.
    """

    name = "given"
    cached = False

    def __init__(self, resolved: Resolved):
        # Rows of the same passages stay in order; that of the passages plays no part.
        self.resolved = replace(resolved, triples=sorted(resolved.triples, key=lambda t: t.passage_ids))
        self.rows: Sequence[str] = [
            *(_row("entity", entity) for entity in self.resolved.entities),
            *(_row("triple", triple) for triple in self.resolved.triples),
        ]
        digest = hashlib.sha256("\n".join(sorted(self.rows)).encode("utf-8", "surrogatepass"))
        self.settings = f"given-3:{digest.hexdigest()}"
        self._given = _by_passage(self.resolved)

    @staticmethod
    def restore(rows: Sequence[str]) -> GivenGraph:
        """The graph that has these ``rows``."""
        found: dict[str, list[dict[str, Any]]] = {"entity": [], "triple": []}
        for kind, fields in map(json.loads, rows):
            found[kind].append({k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
        return _graph_of([GivenEntity(**e) for e in found["entity"]], [GivenTriple(**t) for t in found["triple"]])

    def documents(self, known: Collection[str]) -> set[str]:
        """Which of the ``known`` documents it speaks of."""
        rows: list[GivenEntity | GivenTriple] = [*self.resolved.entities, *self.resolved.triples]
        return {document_of(p, known) for row in rows for p in row.passage_ids} & set(known)

    def of(self, document: str, known: Collection[str]) -> list[GivenTriple]:
        """The triples of one of the ``known`` documents, in order."""
        return [t for t in self.resolved.triples if document in {document_of(p, known) for p in t.passage_ids}]

    def without(self, documents: Collection[str], known: Collection[str]) -> GivenGraph:
        """The same but for what some of the ``known`` documents say.

        Triples that no passage states any more are gone, and entities that only such passages and triples named.
        """

        def left(passages: Sequence[str]) -> tuple[str, ...]:
            return tuple(p for p in passages if document_of(p, known) not in documents)

        triples = [replace(t, passage_ids=left(t.passage_ids)) for t in self.resolved.triples]
        triples = [t for t in triples if t.passage_ids]
        stated = {name_key(name) for t in triples for name in (t.head, t.tail)}
        entities = [
            replace(e, passage_ids=left(e.passage_ids))
            for e in self.resolved.entities
            if not e.passage_ids or left(e.passage_ids) or name_key(e.name) in stated
        ]
        return _graph_of(entities, triples)

    def united(self, other: GivenGraph, known: Collection[str]) -> GivenGraph:
        """Both; of a ``known`` document that both speak of, what ``other`` says.

        Raises:
            GfmError: One of them has entities with ids or types, which cannot be told apart row by row.
        """
        if self.resolved.entities or other.resolved.entities:
            raise GfmError(
                "expected given triples of names alone to be added, found entities with ids, types or descriptions; "
                "build the index again, of all documents and all rows"
            )
        mine = self.without(other.documents(known), known)
        return _graph_of([], [*mine.resolved.triples, *other.resolved.triples])

    def check(self, document_ids: Collection[str]) -> None:
        """Prove that everything belongs to a document of the corpus.

        Args:
            document_ids: Ids of the documents; ``ID#k`` names a passage of one.

        Raises:
            GfmError: Something does not; the message names the first place.
        """
        known = set(document_ids)
        unknown: dict[str, str] = {}
        rows: list[GivenEntity | GivenTriple] = [*self.resolved.entities, *self.resolved.triples]
        for row in rows:
            for passage in row.passage_ids:
                if document_of(passage, known) not in known:
                    unknown.setdefault(passage, row.place)
        if unknown:
            passage, place = next(iter(unknown.items()))
            raise GfmError(
                f"{place}: expected the passage_id of a document of the corpus, found {passage!r} "
                f"({len(unknown)} such ids in the file); correct the id or delete its lines"
            )

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage, in order.

        What is given of a passage goes to it. Of what is given of a document that makes several passages, a triple goes
        to the first that names both ends (in its title or text), or else to the first; an entity to all that name it,
        or else to the first. All passages of a document have to come in one call.
        """
        chunks: dict[str, list[int]] = defaultdict(list)
        for i, passage in enumerate(passages):
            chunks[passage.document_id].append(i)
        number = {passage.id: i for i, passage in enumerate(passages)}
        found = [_Passage() for _ in passages]
        for identifier, given in self._given.items():
            if identifier in number:
                found[number[identifier]].add(given)
            else:
                # A passage that this splitting does not make: its document stands for it.
                numbers = sorted(chunks.get(document_of(identifier, chunks), ()), key=lambda i: (passages[i].start, i))
                _spread(given, numbers, passages, found)
        return [p.extraction() for p in found]


@dataclass(slots=True)
class _Passage:
    """What is given of one passage: triples in the order of the rows, everything else once, in a total order."""

    triples: list[tuple[str, str, str]] = field(default_factory=list)
    statements: dict[Statement, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)

    def add(self, other: _Passage) -> None:
        """Put what is given of the same passage in."""
        self.triples += other.triples
        self.statements |= other.statements
        self.names |= other.names

    def extraction(self) -> Extraction:
        """The same as a value."""
        return Extraction(triples=tuple(self.triples), statements=tuple(self.statements), names=tuple(self.names))


def _by_passage(resolved: Resolved) -> dict[str, _Passage]:
    """What is given, by the id of the passage or document that says it."""
    given: dict[str, _Passage] = defaultdict(_Passage)
    rich: dict[tuple[str, str, str, str], list[GivenTriple]] = defaultdict(list)
    for t in resolved.triples:
        if t.weight is None and not t.description and not t.text:
            for passage in t.passage_ids:
                given[passage].triples.append((t.head, t.relation, t.tail))
        else:
            text = t.text or statement_text(t.head, t.relation, t.tail, t.description)
            rich[text, name_key(t.head), t.relation, name_key(t.tail)].append(t)
    for (text, *_), rows in sorted(rich.items()):
        statement = _merged(text, rows)
        for passage in dict.fromkeys(p for row in rows for p in row.passage_ids):
            given[passage].statements[statement] = None
    stated: dict[str, list[str]] = defaultdict(list)
    for t in resolved.triples:
        for name in (t.head, t.tail):
            stated[name_key(name)] += t.passage_ids
    for entity in resolved.entities:
        for passage in entity.passage_ids:
            given[passage].names[entity.name] = None
        if entity.description:
            for passage in dict.fromkeys([*entity.passage_ids, *sorted(stated[name_key(entity.name)])]):
                given[passage].statements[Statement(description_text(entity))] = None
    return given


def description_text(entity: GivenEntity) -> str:
    """The sentence under which an entity's description is found."""
    named = name_key(entity.name) in name_key(entity.description)
    return entity.description if named else f"{entity.name}: {entity.description}"


def _merged(text: str, rows: Sequence[GivenTriple]) -> Statement:
    """Rows that say the same, as one: their weights are added, exactly, so that their order plays no part."""
    first = min(rows, key=lambda t: (t.head, t.tail))
    weights = [row.weight for row in rows if row.weight is not None]
    descriptions = " ".join(sorted({row.description for row in rows if row.description}))
    return Statement(
        text, first.head, first.relation, first.tail, math.fsum(weights) if weights else None, descriptions
    )


def _spread(given: _Passage, numbers: Sequence[int], passages: Sequence[Passage], found: list[_Passage]) -> None:
    """Give what is given of a document to its passages ``numbers``."""
    if not numbers:
        return
    texts = [name_key(embedded_text(passages[i].title, passages[i].text)) for i in numbers]

    def naming(*names: str) -> list[int]:
        keys = [name_key(name) for name in names]
        return [i for i, text in zip(numbers, texts, strict=True) if all(key in text for key in keys)] or [numbers[0]]

    for head, relation, tail in given.triples:
        found[naming(head, tail)[0]].triples.append((head, relation, tail))
    for statement in given.statements:
        ends = (statement.head, statement.tail) if statement.head else (statement.text,)
        found[naming(*ends)[0]].statements[statement] = None
    for name in given.names:
        for i in naming(name):
            found[i].names[name] = None


def _row(kind: str, row: GivenEntity | GivenTriple) -> str:
    fields = {name: value for name, value in asdict(row).items() if name != "place" and value not in ("", (), None)}
    return json.dumps([kind, {"name": row.name, **fields} if isinstance(row, GivenEntity) else {**_ENDS, **fields}])


_ENDS = {"head": "", "relation": "", "tail": ""}


def _graph_of(entities: list[GivenEntity], triples: list[GivenTriple]) -> GivenGraph:
    return GivenGraph(Resolved(entities, triples, table_of(entities), 0, []))


def document_of(passage: str, known: Collection[str]) -> str:
    """The document that a given id speaks of: itself where there is one of that id, else what stands before ``#``."""
    return passage if passage in known else passage.rpartition("#")[0]


class GivenTriples(GivenGraph):
    """The triples of a file.

    Args:
        path: JSONL, one object a line, see `read_triple_rows`.

    Raises:
        GfmError: A line is not such an object (by file and line), or the file holds none.
    """

    def __init__(self, path: Path):
        super().__init__(resolve([], read_triple_rows(path)))
