"""GraphML: entities, passages and facts as nodes, triples and mentions as edges; or any graph of named nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gfm.exchange.tables import GraphTables, checked_text, write_text
from gfm.exchange.xml_graph import Element, graphml_text, read_graphml
from gfm.text.normalise import name_key
from gfm.text.reading import one_line, printable
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

FILE = "graph.graphml"
_NODE_KEYS = ("kind", "label", "type", "description", "aliases", "id", "text", "metadata")
_EDGE_KEYS = ("kind", "label", "weight", "description", "text", "passage_ids")
_LABELS = ("label", "name", "title")
_TYPES = ("type", "entity_type", "category")
_RELATIONS = ("label", "relation", "predicate", "relationship", "type", "name")


def detect(path: Path) -> bool:
    """Whether this reader is for the path."""
    return path.suffix.lower() == ".graphml" if path.is_file() else len(list(path.glob("*.graphml"))) == 1


def read(path: Path) -> GraphTables:
    """The graph of a file, or of the only GraphML file of a folder.

    Nodes without ``kind`` are entities: their name is ``label``, ``name`` or ``title``, or, where no node has one, the
    id. An edge's relation is ``label``, ``relation``, ``predicate``, ``relationship``, ``type`` or ``name``; its
    direction is kept as it stands.

    Raises:
        GfmError: The file is not GraphML, or a node or edge of it cannot be; by file and line.
    """
    nodes, edges = read_graphml(path if path.is_file() else next(path.glob("*.graphml")))
    of_kind: dict[str, dict[str, Element]] = {"entity": {}, "passage": {}, "fact": {}}
    for identifier, node in nodes.items():
        kind = node.values.get("kind", "entity")
        of_kind[kind if kind in of_kind else "entity"][identifier] = node
    documents = {i: _document(node) for i, node in of_kind["passage"].items()}
    labelled = any(_first(node, _LABELS) for node in of_kind["entity"].values())
    entities = {i: _entity(node, labelled) for i, node in of_kind["entity"].items()}
    tables = GraphTables(list(documents.values()))
    passages: dict[str, list[str]] = {i: [] for i in nodes}
    for edge in edges:
        ends = (edge.source, edge.target) if edge.target in documents else (edge.target, edge.source)
        if ends[1] in documents and ends[0] not in documents:
            passages[ends[0]].append(documents[ends[1]].id)
        elif edge.source in entities and edge.target in entities:
            tables.triples.append(_triple(edge, entities[edge.source], entities[edge.target]))
        else:
            raise GfmError(f"{edge.place}: expected an edge between entities, or of a passage with something else")
    tables.entities = [_with_passages(entity, passages[i]) for i, entity in entities.items()]
    for identifier, node in of_kind["fact"].items():
        text = one_line(node.values.get("text", ""))
        tables.triples.append(GivenTriple("", "", "", tuple(passages[identifier]), text=text, place=node.place))
    tables.notes += _unknown(of_kind["entity"].values(), {*_NODE_KEYS, *_LABELS, *_TYPES}, "nodes")
    tables.notes += _unknown(edges, {*_EDGE_KEYS, *_RELATIONS}, "edges")
    return tables


def _first(element: Element, names: Sequence[str]) -> str:
    return next((value for name in names if (value := one_line(element.values.get(name, "")))), "")


def _document(node: Element) -> Document:
    identifier, text = checked_text(node.place, node.id.removeprefix("passage/"), node.values.get("text"))
    metadata = _json(node, "metadata", {})
    return Document(identifier, one_line(node.values.get("label", "")), printable(text), metadata)


def _entity(node: Element, labelled: bool) -> GivenEntity:
    """An entity; the node's own id tells it from others of its name, unless ids are all the names there are."""
    ours = "kind" in node.values
    name = _first(node, _LABELS) if labelled else one_line(node.id)
    return GivenEntity(
        name=name if name_key(name) else "",
        id=one_line(node.values.get("id", "")) if ours else node.id if labelled else "",
        type=_first(node, _TYPES),
        description=one_line(node.values.get("description", "")),
        aliases=tuple(filter(name_key, map(one_line, _json(node, "aliases", [])))),
        place=node.place,
    )


def _with_passages(entity: GivenEntity, passages: Sequence[str]) -> GivenEntity:
    if not entity.name and not entity.id:
        raise GfmError(f"{entity.place}: expected a node with a label that can be seen, or with an id")
    return GivenEntity(
        entity.name, entity.id, entity.type, entity.description, entity.aliases, tuple(passages), entity.place
    )


def _triple(edge: Element, head: GivenEntity, tail: GivenEntity) -> GivenTriple:
    return GivenTriple(
        head=head.name,
        relation=_first(edge, _RELATIONS),
        tail=tail.name,
        passage_ids=tuple(map(str, _json(edge, "passage_ids", []))),
        weight=_weight(edge),
        description=one_line(edge.values.get("description", "")),
        text=one_line(edge.values.get("text", "")),
        head_id=head.id,
        tail_id=tail.id,
        place=edge.place,
    )


def _weight(edge: Element) -> float | None:
    value = edge.values.get("weight", "").strip()
    try:
        return float(value) if value else None
    except ValueError as error:
        raise GfmError(f"{edge.place}: 'weight': expected a number, found {value[:40]!r}") from error


def _json(element: Element, name: str, default: Any) -> Any:
    """The JSON value of an attribute that we wrote."""
    value = element.values.get(name, "")
    if not value:
        return default
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise GfmError(f"{element.place}: {name!r}: expected JSON, found {value[:40]!r}") from error
    if not isinstance(found, type(default)):
        raise GfmError(f"{element.place}: {name!r}: expected JSON like {json.dumps(default)}, found {value[:40]!r}")
    return found


def _unknown(elements: Iterable[Element], known: set[str], what: str) -> list[str]:
    other = {name for element in elements for name in element.values} - known
    return [f"attributes of {what} that are not known, left out: {', '.join(sorted(other))}"] if other else []


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the file that `read` reads."""
    facts = [t for t in tables.triples if not t.head]
    nodes = [(f"entity/{e.name}", _entity_values(e)) for e in tables.entities]
    nodes += [(f"passage/{d.id}", _passage_values(d)) for d in tables.documents]
    nodes += [(f"fact/{n}", {"kind": "fact", "text": t.text}) for n, t in enumerate(facts)]
    edges = [(f"entity/{t.head}", f"entity/{t.tail}", _triple_values(t)) for t in tables.triples if t.head]
    edges += [(f"entity/{e.name}", f"passage/{p}", {"kind": "mention"}) for e in tables.entities for p in e.passage_ids]
    edges += [(f"fact/{n}", f"passage/{p}", {"kind": "source"}) for n, t in enumerate(facts) for p in t.passage_ids]
    write_text(folder / FILE, graphml_text(nodes, edges, _NODE_KEYS, _EDGE_KEYS))
    return []


def _entity_values(entity: GivenEntity) -> dict[str, str | float]:
    return {
        "kind": "entity",
        "label": entity.name,
        "type": entity.type,
        "description": entity.description,
        "aliases": json.dumps(entity.aliases, ensure_ascii=False) if entity.aliases else "",
        "id": entity.id,
    }


def _passage_values(document: Document) -> dict[str, str | float]:
    metadata = json.dumps(document.metadata, sort_keys=True) if document.metadata else ""
    return {"kind": "passage", "label": document.title, "text": document.text, "metadata": metadata}


def _triple_values(triple: GivenTriple) -> dict[str, str | float]:
    return {
        "kind": "triple",
        "label": triple.relation,
        "weight": "" if triple.weight is None else triple.weight,
        "description": triple.description,
        "text": triple.text,
        "passage_ids": json.dumps(triple.passage_ids, ensure_ascii=False) if triple.passage_ids else "",
    }
