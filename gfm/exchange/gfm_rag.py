"""GFM-RAG: kg.txt, document2entities.json and a corpus; `g_reasoner` is its second version."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gfm.exchange.tables import (
    GraphTables,
    checked_text,
    is_title,
    known_ids,
    lost_note,
    names_by_passage,
    not_kept,
    read_json,
    write_text,
)
from gfm.text.normalise import name_key
from gfm.text.reading import one_line, printable, read_lines
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

SYNONYM = "equivalent"
_CORPORA = ("documents.json", "dataset_corpus.json")
_KG, _ENTITIES_OF = "kg.txt", "document2entities.json"
_STAGE, _CORPUS = Path("processed", "stage1"), Path("raw", "dataset_corpus.json")


def detect(path: Path) -> bool:
    """Whether this reader is for the path: the folder of a data set, or that of its processed files."""
    return path.is_dir() and next(path.rglob(_KG), None) is not None


def read(path: Path) -> GraphTables:
    """Documents, entities and triples.

    The files do not tell which document states a triple: it is given to those that list both its ends. Edges named
    ``equivalent`` join near names and are left out.

    Raises:
        GfmError: A file is missing or a line is not what it should be, by file and line.
    """
    texts = read_texts(path)
    lost: dict[str, str] = {}
    tables = GraphTables(entities=_entities(find_file(path, _ENTITIES_OF), set(texts), lost))
    names = names_by_passage(tables.entities)
    tables.documents = [document_of(key, text, {}, names.get(key, ())) for key, text in texts.items()]
    kg = find_file(path, _KG)
    synonyms = 0
    for number, line in read_lines(kg):
        parts = [one_line(part) for part in line.split(",")]
        if len(parts) != 3 or not name_key(parts[0]) or not name_key(parts[2]):
            raise GfmError(f"{kg}:{number}: expected head,relation,tail, found {line[:60]!r}")
        if parts[1] == SYNONYM:
            synonyms += 1
        else:
            tables.triples.append(GivenTriple(parts[0], parts[1], parts[2], place=f"{kg}:{number}"))
    place_triples(tables)
    tables.notes = lost_note(lost, "documents that entities name") + synonym_note(synonyms)
    return tables


def find_file(path: Path, *names: str) -> Path:
    """The only file of one of these names below the folder, or in raw/ beside the folder of processed files.

    Raises:
        GfmError: There is none, or several.
    """
    found = sorted({file for name in names for file in path.rglob(name)})
    if not found:
        found = [file for name in names if (file := path.parent.parent / "raw" / name).is_file()]
    if len(found) != 1:
        raise GfmError(
            f"{path}: expected one file {' or '.join(names)}, found {len(found)}; name the folder of one data set"
        )
    return found[0]


def read_texts(path: Path) -> dict[str, str]:
    """The texts of a data set by their key, which is a title or an id.

    Raises:
        GfmError: The file is missing, or a text is none.
    """
    corpus = find_file(path, *_CORPORA)
    return {key: checked_text(f"{corpus}: {key!r}", key, text)[1] for key, text in read_json(corpus, dict).items()}


def document_of(key: str, text: str, attributes: Mapping[str, Any], names: Iterable[str]) -> Document:
    """A document by its key, which may be its title or an id.

    Args:
        key: As the data set has it.
        text: Of the document.
        attributes: That we write; they say more than the key.
        names: Of the entities that it mentions.
    """
    title = str(attributes.get("title", key if is_title(_bare(key), map(_bare, names)) else ""))
    metadata = attributes.get("metadata")
    kept = metadata if isinstance(metadata, dict) else {}
    return Document(str(attributes.get("id", key)), one_line(title), printable(text), kept)


def _entities(path: Path, documents: set[str], lost: dict[str, str]) -> list[GivenEntity]:
    mentioned: dict[str, set[str]] = defaultdict(set)
    spelt: dict[str, str] = {}
    for key, names in read_json(path, dict).items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise GfmError(f"{path}: {key!r}: expected an array of names, found {str(names)[:40]!r}")
        for name in map(one_line, names):
            if name_key(name):
                spelt[name_key(name)] = min(name, spelt.get(name_key(name), name))
                mentioned[name_key(name)].update(known_ids([key], documents, str(path), lost))
    return [GivenEntity(name, passage_ids=tuple(sorted(mentioned[key]))) for key, name in sorted(spelt.items())]


def place_triples(tables: GraphTables) -> None:
    """Give each triple without a passage those that mention both its ends."""
    mentioned: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entity in tables.entities:
        mentioned[entity.id, name_key(entity.name)].update(entity.passage_ids)
    for number, t in enumerate(tables.triples):
        if not t.passage_ids:
            both = mentioned[t.head_id, name_key(t.head)] & mentioned[t.tail_id, name_key(t.tail)]
            tables.triples[number] = replace(t, passage_ids=tuple(sorted(both)))


def synonym_note(count: int) -> list[str]:
    """What was left out because an index makes its own."""
    return [f"edges between near names ({SYNONYM!r}), left out: {count}; an index makes its own"] if count else []


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the folder of a data set. Names lose their commas: kg.txt has no quotes."""
    titles = Counter(d.title for d in tables.documents)
    ids = {d.id for d in tables.documents}
    key = {
        d.id: d.title if titles[d.title] == 1 and d.title and d.title not in ids - {d.id} else d.id
        for d in tables.documents
    }
    names: dict[str, dict[str, None]] = {name: {} for name in sorted(key.values())}
    for entity in tables.entities:
        for passage in entity.passage_ids:
            names[key[passage]][_bare(entity.name)] = None
    lines = sorted({",".join(map(_bare, (t.head, t.relation, t.tail))) for t in tables.triples if t.head})
    entities_of = {name: list(found) for name, found in names.items()}
    write_text(folder / _STAGE / _KG, "".join(f"{line}\n" for line in lines))
    write_text(folder / _STAGE / _ENTITIES_OF, json.dumps(entities_of, ensure_ascii=False, indent=1) + "\n")
    texts = dict(sorted((key[d.id], d.text) for d in tables.documents))
    write_text(folder / _CORPUS, json.dumps(texts, ensure_ascii=False, indent=1) + "\n")
    return not_kept(
        tables,
        *("weights", "descriptions of triples", "sentences of triples", "sentences without a triple"),
        *("ids of entities", "types of entities", "descriptions of entities", "aliases", "metadata"),
    )


def _bare(name: str) -> str:
    return " ".join(name.replace(",", " ").split())
