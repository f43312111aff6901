"""G-reasoner, the second version of GFM-RAG: nodes, relations and edges as CSV, with the texts in documents.json."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gfm.exchange.gfm_rag import SYNONYM, document_of, find_file, place_triples, read_texts, synonym_note
from gfm.exchange.tables import GraphTables, checked_text, known_ids, lost_note, not_kept, write_text
from gfm.text.csv_rows import csv_header, csv_text, read_csv_rows
from gfm.text.normalise import name_key
from gfm.text.reading import Row, one_line
from gfm.types import GivenEntity, GivenTriple

NODES, RELATIONS, EDGES = "nodes.csv", "relations.csv", "edges.csv"
_STAGE, _DOCUMENTS = Path("processed", "stage1"), Path("raw", "documents.json")
_MENTION = "is_mentioned_in"
_TEXTS = ("document", "doc", "passage", "chunk", "text")


def detect(path: Path) -> bool:
    """Whether this reader is for the path: the folder of a data set, or that of its processed files."""
    return path.is_dir() and any({"type", "attributes"} <= set(csv_header(nodes)) for nodes in path.rglob(NODES))


@dataclass
class _Nodes:
    texts: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    entities: dict[str, GivenEntity] = field(default_factory=dict)


def read(path: Path) -> GraphTables:
    """Nodes of type ``document`` are texts, all others entities; an edge between the two is a mention.

    Raises:
        GfmError: A file is missing or a row is not what it should be, by file and line.
    """
    nodes = _nodes(path)
    ids = {key: str(attributes.get("id", key)) for key, (_, attributes) in nodes.texts.items()}
    tables = GraphTables()
    mentioned: dict[str, set[str]] = defaultdict(set)
    counts = {"synonyms": 0, "documents": 0}
    lost: dict[str, str] = {}
    for row in read_csv_rows(find_file(path, EDGES)):
        ends = [row.required("source"), row.required("target")]
        for end in ends:
            if end not in nodes.texts and end not in nodes.entities:
                row.fail(f"unknown node {end!r}: expected a name of {NODES}")
        texts = [end for end in ends if end in nodes.texts]
        if len(texts) == 2:
            counts["documents"] += 1
        elif texts:
            mentioned[next(end for end in ends if end in nodes.entities)].update(texts)
        elif row.optional("relation") == SYNONYM:
            counts["synonyms"] += 1
        else:
            head, tail = (nodes.entities[end] for end in ends)
            tables.triples.append(_edge(row, head, tail, set(ids.values()), lost))
    tables.entities = [
        replace(e, passage_ids=tuple(sorted(ids[key] for key in mentioned[name]))) for name, e in nodes.entities.items()
    ]
    named: dict[str, set[str]] = defaultdict(set)
    for name, keys in mentioned.items():
        for key in keys:
            named[key].add(name)
    tables.documents = [document_of(k, text, more, named[k]) for k, (text, more) in nodes.texts.items()]
    place_triples(tables)
    tables.notes = lost_note(lost, "documents that edges name") + synonym_note(counts["synonyms"])
    if counts["documents"]:
        tables.notes.append(f"edges between two documents, left out: {counts['documents']}")
    return tables


def _nodes(path: Path) -> _Nodes:
    file = find_file(path, NODES)
    rows = list(read_csv_rows(file))
    texts: dict[str, str] | None = None
    found = _Nodes()
    for row in rows:
        key = row.fields.get("uid") or row.required("name")
        if key in found.texts or key in found.entities:
            row.fail(f"the node {key!r} stands here for the second time; names are unique")
        attributes = _attributes(row)
        kind = one_line(row.optional("type"))
        if kind.lower() in _TEXTS:
            text = attributes.get("content") or attributes.get("text")
            if text is None:
                texts = read_texts(path) if texts is None else texts
                text = texts.get(key)
            if text is None:
                row.fail(f"document {key!r}: expected its text in documents.json, found none")
            found.texts[key] = checked_text(f"{file}:{row.line}", key, text)[1], attributes
        else:
            found.entities[key] = _entity(row, kind, attributes)
    return found


def _attributes(row: Row) -> dict[str, Any]:
    """The attributes of a row: a JSON object, or a literal of Python, which is read as data and never run."""
    cell = row.optional("attributes")
    if not cell:
        return {}
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(cell)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            row.fail(f"'attributes': expected an object, found {cell[:60]!r} ({type(error).__name__})")
    if not isinstance(value, dict):
        row.fail(f"'attributes': expected an object, found {cell[:60]!r}")
    return value


def _entity(row: Row, kind: str, attributes: Mapping[str, Any]) -> GivenEntity:
    name = one_line(row.required("name"))
    if not name_key(name):
        row.fail(f"'name': expected a name, found {name!r}")
    aliases = attributes.get("aliases") or []
    return GivenEntity(
        name=name,
        id=str(attributes.get("id") or row.fields.get("uid") or ""),
        type="" if kind.lower() == "entity" else kind,
        description=one_line(str(attributes.get("description") or "")),
        aliases=tuple(filter(name_key, (one_line(str(alias)) for alias in aliases))),
        place=f"{row.path}:{row.line}",
    )


def _edge(row: Row, head: GivenEntity, tail: GivenEntity, known: set[str], lost: dict[str, str]) -> GivenTriple:
    attributes = _attributes(row)
    weight = attributes.get("weight")
    if weight is not None and not isinstance(weight, int | float):
        row.fail(f"'weight': expected a number, found {weight!r}")
    place = f"{row.path}:{row.line}"
    return GivenTriple(
        head=head.name,
        relation=one_line(row.optional("relation")),
        tail=tail.name,
        passage_ids=known_ids(map(str, attributes.get("passage_ids") or ()), known, place, lost),
        weight=None if weight is None else float(weight),
        description=one_line(str(attributes.get("description") or "")),
        text=one_line(str(attributes.get("text") or "")),
        head_id=head.id,
        tail_id=tail.id,
        place=place,
    )


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the folder of a data set; what the columns have no place for stands in the attributes."""
    names = {entity.name for entity in tables.entities}
    key = {d.id: f"document: {d.id}" if d.id in names else d.id for d in tables.documents}
    nodes = [
        [key[d.id], "document", _literal({"id": d.id, "title": d.title, "metadata": d.metadata or None})]
        for d in tables.documents
    ]
    nodes += [[e.name, e.type or "entity", _literal(_entity_attributes(e))] for e in tables.entities]
    triples = [t for t in tables.triples if t.head]
    edges = [[t.head, t.relation, t.tail, _literal(_triple_attributes(t))] for t in triples]
    edges += [[e.name, _MENTION, key[p], "{}"] for e in tables.entities for p in e.passage_ids]
    relations = sorted({t.relation for t in triples} | {_MENTION})
    write_text(folder / _STAGE / NODES, csv_text(["name", "type", "attributes"], nodes))
    write_text(folder / _STAGE / RELATIONS, csv_text(["name", "attributes"], [[name, "{}"] for name in relations]))
    write_text(folder / _STAGE / EDGES, csv_text(["source", "relation", "target", "attributes"], edges))
    texts = {key[d.id]: d.text for d in tables.documents}
    write_text(folder / _DOCUMENTS, json.dumps(texts, ensure_ascii=False, indent=1) + "\n")
    return not_kept(tables, "sentences without a triple")


def _entity_attributes(entity: GivenEntity) -> dict[str, Any]:
    return {"id": entity.id, "description": entity.description, "aliases": list(entity.aliases)}


def _triple_attributes(triple: GivenTriple) -> dict[str, Any]:
    return {
        "weight": triple.weight,
        "description": triple.description,
        "text": triple.text,
        "passage_ids": list(triple.passage_ids),
    }


def _literal(attributes: Mapping[str, Any]) -> str:
    """What holds something, as a literal of Python, which is how GFM-RAG reads the column."""
    kept = {name: value for name, value in attributes.items() if value not in ("", None, [], {})}
    if "title" in attributes:  # also where it is empty: the key is no title then
        kept["title"] = attributes["title"]
    return repr(kept)
