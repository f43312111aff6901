"""Microsoft GraphRAG: Parquet tables of entities, relationships, text units and documents, of versions 0.3 to 3.

Communities and their reports are not read: they follow from the graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from gfm.exchange.tables import (
    GraphTables,
    checked_text,
    known_ids,
    lost_note,
    names_by_passage,
    not_kept,
    one_row_each,
    source_name,
    titled,
)
from gfm.text.normalise import name_key, statement_text
from gfm.text.reading import one_line
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

_OLD = "create_final_"  # before each table's name in versions 0 and 1
_TABLES = {
    "entities": (("title", "name"), ("type", "description", "text_unit_ids")),
    "relationships": (("source",), ("target", "description", "weight", "text_unit_ids")),
    "text_units": (("id",), ("text", "document_id", "document_ids")),
    "documents": (("id",), ("title", "metadata")),
}


def detect(path: Path) -> bool:
    """Whether this reader is for the path: the folder of the tables, or one above it."""
    return path.is_dir() and bool(_folders(path))


def _folders(path: Path) -> list[Path]:
    found = [*path.rglob("entities.parquet"), *path.rglob(f"{_OLD}entities.parquet")]
    return sorted({f.parent for f in found if f.with_name(f.name.replace("entities", "relationships")).is_file()})


def read(path: Path) -> GraphTables:
    """Text units become documents: an entity or relationship names those that it was found in.

    The title of a unit is that of its document, where an entity of the unit has that name. A relationship has a
    description and no predicate.

    Raises:
        GfmError: A table is missing or damaged, or a row lacks what it needs; by file and row.
    """
    folders = _folders(path)
    if len(folders) > 1:
        raise GfmError(
            f"{path}: expected the tables of one run of GraphRAG, found {len(folders)}: {folders[0]}, {folders[1]}, …; "
            "name the folder of one"
        )
    rows = {name: _Table(folders[0], name) for name in _TABLES}
    lost: dict[str, str] = {}
    tables = GraphTables()
    units = _units(rows["text_units"])
    known = set(units)
    entities = []
    for row in rows["entities"]:
        name = row.name("title", "name")
        of = known_ids(row.texts("text_unit_ids"), known, row.place, lost)
        description = one_line(row.text("description"))
        entities.append(GivenEntity(name, "", one_line(row.text("type")), description, (), of, row.place))
    tables.entities = one_row_each(entities)
    tables.documents = _documents(units, rows["documents"], names_by_passage(entities))
    for row in rows["relationships"]:
        of = known_ids(row.texts("text_unit_ids"), known, row.place, lost)
        description = one_line(row.text("description"))
        head, tail = row.name("source"), row.name("target")
        tables.triples.append(GivenTriple(head, "", tail, of, row.number("weight"), description, place=row.place))
    tables.notes = lost_note(lost, "text units that entities and relationships name") if known else []
    return tables


class _Row:
    """One row of a table, with its place for messages."""

    def __init__(self, path: Path, number: int, values: dict[str, Any]):
        self.place = f"{path}: row {number}"
        self.values = values

    def fail(self, message: str) -> NoReturn:
        raise GfmError(f"{self.place}: {message}")

    def text(self, name: str) -> str:
        """A string; empty where there is none."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            self.fail(f"{name!r}: expected a string, found {str(value)[:40]!r}")
        return value or ""

    def name(self, *names: str) -> str:
        """The name under the first of these columns that is there."""
        name = next((name for name in names if name in self.values), names[0])
        value = one_line(self.text(name))
        if not name_key(value):
            self.fail(f"{name!r}: expected a name, found {value!r}")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty where there is none."""
        values = self.values.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self.fail(f"{name!r}: expected a list of strings, found {str(values)[:40]!r}")
        return values

    def number(self, name: str) -> float | None:
        """A number; None where there is none."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, int | float):
            self.fail(f"{name!r}: expected a number, found {str(value)[:40]!r}")
        return None if value is None or value != value else float(value)


class _Table:
    """The rows of a table under either of its file names; without a file, none for documents and text units."""

    def __init__(self, folder: Path, name: str):
        self._needed, self._others = _TABLES[name]
        paths = [folder / f"{prefix}{name}.parquet" for prefix in ("", _OLD)]
        self._path = next((path for path in paths if path.is_file()), paths[0])
        if not self._path.is_file() and name in ("entities", "relationships"):
            raise GfmError(f"{self._path}: expected this table of GraphRAG, found none")

    def __iter__(self) -> Iterator[_Row]:
        if not self._path.is_file():
            return
        try:
            with self._path.open("rb") as stream:
                file = pq.ParquetFile(stream)
                there = file.schema_arrow.names
                if not any(name in there for name in self._needed):
                    raise GfmError(f"{self._path}: expected a column {' or '.join(self._needed)}, found {there}")
                columns = [name for name in (*self._needed, *self._others) if name in there]
                rows = file.read(columns=columns, use_threads=False).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise GfmError(f"{self._path}: expected a Parquet table, found: {error}") from error
        for number, values in enumerate(rows, start=1):
            yield _Row(self._path, number, values)


def _units(table: _Table) -> dict[str, tuple[str, list[str]]]:
    """Text and document ids of each text unit."""
    found: dict[str, tuple[str, list[str]]] = {}
    for row in table:
        identifier, text = checked_text(row.place, row.text("id"), row.text("text"))
        if identifier in found:
            row.fail(f"the id {identifier!r} stands here for the second time; ids are unique")
        found[identifier] = text, [row.text("document_id")] if row.text("document_id") else row.texts("document_ids")
    return found


def _documents(
    units: Mapping[str, tuple[str, list[str]]], documents: _Table, names: Mapping[str, Iterable[str]]
) -> list[Document]:
    known = {row.text("id"): (one_line(row.text("title")), _metadata(row)) for row in documents}
    found = []
    for identifier, (text, of) in units.items():
        title, metadata = known.get(of[0], ("", {})) if of else ("", {})
        if of and of != [identifier]:
            metadata = {**metadata, "document_id": of[0] if len(of) == 1 else of}
        found.append(titled(identifier, title, text, metadata, names.get(identifier, ())))
    return found


def _metadata(row: _Row) -> dict[str, Any]:
    """What a document carries, where it is an object: as one, or as its JSON."""
    value = row.values.get("metadata")
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = {"metadata": value}
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else {}


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the tables of version 3; each of our documents is one text unit and one document.

    A relationship's description is that of the triple, or else its sentence.
    """
    triples = sorted((t for t in tables.triples if t.head), key=lambda t: (t.head, t.tail, _said(t)))
    unit_of = _numbers_by(passages=[e.passage_ids for e in tables.entities])
    relation_of = _numbers_by(passages=[t.passage_ids for t in triples])
    entity_ids = [_id("entity", e.name) for e in tables.entities]
    triple_ids = [_id("relationship", t.head, t.tail, _said(t), str(n)) for n, t in enumerate(triples)]
    degree: dict[str, set[str]] = {e.name: set() for e in tables.entities}
    for t in triples:
        degree[t.head].add(t.tail)
        degree[t.tail].add(t.head)
    _write(
        folder / "entities.parquet",
        ("id", pa.string(), entity_ids),
        ("human_readable_id", pa.int64(), range(len(entity_ids))),
        ("title", pa.string(), [e.name for e in tables.entities]),
        ("type", pa.string(), [e.type for e in tables.entities]),
        ("description", pa.string(), [e.description for e in tables.entities]),
        ("text_unit_ids", pa.list_(pa.string()), [e.passage_ids for e in tables.entities]),
        ("frequency", pa.int64(), [len(e.passage_ids) for e in tables.entities]),
        ("degree", pa.int64(), [len(degree[e.name]) for e in tables.entities]),
    )
    _write(
        folder / "relationships.parquet",
        ("id", pa.string(), triple_ids),
        ("human_readable_id", pa.int64(), range(len(triples))),
        ("source", pa.string(), [t.head for t in triples]),
        ("target", pa.string(), [t.tail for t in triples]),
        ("description", pa.string(), [_said(t) for t in triples]),
        ("weight", pa.float64(), [1.0 if t.weight is None else t.weight for t in triples]),
        ("combined_degree", pa.int64(), [len(degree[t.head]) + len(degree[t.tail]) for t in triples]),
        ("text_unit_ids", pa.list_(pa.string()), [t.passage_ids for t in triples]),
    )
    documents = tables.documents
    of = [str(d.metadata.get("document_id", d.id)) for d in documents]
    _write(
        folder / "text_units.parquet",
        ("id", pa.string(), [d.id for d in documents]),
        ("human_readable_id", pa.int64(), range(len(documents))),
        ("text", pa.string(), [d.text for d in documents]),
        ("n_tokens", pa.int64(), [None] * len(documents)),
        ("document_id", pa.string(), of),
        ("entity_ids", pa.list_(pa.string()), [[entity_ids[i] for i in unit_of.get(d.id, ())] for d in documents]),
        (
            "relationship_ids",
            pa.list_(pa.string()),
            [[triple_ids[i] for i in relation_of.get(d.id, ())] for d in documents],
        ),
    )
    _write_documents(folder, documents, of)
    return not_kept(tables, "relations", "sentences without a triple", "ids of entities", "aliases")


def _write_documents(folder: Path, documents: Sequence[Document], of: Sequence[str]) -> None:
    """One document for each that text units belong to, with its units' texts in their order."""
    units: dict[str, list[Document]] = {}
    for identifier, unit in sorted(zip(of, documents, strict=True), key=lambda pair: (pair[0], pair[1].id)):
        units.setdefault(identifier, []).append(unit)
    ids = list(units)
    _write(
        folder / "documents.parquet",
        ("id", pa.string(), ids),
        ("human_readable_id", pa.int64(), range(len(ids))),
        ("title", pa.string(), [source_name(units[i][0]) for i in ids]),
        ("text", pa.string(), ["\n".join(unit.text for unit in units[i]) for i in ids]),
        ("text_unit_ids", pa.list_(pa.string()), [[unit.id for unit in units[i]] for i in ids]),
        ("metadata", pa.string(), [_own_metadata(units[i][0]) for i in ids]),
    )


def _own_metadata(document: Document) -> str:
    """Metadata that no column of its own holds, as JSON."""
    own = {k: v for k, v in document.metadata.items() if k not in ("document_id", "file_path")}
    return json.dumps(own, ensure_ascii=False, sort_keys=True) if own else ""


def _said(triple: GivenTriple) -> str:
    return triple.description or triple.text or statement_text(triple.head, triple.relation, triple.tail)


def _numbers_by(passages: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, ids in enumerate(passages):
        for identifier in ids:
            found.setdefault(identifier, []).append(number)
    return found


def _id(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _write(path: Path, *columns: tuple[str, pa.DataType, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({name: pa.array(list(values), kind) for name, kind, values in columns})
    with path.open("wb") as stream:
        pq.write_table(table, stream)
