"""Three CSV files: entities.csv, triples.csv, passages.csv; also nodes.csv and edges.csv as others write them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gfm.exchange.jsonl import DOCUMENTS, SECTIONS, read_passages, section_rows, with_sections
from gfm.exchange.tables import GraphTables, checked_text, write_text
from gfm.extract.rows import ENTITY_FIELDS, HEAD, RELATION, TAIL, TRIPLE_FIELDS, entity_of, triple_of
from gfm.text.csv_rows import csv_header, csv_text, list_cell, read_csv_rows
from gfm.text.normalise import name_key
from gfm.text.reading import Row, one_line, printable
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

ENTITIES, TRIPLES, PASSAGES = (
    ("entities.csv", "nodes.csv"),
    ("triples.csv", "edges.csv", "relations.csv"),
    "passages.csv",
)
_ENTITY_COLUMNS = ["id", "name", "type", "description", "aliases", "passage_ids"]
_TRIPLE_COLUMNS = ["head", "relation", "tail", "passage_ids", "weight", "description", "text"]
_END_COLUMNS = ["head_id", "tail_id", "head_type", "tail_type"]
_LISTS = ("aliases", "passage_ids")
_BY_ID = {"source", "src", "from", "target", "dst", "to"}  # columns of node references: an id comes before a name


def detect(path: Path) -> bool:
    """Whether this reader is for the path."""
    return path.suffix.lower() == ".csv" if path.is_file() else any((path / n).is_file() for n in (*ENTITIES, *TRIPLES))


def read(path: Path) -> GraphTables:
    """Documents, entities and triples of a folder; any of the files may be missing. Or the triples of a file.

    Where the entities have ids, every end of a triple has to be an id or a name of theirs. Where none of them has a
    name, the ids are the names.

    Raises:
        GfmError: A row is not what it should be, or names an unknown node; by file and line.
    """
    tables = GraphTables()
    if path.is_file():
        tables.triples = _triples(path, _Nodes([]), tables.notes)
        if not tables.triples:
            raise GfmError(f"{path}: expected at least one row under the header, found none")
        return tables
    nodes, edges = _the_one(path, ENTITIES), _the_one(path, TRIPLES)
    entities = [entity_of(row) for row in _rows(nodes, ENTITY_FIELDS, tables.notes)] if nodes else []
    known = _Nodes(entities)
    tables.entities = known.entities
    tables.triples = _triples(edges, known, tables.notes) if edges else []
    if (path / PASSAGES).is_file():
        tables.documents = _passages(path / PASSAGES)
    else:
        tables.documents = read_passages([path / name for name in reversed(DOCUMENTS)])
    return tables


def _the_one(folder: Path, names: tuple[str, ...]) -> Path | None:
    found = [folder / name for name in names if (folder / name).is_file()]
    if len(found) > 1:
        raise GfmError(
            f"{folder}: expected one of {', '.join(names)}, found {' and '.join(p.name for p in found)}; move the "
            "others elsewhere"
        )
    return found[0] if found else None


def _rows(path: Path, known: set[str], notes: list[str]) -> list[Row]:
    if other := set(csv_header(path)) - known:
        notes.append(f"{path.name}: columns that are not known, left out: {', '.join(sorted(other))}")
    return list(read_csv_rows(path, _LISTS, ("weight",)))


class _Nodes:
    """The entities of a table, and what an end of a triple may call them."""

    def __init__(self, entities: list[GivenEntity]):
        self._ids = {entity.id for entity in entities if entity.id}
        self._keys = {name_key(entity.name) for entity in entities if entity.name}
        self._bare = bool(entities) and not self._keys
        self.entities = [replace(e, name=e.id, id="") for e in entities] if self._bare else entities

    def end(self, row: Row, column: str, value: str) -> tuple[str, str]:
        """(name, id) of an end that has no id column of its own."""
        if not self._ids:
            return value, ""
        by_id, by_name = value in self._ids, name_key(value) in self._keys
        if not by_id and not by_name:
            row.fail(f"unknown node {value!r}: expected an id or a name of the entities; add it to them, or correct it")
        if by_id and (column in _BY_ID or not by_name):
            return (value, "") if self._bare else ("", value)
        return value, ""


def _triples(path: Path, nodes: _Nodes, notes: list[str]) -> list[GivenTriple]:
    triples = []
    for row in _rows(path, TRIPLE_FIELDS, notes):
        if all(name not in row.fields for name in RELATION):
            row.fields["relation"] = ""  # an empty cell, or edges without a label
        triple = triple_of(row)
        for side, columns in (("head", HEAD), ("tail", TAIL)):
            value = getattr(triple, side)
            if value and not getattr(triple, f"{side}_id"):
                column = next(name for name in columns if row.fields.get(name))
                name, identifier = nodes.end(row, column, value)
                fields: dict[str, Any] = {side: name, f"{side}_id": identifier}
                triple = replace(triple, **fields)
        triples.append(triple)
    return triples


def _passages(path: Path) -> list[Document]:
    documents: list[Document] = []
    line_of: dict[str, int] = {}
    for row in read_csv_rows(path):
        identifier, text = checked_text(f"{path}:{row.line}", row.identifier("id", "_id"), row.fields.get("text"))
        first = line_of.setdefault(identifier, row.line)
        if first != row.line:
            row.fail(f"the id {identifier!r} stands on line {first} too; ids are unique: rename or delete one of them")
        more = {name: value for name, value in row.fields.items() if name not in ("id", "_id", "text", "title")}
        document = Document(identifier, one_line(row.optional("title")), printable(text), _metadata(row, more))
        documents.append(with_sections(document))
    return documents


def _metadata(row: Row, more: dict[str, Any]) -> dict[str, Any]:
    """Every other column, and what the columns ``metadata`` and ``sections`` hold as JSON."""
    inner = _json_cell(row, more.pop("metadata", "{}"), "metadata")
    if not isinstance(inner, dict):
        row.fail(f"'metadata': expected a JSON object, found {str(inner)[:60]!r}")
    if SECTIONS in more:
        more[SECTIONS] = _json_cell(row, more[SECTIONS], SECTIONS)
    return {**inner, **more}


def _json_cell(row: Row, cell: str, name: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        row.fail(f"{name!r}: expected JSON, found {cell[:60]!r} ({error})")


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the folder that `read` reads."""
    entities = [[_cell(getattr(e, name)) for name in _ENTITY_COLUMNS] for e in tables.entities]
    columns = _TRIPLE_COLUMNS + [name for name in _END_COLUMNS if any(getattr(t, name) for t in tables.triples)]
    triples = [[_cell(getattr(t, name)) for name in columns] for t in tables.triples]
    passages = [[d.id, d.title, d.text, _json(d.metadata), _json(section_rows(d))] for d in tables.documents]
    write_text(folder / ENTITIES[0], csv_text(_ENTITY_COLUMNS, entities))
    write_text(folder / TRIPLES[0], csv_text(columns, triples))
    write_text(folder / PASSAGES, csv_text(["id", "title", "text", "metadata", SECTIONS], passages))
    return []


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return list_cell(value)
    return "" if value is None else str(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else ""
