"""The form that every graph passes through on its way in or out: documents, entities and triples as rows."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gfm.extract.given import GivenGraph
from gfm.extract.resolve import resolve
from gfm.text.normalise import best_form, name_key, plain_name, statement_text, strip_bracket
from gfm.text.reading import is_blank, is_identifier, one_line, printable, read_text
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

MADE = {"made_from": "graph"}


@dataclass
class GraphTables:
    """A graph and its texts.

    Attributes:
        documents: Texts; may be empty where only the graph is known.
        entities: What is known of entities; those of triples need no row.
        triples: Statements, and sentences without a triple.
        notes: What a reader passed over or a writer could not keep, for people.
    """

    documents: list[Document] = field(default_factory=list)
    entities: list[GivenEntity] = field(default_factory=list)
    triples: list[GivenTriple] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ordered(self) -> GraphTables:
        """The same rows in one order, whatever order they came in."""
        return GraphTables(
            sorted(self.documents, key=lambda d: d.id),
            sorted(self.entities, key=lambda e: (e.name, e.id, e.type)),
            sorted(self.triples, key=lambda t: (t.head, t.tail, t.relation, t.text, t.description, t.passage_ids)),
            self.notes,
        )


def prepare(tables: GraphTables) -> tuple[list[Document], GivenGraph]:
    """Documents and extractor of a build; what no passage states gets one.

    For an entity whose triples name no passage, or of which only a description or its name is known, a passage is made:
    the description, and one sentence a triple.

    Raises:
        GfmError: Nothing to build from, a passage id that no document has, or rows that contradict each other.
    """
    resolved = resolve(tables.entities, tables.triples)

    def key_of(name: str) -> str:
        return resolved.table.canonical(name_key(name))

    told: dict[str, list[GivenTriple]] = defaultdict(list)
    in_triples: set[str] = set()
    for triple in resolved.triples:
        in_triples |= {key_of(triple.head), key_of(triple.tail)}
        if not triple.passage_ids:
            told[key_of(triple.head)].append(triple)
    rows = {name_key(entity.name): entity for entity in resolved.entities}
    names = {key: rows[key].name if key in rows else min(t.head for t in ts) for key, ts in told.items()}
    for key, entity in rows.items():
        if not entity.passage_ids and (entity.description or key not in in_triples):
            names.setdefault(key, entity.name)
    taken = {document.id for document in tables.documents}
    made = {key: _made(name, rows.get(key), told[key], taken) for key, name in sorted(names.items())}
    if not made and not tables.documents:
        raise GfmError("expected documents, entities or triples to build an index from, found none")

    def placed(triple: GivenTriple) -> GivenTriple:
        home = made.get(key_of(triple.head))
        return triple if triple.passage_ids or home is None else replace(triple, passage_ids=(home.id,))

    def at_home(entity: GivenEntity) -> GivenEntity:
        home = made.get(name_key(entity.name))
        return entity if home is None else replace(entity, passage_ids=(*entity.passage_ids, home.id))

    graph = GivenGraph(
        replace(
            resolved, entities=[at_home(e) for e in resolved.entities], triples=[placed(t) for t in resolved.triples]
        )
    )
    documents = [*tables.documents, *made.values()]
    graph.check({document.id for document in documents})
    if made:
        tables.notes.append(f"passages made of descriptions and triples that name none: {len(made)}")
    return documents, graph


def canonical(tables: GraphTables, whole_documents: bool) -> GraphTables:
    """The same graph for a writer: a row for each entity, and ends by its name.

    Args:
        tables: The graph.
        whole_documents: Whether ``ID#k``, a passage of a document that is there, may be named; otherwise its document
            stands for it.

    Raises:
        GfmError: As `prepare`.
    """
    documents, graph = prepare(tables)
    known = {document.id for document in documents}
    table = graph.resolved.table
    rows = {name_key(entity.name): entity for entity in graph.resolved.entities}
    spelt: dict[str, set[str]] = defaultdict(set)
    mentioned: dict[str, set[str]] = defaultdict(set)

    def key(name: str) -> str:
        return table.canonical(name_key(name))

    def places(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted({i if whole_documents or i in known else i.rpartition("#")[0] for i in ids}))

    for triple in graph.resolved.triples:
        for name in filter(None, (triple.head, triple.tail)):
            spelt[key(name)].add(name)
            mentioned[key(name)].update(places(triple.passage_ids))
    for missing in set(spelt) - set(rows):
        rows[missing] = GivenEntity(plain_name(best_form(Counter(spelt[missing]))))
    entities = [
        replace(row, passage_ids=tuple(sorted({*places(row.passage_ids), *mentioned[k]}))) for k, row in rows.items()
    ]
    triples = [
        replace(t, passage_ids=places(t.passage_ids))
        if not t.head
        else replace(t, head=rows[key(t.head)].name, tail=rows[key(t.tail)].name, passage_ids=places(t.passage_ids))
        for t in graph.resolved.triples
    ]
    return GraphTables(documents, entities, triples, tables.notes).ordered()


def _made(name: str, entity: GivenEntity | None, triples: Sequence[GivenTriple], taken: set[str]) -> Document:
    """The passage of an entity that no passage speaks of; its id goes into ``taken``."""
    sentences = {t.text or statement_text(t.head, t.relation, t.tail, t.description) for t in triples}
    lines = [entity.description] if entity and entity.description else []
    lines += sorted(sentences)
    if not lines:
        lines = [f"{name}: {entity.type}" if entity and entity.type else name]
    identifier = f"entity:{name}"
    number = 1
    while identifier in taken:
        number += 1
        identifier = f"entity:{name} ({number})"
    taken.add(identifier)
    text = "\n".join(line if line[-1] in ".!?。！？" else f"{line}." for line in lines)  # noqa: RUF001
    return Document(identifier, name, text, dict(MADE))


def one_row_each(entities: Iterable[GivenEntity]) -> list[GivenEntity]:
    """Rows of a system in which the name alone says which entity is meant: their types are put together."""
    types: dict[str, set[str]] = defaultdict(set)
    rows = list(entities)
    for row in rows:
        types[name_key(row.name)].update([row.type] if row.type else [])
    return [replace(row, type=", ".join(sorted(types[name_key(row.name)]))) for row in rows]


def is_title(name: str, entities: Iterable[str]) -> bool:
    """Whether what a system calls a text is a title, not a file's name or an id: an entity of the text has this name.

    Args:
        name: Of the text.
        entities: Names of the entities that the text mentions; a title may have a bracket more.
    """
    return bool({name_key(name), name_key(strip_bracket(name))} & {name_key(entity) for entity in entities})


def titled(identifier: str, name: str, text: str, metadata: dict[str, Any], entities: Iterable[str]) -> Document:
    """A document whose title is ``name`` if `is_title` says so; otherwise the name is kept as ``file_path``."""
    name = one_line(name)
    if is_title(name, entities):
        return Document(identifier, name, printable(text), metadata)
    return Document(identifier, "", printable(text), {**metadata, "file_path": name} if name else metadata)


def source_name(document: Document) -> str:
    """What `titled` made title or metadata of."""
    return document.title or str(document.metadata.get("file_path", ""))


def names_by_passage(entities: Iterable[GivenEntity]) -> dict[str, set[str]]:
    """Names of the entities that each passage mentions."""
    found: dict[str, set[str]] = defaultdict(set)
    for entity in entities:
        for passage in entity.passage_ids:
            found[passage].add(entity.name)
    return found


def known_ids(ids: Iterable[str], known: set[str], place: str, lost: dict[str, str]) -> tuple[str, ...]:
    """Those ids that are known, each once, sorted; the place of each other one goes into ``lost``."""
    found = set(ids)
    for identifier in found - known:
        lost.setdefault(identifier, place)
    return tuple(sorted(found & known))


def lost_note(lost: dict[str, str], what: str) -> list[str]:
    """One note on references that lead nowhere, with the first place."""
    if not lost:
        return []
    identifier, place = min(lost.items(), key=lambda pair: (pair[1], pair[0]))
    return [f"{what} that are not there, left out: {len(lost)}, such as {identifier!r} ({place})"]


def read_json(path: Path, kind: type) -> Any:
    """The JSON value of a file, which has to be of the given kind (dict or list).

    Raises:
        GfmError: The file is not UTF-8, not JSON, or something else.
    """
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise GfmError(f"{path}: expected JSON; {error}") from error
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "an array"
        raise GfmError(f"{path}: expected {expected}, found {type(value).__name__}")
    return value


def checked_text(place: str, identifier: object, text: object) -> tuple[str, str]:
    """Id and text of a passage.

    Raises:
        GfmError: One of them is not a string or blank.
    """
    if not isinstance(identifier, str) or not is_identifier(identifier):
        raise GfmError(
            f"{place}: expected the id of a passage, not blank and without control characters, found {identifier!r}"
        )
    if not isinstance(text, str) or is_blank(text):
        raise GfmError(f"{place}: expected a text that is not blank, found {str(text)[:40]!r}")
    return identifier, text


def write_text(path: Path, text: str) -> None:
    r"""A file in UTF-8 with ``\n`` at the ends of lines, its folder made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


_COUNTED = {
    "weights": lambda t: sum(x.weight is not None for x in t.triples),
    "relations": lambda t: sum(bool(x.relation) for x in t.triples),
    "descriptions of triples": lambda t: sum(bool(x.description) for x in t.triples),
    "sentences of triples": lambda t: sum(bool(x.text and x.head) for x in t.triples),
    "sentences without a triple": lambda t: sum(not x.head for x in t.triples),
    "ids of entities": lambda t: sum(bool(x.id) for x in t.entities),
    "types of entities": lambda t: sum(bool(x.type) for x in t.entities),
    "descriptions of entities": lambda t: sum(bool(x.description) for x in t.entities),
    "aliases": lambda t: sum(len(x.aliases) for x in t.entities),
    "titles": lambda t: sum(bool(x.title) for x in t.documents),
    "metadata": lambda t: sum(bool(x.metadata) for x in t.documents),
}


def not_kept(tables: GraphTables, *fields: str) -> list[str]:
    """One note on what a format has no place for, counted; nothing where there is none of it."""
    found = [f"{_COUNTED[name](tables)} {name}" for name in fields if _COUNTED[name](tables)]
    return [f"not part of this format, and left out: {', '.join(found)}"] if found else []
