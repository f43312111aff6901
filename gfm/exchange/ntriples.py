"""A graph with its texts as N-Triples in our vocabulary, or any RDF in N-Triples."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from gfm.exchange.rdf import Statement, Term, line, literal, local_name, read_statements, resource
from gfm.exchange.tables import GraphTables, checked_text, write_text
from gfm.text.normalise import name_key
from gfm.text.reading import one_line, printable
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

FILE = "graph.nt"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_DC = "http://purl.org/dc/terms/"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_TYPE, _LABEL, _ALIAS = f"{_RDF}type", f"{_RDFS}label", f"{_SKOS}altLabel"
_DESCRIPTION, _IDENTIFIER, _TITLE = f"{_DC}description", f"{_DC}identifier", f"{_DC}title"
_LABELS = {_LABEL, f"{_SKOS}prefLabel", *(f"{s}://schema.org/name" for s in ("http", "https"))}
_LABELS.add("http://xmlns.com/foaf/0.1/name")
_DESCRIPTIONS = {_DESCRIPTION, f"{_RDFS}comment", f"{_SKOS}definition"}
_OURS = "urn:gfm:"
_ENTITY, _PASSAGE, _FACT, _STATEMENT = f"{_OURS}Entity", f"{_OURS}Passage", f"{_OURS}Fact", f"{_RDF}Statement"
_KIND, _TEXT, _WEIGHT, _METADATA = (f"{_OURS}{name}" for name in ("type", "text", "weight", "metadata"))
_MENTIONED, _STATED = f"{_OURS}mentionedIn", f"{_OURS}statedIn"
_RELATION = f"{_OURS}relation/"
_OF_ENTITIES = {*_LABELS, *_DESCRIPTIONS, _TYPE, _ALIAS, _KIND, _MENTIONED}


def detect(path: Path) -> bool:
    """Whether this reader is for the path."""
    return path.suffix.lower() == ".nt" if path.is_file() else len(list(path.glob("*.nt"))) == 1


def read(path: Path) -> GraphTables:
    """The graph of a file, or of the only .nt file of a folder.

    Of RDF that is not ours, resources are entities with their IRI as id; labels, descriptions and classes are theirs,
    every other statement is a triple, and a literal is an entity by its text.

    Raises:
        GfmError: A line is no statement, or a resource of our vocabulary lacks what it needs; by file and line.
    """
    return _Reader(read_statements(path if path.is_file() else next(path.glob("*.nt")))).tables


class _Reader:
    def __init__(self, statements: Iterable[Statement]):
        self.tables = GraphTables()
        self._of: dict[str, list[Statement]] = defaultdict(list)
        for statement in statements:
            self._of[statement.subject].append(statement)
        kinds = {subject: set(self._texts(subject, _TYPE)) for subject in list(self._of)}
        passages = {subject for subject, found in kinds.items() if _PASSAGE in found}
        reified = {subject for subject, found in kinds.items() if found & {_STATEMENT, _FACT}}
        self._ids: dict[str, str] = {}
        for subject in sorted(passages):
            self._passage(subject)
        self._classes = {term for found in kinds.values() for term in found}
        self._entities: dict[str, GivenEntity] = {}
        for subject in sorted(set(self._of) - passages - reified - self._classes):
            self._entity(subject)
        said = {self._statement(subject) for subject in sorted(reified)}
        for subject in sorted(set(self._of) - passages - reified - self._classes):
            for s in self._of[subject]:
                if not self._is_own(s) and (s.subject, s.predicate, s.object.text) not in said:
                    self._triple(s)
        self.tables.entities = [entity for _, entity in sorted(self._entities.items())]

    def _found(self, subject: str, *predicates: str) -> list[Statement]:
        return [s for s in self._of.get(subject, ()) if s.predicate in predicates]

    def _texts(self, subject: str, *predicates: str) -> list[str]:
        return sorted(s.object.text for s in self._found(subject, *predicates))

    def _first(self, subject: str, *predicates: str) -> str:
        return next(iter(self._texts(subject, *predicates)), "")

    def _place(self, subject: str) -> str:
        return self._of[subject][0].place if self._of.get(subject) else ""

    def _is_own(self, statement: Statement) -> bool:
        """Whether the statement tells of an entity itself."""
        ours = statement.predicate == _IDENTIFIER and _ENTITY in self._texts(statement.subject, _TYPE)
        return ours or statement.predicate in _OF_ENTITIES

    def _passage(self, subject: str) -> None:
        place = self._place(subject)
        identifier, text = checked_text(place, self._first(subject, _IDENTIFIER), self._first(subject, _TEXT))
        try:
            metadata = json.loads(self._first(subject, _METADATA) or "{}")
        except (ValueError, RecursionError) as error:
            raise GfmError(f"{place}: {_METADATA}: expected a JSON object; {error}") from error
        if not isinstance(metadata, dict):
            raise GfmError(f"{place}: {_METADATA}: expected a JSON object, found {str(metadata)[:40]!r}")
        self._ids[subject] = identifier
        title = one_line(self._first(subject, _TITLE))
        self.tables.documents.append(Document(identifier, title, printable(text), metadata))

    def _passages(self, subject: str, predicate: str) -> tuple[str, ...]:
        for s in self._found(subject, predicate):
            if s.object.text not in self._ids:
                raise GfmError(
                    f"{s.place}: unknown passage {s.object.text!r}: expected the IRI of a passage of the file"
                )
        return tuple(sorted(self._ids[text] for text in self._texts(subject, predicate)))

    def _entity(self, subject: str) -> GivenEntity:
        """The entity of a resource; by its label, or else by what a person reads in its IRI."""
        if subject in self._entities:
            return self._entities[subject]
        labels = sorted(self._found(subject, *_LABELS), key=lambda s: (not _is_english(s.object), s.object.text))
        names = [name for s in labels if name_key(name := one_line(s.object.text))]
        if not names and not subject.startswith("_:"):
            names = [name for name in (one_line(local_name(subject)),) if name_key(name)]
        ours = _ENTITY in self._texts(subject, _TYPE)
        aliases = [one_line(text) for text in self._texts(subject, _ALIAS)]
        self._entities[subject] = GivenEntity(
            name=names[0] if names else "",
            id=one_line(self._first(subject, _IDENTIFIER)) if ours else subject,
            type=one_line(self._first(subject, _KIND)) if ours else ", ".join(self._types(subject)),
            description=" ".join(map(one_line, self._texts(subject, *_DESCRIPTIONS))),
            aliases=tuple(filter(name_key, [*names[1:], *aliases])),
            passage_ids=self._passages(subject, _MENTIONED),
            place=self._place(subject),
        )
        return self._entities[subject]

    def _types(self, subject: str) -> list[str]:
        return sorted(
            {one_line(self._first(kind, *_LABELS) or local_name(kind)) for kind in self._texts(subject, _TYPE)}
        )

    def _relation(self, predicate: str) -> str:
        if predicate.startswith(_RELATION):
            return one_line(unquote(predicate.removeprefix(_RELATION)))
        return one_line(self._first(predicate, *_LABELS) or local_name(predicate).lower())

    def _statement(self, subject: str) -> tuple[str, str, str]:
        """A reified statement, or a fact without a triple; gives the triple that it is about."""
        text, passages, place = (
            one_line(self._first(subject, _TEXT)),
            self._passages(subject, _STATED),
            self._place(subject),
        )
        if _FACT in self._texts(subject, _TYPE):
            self.tables.triples.append(GivenTriple("", "", "", passages, text=text, place=place))
            return "", "", ""
        ends = [self._found(subject, _RDF + name) for name in ("subject", "predicate", "object")]
        if not all(len(found) == 1 for found in ends):
            raise GfmError(f"{place}: expected a statement with one subject, one predicate and one object")
        (head,), (predicate,), (tail,) = ends
        about = Statement(head.object.text, predicate.object.text, tail.object, place)
        weight, description = self._weight(subject), " ".join(map(one_line, self._texts(subject, *_DESCRIPTIONS)))
        self._triple(about, passages, weight, description, text)
        return about.subject, about.predicate, about.object.text

    def _weight(self, subject: str) -> float | None:
        found = self._found(subject, _WEIGHT)
        try:
            return float(found[0].object.text) if found else None
        except ValueError as error:
            raise GfmError(
                f"{found[0].place}: weight: expected a number, found {found[0].object.text[:40]!r}"
            ) from error

    def _triple(
        self,
        s: Statement,
        passages: tuple[str, ...] = (),
        weight: float | None = None,
        description: str = "",
        text: str = "",
    ) -> None:
        head = self._entity(s.subject)
        tail = GivenEntity(one_line(s.object.text)) if s.object.literal else self._entity(s.object.text)
        if s.object.literal and not name_key(tail.name):
            self.tables.notes.append(f"{s.place}: a literal of which nothing can be seen, left out")
            return
        self.tables.triples.append(
            GivenTriple(
                head=head.name,
                relation=self._relation(s.predicate),
                tail=tail.name,
                passage_ids=passages,
                weight=weight,
                description=description,
                text=text,
                head_id=head.id,
                tail_id=tail.id,
                place=s.place,
            )
        )


def _is_english(term: Term) -> bool:
    return term.language == "" or term.language.partition("-")[0] == "en"


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the file that `read` reads: each triple as itself, and as a statement with its sources."""
    lines = [*_passage_lines(tables.documents), *_entity_lines(tables.entities), *_triple_lines(tables.triples)]
    write_text(folder / FILE, "".join(lines))
    return []


def _iri(kind: str, name: str) -> str:
    return f"{_OURS}{kind}/{quote(name, safe='')}"


def _texts(subject: str, values: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (line(subject, predicate, literal(value)) for predicate, value in values if value)


def _passage_lines(documents: Sequence[Document]) -> Iterator[str]:
    for d in documents:
        subject = _iri("passage", d.id)
        metadata = json.dumps(d.metadata, ensure_ascii=False, sort_keys=True) if d.metadata else ""
        yield line(subject, _TYPE, resource(_PASSAGE))
        yield from _texts(subject, ((_IDENTIFIER, d.id), (_TITLE, d.title), (_TEXT, d.text), (_METADATA, metadata)))


def _entity_lines(entities: Sequence[GivenEntity]) -> Iterator[str]:
    for e in entities:
        subject = _iri("entity", e.name)
        yield line(subject, _TYPE, resource(_ENTITY))
        yield from _texts(
            subject, ((_LABEL, e.name), (_KIND, e.type), (_IDENTIFIER, e.id), (_DESCRIPTION, e.description))
        )
        yield from _texts(subject, ((_ALIAS, alias) for alias in e.aliases))
        yield from (line(subject, _MENTIONED, resource(_iri("passage", p))) for p in e.passage_ids)


def _triple_lines(triples: Sequence[GivenTriple]) -> Iterator[str]:
    for number, t in enumerate(triples):
        node = f"_:s{number}"
        if t.head:
            head, relation, tail = (
                _iri("entity", t.head),
                _RELATION + quote(t.relation, safe=""),
                _iri("entity", t.tail),
            )
            yield line(head, relation, resource(tail))
            yield line(node, _TYPE, resource(_STATEMENT))
            ends = (("subject", head), ("predicate", relation), ("object", tail))
            yield from (line(node, _RDF + name, resource(end)) for name, end in ends)
        else:
            yield line(node, _TYPE, resource(_FACT))
        if t.weight is not None:
            yield line(node, _WEIGHT, literal(str(t.weight), _DOUBLE))
        yield from _texts(node, ((_DESCRIPTION, t.description), (_TEXT, t.text)))
        yield from (line(node, _STATED, resource(_iri("passage", p))) for p in t.passage_ids)
