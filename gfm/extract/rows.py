"""Rows of triples, entities and aliases, checked one by one: the same fields in JSONL and in CSV."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

from gfm.text.csv_rows import read_csv_rows
from gfm.text.normalise import name_key
from gfm.text.reading import Row, is_identifier, one_line, read_rows
from gfm.types import GfmError, GivenEntity, GivenTriple

# The first of each is ours, the others are those of common tables of edges.
HEAD = ("head", "subject", "source", "src", "from")
RELATION = ("relation", "predicate", "rel", "label", "type")
TAIL = ("tail", "object", "target", "dst", "to")
NAME, ENTITY_ID = ("name", "label", "title"), ("id", "_id")
PASSAGES = ("passage_ids", "passage_id")
TRIPLE_FIELDS = {
    *(*HEAD, *RELATION, *TAIL, *PASSAGES),
    *("weight", "description", "text", "head_id", "tail_id", "head_type", "tail_type"),
}
ENTITY_FIELDS = {*NAME, *ENTITY_ID, *PASSAGES, "type", "description", "aliases"}
LISTS = {"passage_ids", "aliases"}


def read_triple_rows(path: Path) -> list[GivenTriple]:
    """The triples of a JSONL file, each with a passage.

    Raises:
        GfmError: A line is not a triple (by file and line), or the file holds none.
    """
    triples = []
    for row in read_rows(path):
        triple = triple_of(row)
        if not triple.passage_ids:
            row.fail("expected the field 'passage_id': the id of the document that states the triple")
        triples.append(triple)
    if not triples:
        raise GfmError(
            f'{path}: expected lines such as {{"head": "…", "relation": "…", "tail": "…", "passage_id": "…"}}, '
            "found none"
        )
    return triples


def triple_of(row: Row) -> GivenTriple:
    """The triple of a row; one with ``text`` and without head, relation and tail is a sentence on no two entities.

    Raises:
        GfmError: The row is no triple; the message begins with its place.
    """
    place = f"{row.path}:{row.line}"
    ids = {name: row.identifier(name) or "" for name in ("head_id", "tail_id")}
    text, passages = one_line(row.optional("text")), _ids(row)
    ends = any(row.fields.get(name) for name in (*HEAD, *RELATION, *TAIL)) or any(ids.values())
    if text and not ends:
        if not passages:
            row.fail("expected the field 'passage_id': the id of the document that states the sentence")
        return GivenTriple("", "", "", passages, text=text, place=place)
    head = _name(row, HEAD, bool(ids["head_id"]))
    tail = _name(row, TAIL, bool(ids["tail_id"]))
    if all(row.fields.get(name) is None for name in RELATION):
        row.fail("expected the field 'relation' (an empty string where the relation has no name)")
    return GivenTriple(
        head=head,
        relation=one_line(next(filter(None, (row.optional(name) for name in RELATION)), "")),
        tail=tail,
        passage_ids=passages,
        weight=_weight(row),
        description=one_line(row.optional("description")),
        text=text,
        head_type=one_line(row.optional("head_type")),
        tail_type=one_line(row.optional("tail_type")),
        place=place,
        **ids,
    )


def entity_of(row: Row) -> GivenEntity:
    """The entity of a row: a name, or an id, or both.

    Raises:
        GfmError: The row is no entity; the message begins with its place.
    """
    identifier = row.identifier(*ENTITY_ID) or ""
    name = next((name for name in NAME if row.fields.get(name)), None)
    if name is None and not identifier:
        row.fail("expected the field 'name' or the field 'id'")
    aliases = row.fields.get("aliases") or []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        row.fail("'aliases': expected an array of strings")
    found = one_line(row.optional(name)) if name else ""
    if not name_key(found) and not identifier:
        row.fail(f"{name!r}: expected a name, found only white space, markup or invisible characters: {found!r}")
    return GivenEntity(
        name=found if name_key(found) else "",
        id=identifier,
        type=one_line(row.optional("type")),
        description=one_line(row.optional("description")),
        aliases=tuple(filter(name_key, map(one_line, aliases))),
        passage_ids=_ids(row),
        place=f"{row.path}:{row.line}",
    )


def read_aliases(path: Path) -> list[tuple[str, str]]:
    """(alias, name) of every row of a JSONL file, or of a CSV file with these two columns.

    Raises:
        GfmError: A row lacks one of them (by file and line), or the file holds none.
    """
    rows = read_csv_rows(path) if path.suffix.lower() == ".csv" else read_rows(path)
    pairs = [(_name(row, ("alias",), False), _name(row, ("name",), False)) for row in rows]
    if not pairs:
        raise GfmError(f'{path}: expected lines such as {{"alias": "…", "name": "…"}}, found none')
    return pairs


def _name(row: Row, names: Collection[str], optional: bool) -> str:
    """The name under the first of ``names``; empty where it may be."""
    if optional and not any(row.fields.get(name) for name in names):
        return ""
    value = one_line(row.required(*names))
    if not name_key(value):
        row.fail(f"{next(iter(names))!r}: expected a name, found only markup or invisible characters: {value!r}")
    return value


def _ids(row: Row) -> tuple[str, ...]:
    """The passage ids of a row, one or several; each once, in their order."""
    one, several = row.identifier("passage_id"), row.fields.get("passage_ids")
    if several is None:
        return () if one is None else (one,)
    if not isinstance(several, list):
        row.fail("'passage_ids': expected an array of ids")
    ids = [str(i) if isinstance(i, int) and not isinstance(i, bool) else i for i in several]
    for identifier in ids:
        if not isinstance(identifier, str) or not is_identifier(identifier):
            row.fail(f"'passage_ids': expected ids without control characters, found {identifier!r}")
    return tuple(dict.fromkeys([*([one] if one is not None else []), *ids]))


def _weight(row: Row) -> float | None:
    value = row.fields.get("weight")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        row.fail(f"'weight': expected a number, found {value!r}")
    return float(value)
