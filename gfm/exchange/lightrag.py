"""LightRAG and nano-graphrag: a GraphML graph whose nodes and edges name the chunks of a JSON file."""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gfm.exchange.tables import (
    GraphTables,
    checked_text,
    known_ids,
    lost_note,
    names_by_passage,
    not_kept,
    one_row_each,
    read_json,
    source_name,
    titled,
    write_text,
)
from gfm.exchange.xml_graph import Element, graphml_text, read_graphml
from gfm.text.normalise import name_key, statement_text
from gfm.text.reading import one_line
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

GRAPH, CHUNKS, FULL = (
    "graph_chunk_entity_relation.graphml",
    "kv_store_text_chunks.json",
    "kv_store_full_docs.json",
)
SEPARATOR = "<SEP>"
_NODE_KEYS = ("entity_id", "entity_type", "description", "source_id")
_EDGE_KEYS = ("weight", "description", "keywords", "source_id")
_NOBODY = ("", "unknown", "unknown_source")


def detect(path: Path) -> bool:
    """Whether this reader is for the path: the working folder, or its graph."""
    return path.name == GRAPH if path.is_file() else (path / GRAPH).is_file()


def read(path: Path) -> GraphTables:
    """Chunks become documents, keywords the relation; an edge's direction is that of the file, which may have lost it.

    Names lose the quotes that nano-graphrag puts round them; several descriptions become one.

    Raises:
        GfmError: A file is not what it should be, by file and line (chunks by their id).
    """
    folder = path.parent if path.is_file() else path
    nodes, edges = read_graphml(folder / GRAPH)
    rows = _chunks(folder / CHUNKS) if (folder / CHUNKS).is_file() else {}
    tables = GraphTables()
    lost: dict[str, str] = {}

    def chunks(element: Element) -> tuple[str, ...]:
        return known_ids(_parts(element, "source_id"), set(rows), element.place, lost)

    quoted = not any(node.values.get("entity_id") for node in nodes.values())
    for element in [*nodes.values(), *edges] if quoted else []:
        element.values = {name: _unquoted(value) for name, value in element.values.items()}
    names = {i: _name(node, quoted) for i, node in nodes.items()}
    tables.entities = one_row_each(
        GivenEntity(names[i], "", _type(node), _joined(node, "description"), (), chunks(node), node.place)
        for i, node in nodes.items()
    )
    mentioned = names_by_passage(tables.entities)
    tables.documents = [_document(i, row, mentioned.get(i, ())) for i, row in rows.items()]
    for edge in edges:
        head, tail = names[edge.source], names[edge.target]
        relation, description = _joined(edge, "keywords"), _joined(edge, "description")
        tables.triples.append(
            GivenTriple(head, relation, tail, chunks(edge), _weight(edge), description, place=edge.place)
        )
    tables.notes = lost_note(lost, "chunks that nodes and edges name")
    return tables


def _unquoted(text: str) -> str:
    """Without the quotes and the character references of nano-graphrag."""
    return SEPARATOR.join(html.unescape(part).strip().strip('"') for part in text.split(SEPARATOR))


def _name(node: Element, quoted: bool) -> str:
    name = one_line(node.values.get("entity_id") or (_unquoted(node.id) if quoted else node.id))
    if not name_key(name):
        raise GfmError(f"{node.place}: expected a node with a name, found {node.id!r}")
    return name


def _type(node: Element) -> str:
    kind = one_line(node.values.get("entity_type", ""))
    return "" if kind.lower() in _NOBODY else kind


def _parts(element: Element, name: str) -> list[str]:
    parts = (part.strip() for part in element.values.get(name, "").split(SEPARATOR))
    return [part for part in dict.fromkeys(parts) if part.lower() not in _NOBODY]


def _joined(element: Element, name: str) -> str:
    return " ".join(dict.fromkeys(map(one_line, _parts(element, name))))


def _weight(edge: Element) -> float | None:
    value = edge.values.get("weight", "").strip()
    try:
        return float(value) if value else None
    except ValueError as error:
        raise GfmError(f"{edge.place}: 'weight': expected a number, found {value[:40]!r}") from error


def _chunks(path: Path) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = read_json(path, dict)
    for identifier, row in rows.items():
        if not isinstance(row, dict):
            raise GfmError(f"{path}: {identifier!r}: expected an object with 'content', found {str(row)[:40]!r}")
        checked_text(f"{path}: {identifier!r}", identifier, row.get("content"))
    return rows


def _document(identifier: str, row: dict[str, Any], names: Iterable[str]) -> Document:
    metadata = {"document_id": row["full_doc_id"]} if row.get("full_doc_id", identifier) != identifier else {}
    source = str(row.get("file_path") or "")
    return titled(identifier, "" if source.lower() in _NOBODY else source, row["content"], metadata, names)


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write graph and chunks; triples between two entities become one undirected edge, as LightRAG has them."""
    merged: dict[frozenset[str], list[GivenTriple]] = defaultdict(list)
    triples = [t for t in tables.triples if t.head]
    for triple in triples:
        merged[frozenset((triple.head, triple.tail))].append(triple)
    nodes = [(e.name, _entity(e)) for e in tables.entities]
    edges = [(found[0].head, found[0].tail, _edge(found)) for found in merged.values()]
    write_text(folder / GRAPH, graphml_text(nodes, edges, _NODE_KEYS, _EDGE_KEYS, directed=False))
    write_text(folder / CHUNKS, _json({d.id: _chunk(d) for d in tables.documents}))
    full = {str(d.metadata.get("document_id", d.id)): d for d in reversed(tables.documents)}
    write_text(folder / FULL, _json({i: {"content": d.text, "file_path": _source(d)} for i, d in sorted(full.items())}))
    notes = not_kept(tables, "sentences without a triple", "ids of entities", "aliases")
    if len(edges) < len(triples):
        notes.append(f"triples between the same two entities, put together: {len(triples)} became {len(edges)} edges")
    return notes


def _entity(entity: GivenEntity) -> dict[str, str | float]:
    return {
        "entity_id": entity.name,
        "entity_type": entity.type or "UNKNOWN",
        "description": entity.description,
        "source_id": SEPARATOR.join(entity.passage_ids),
    }


def _edge(triples: list[GivenTriple]) -> dict[str, str | float]:
    said = [t.description or t.text or statement_text(t.head, t.relation, t.tail) for t in triples]
    return {
        "weight": sum(1.0 if t.weight is None else t.weight for t in triples),
        "description": " ".join(dict.fromkeys(said)),
        "keywords": ",".join(dict.fromkeys(t.relation for t in triples if t.relation)),
        "source_id": SEPARATOR.join(sorted({p for t in triples for p in t.passage_ids})),
    }


def _source(document: Document) -> str:
    return source_name(document) or "unknown_source"


def _chunk(document: Document) -> dict[str, Any]:
    return {
        "tokens": len(document.text.split()),
        "content": document.text,
        "chunk_order_index": 0,
        "full_doc_id": document.metadata.get("document_id", document.id),
        "file_path": _source(document),
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
