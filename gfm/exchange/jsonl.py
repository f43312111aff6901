"""Our own form: a folder with corpus.jsonl, entities.jsonl and triples.jsonl, or a triples file alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gfm.exchange.tables import GraphTables, write_text
from gfm.extract.rows import ENTITY_FIELDS, TRIPLE_FIELDS, entity_of, triple_of
from gfm.index.documents import CORPUS_FILE, read_documents
from gfm.text.reading import Row, read_rows
from gfm.types import Document, GfmError, GivenEntity, GivenTriple, Section

SECTIONS = "sections"
DOCUMENTS, ENTITIES, TRIPLES = (CORPUS_FILE, "passages.jsonl"), "entities.jsonl", "triples.jsonl"


def detect(path: Path) -> bool:
    """Whether this reader is for the path."""
    return path.suffix.lower() == ".jsonl" if path.is_file() else any((path / n).is_file() for n in (ENTITIES, TRIPLES))


def read(path: Path) -> GraphTables:
    """Documents, entities and triples of a folder; any of the files may be missing. Or the triples of a file.

    Raises:
        GfmError: A line is not what it should be, by file and line.
    """
    tables = GraphTables()
    if path.is_file():
        tables.triples = [triple_of(row) for row in _rows(path, TRIPLE_FIELDS, tables.notes)]
        if not tables.triples:
            raise GfmError(f"{path}: expected at least one triple, found none")
        return tables
    tables.documents = read_passages([path / name for name in DOCUMENTS])
    if (path / ENTITIES).is_file():
        tables.entities = [entity_of(row) for row in _rows(path / ENTITIES, ENTITY_FIELDS, tables.notes)]
    if (path / TRIPLES).is_file():
        tables.triples = [triple_of(row) for row in _rows(path / TRIPLES, TRIPLE_FIELDS, tables.notes)]
    return tables


def read_passages(candidates: Sequence[Path]) -> list[Document]:
    """The documents of the first of these JSONL files that is there; none where none is."""
    found = next((path for path in candidates if path.is_file()), None)
    return [with_sections(document) for document in read_documents(found).documents] if found else []


def with_sections(document: Document) -> Document:
    """The document with the sections that a field ``sections`` of it lists as [title, start, end].

    Raises:
        GfmError: The field lists something else.
    """
    if SECTIONS not in document.metadata:
        return document
    rows = document.metadata[SECTIONS]
    sections = tuple(Section(*row) for row in rows) if isinstance(rows, list) and all(map(_is_section, rows)) else ()
    if not sections or not all(0 <= s.start < s.end <= len(document.text) for s in sections):
        raise GfmError(
            f"document {document.id!r}: {SECTIONS!r}: expected [title, start, end] of parts of the text, found "
            f"{str(rows)[:60]!r}; correct the field or delete it"
        )
    metadata = {name: value for name, value in document.metadata.items() if name != SECTIONS}
    return replace(document, metadata=metadata, sections=sections)


def _is_section(row: object) -> bool:
    return isinstance(row, list) and [type(value) for value in row] == [str, int, int]


def _rows(path: Path, known: set[str], notes: list[str]) -> Iterable[Row]:
    other: set[str] = set()
    for row in read_rows(path):
        other |= set(row.fields) - known
        yield row
    if other:
        notes.append(f"{path.name}: fields that are not known, left out: {', '.join(sorted(other))}")


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the folder that `read` reads."""
    write_text(folder / CORPUS_FILE, _lines(document_fields(d) for d in tables.documents))
    write_text(folder / ENTITIES, _lines(entity_fields(e) for e in tables.entities))
    write_text(folder / TRIPLES, _lines(triple_fields(t) for t in tables.triples))
    return []


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def document_fields(document: Document) -> dict[str, Any]:
    """The fields of a document that hold something."""
    fields: dict[str, Any] = {"_id": document.id, "title": document.title, "text": document.text}
    fields |= {SECTIONS: section_rows(document), "metadata": document.metadata}
    return {name: value for name, value in fields.items() if value}


def section_rows(document: Document) -> list[list[str | int]]:
    """The sections of a document as `with_sections` reads them."""
    return [[section.title, section.start, section.end] for section in document.sections]


def entity_fields(entity: GivenEntity) -> dict[str, Any]:
    """The fields of an entity that hold something."""
    names = ("id", "name", "type", "description", "aliases", "passage_ids")
    return {name: getattr(entity, name) for name in names if getattr(entity, name)}


def triple_fields(triple: GivenTriple) -> dict[str, Any]:
    """The fields of a triple that hold something, and its relation in any case; a sentence without one has no ends."""
    fields: dict[str, Any] = {}
    if triple.head or triple.head_id:
        fields = {"head": triple.head, "relation": triple.relation, "tail": triple.tail}
        fields |= {
            n: getattr(triple, n) for n in ("head_id", "tail_id", "head_type", "tail_type") if getattr(triple, n)
        }
    if len(triple.passage_ids) == 1:
        fields["passage_id"] = triple.passage_ids[0]
    elif triple.passage_ids:
        fields["passage_ids"] = triple.passage_ids
    if triple.weight is not None:
        fields["weight"] = triple.weight
    return fields | {name: getattr(triple, name) for name in ("description", "text") if getattr(triple, name)}
