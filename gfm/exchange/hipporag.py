"""HippoRAG 1 and 2: passages with the entities and triples that an LLM found in them, as JSON.

HippoRAG also keeps a graph.pickle. It is never loaded: unpickling a file runs whatever code its writer put in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from gfm.exchange.tables import GraphTables, checked_text, is_title, not_kept, read_json, write_text
from gfm.text.normalise import name_key
from gfm.text.reading import one_line, printable
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

_FILE = re.compile(r"openie_.*\.json")
FILE = "openie_results_ner_gfm.json"
_PICKLES = (".pickle", ".pkl")


def detect(path: Path) -> bool:
    """Whether this reader is for the path: the folder of a run, or its openie file; a pickle is for it to refuse."""
    if path.is_file():
        return path.suffix.lower() in _PICKLES or _FILE.fullmatch(path.name) is not None
    return bool(_files(path)) or (path / "graph.pickle").is_file()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("openie_*.json") if _FILE.fullmatch(path.name))


def read(path: Path) -> GraphTables:
    """Passages become documents; the first line is the title where the passage's entities have that name.

    What the LLM got wrong (a triple that is not three names) is left out and counted.

    Raises:
        GfmError: A pickle, no such file or several, or a passage that is none (by file and number).
    """
    file = _the_file(path)
    docs = read_json(file, dict).get("docs")
    if not isinstance(docs, list) or not docs:
        raise GfmError(f"{file}: expected an array 'docs' with passages, found {str(docs)[:40]!r}")
    tables = GraphTables()
    mentioned: dict[str, set[str]] = {}
    wrong: list[str] = []
    for number, doc in enumerate(docs):
        place = f"{file}: docs[{number}]"
        if not isinstance(doc, dict):
            raise GfmError(f"{place}: expected an object with 'passage', found {str(doc)[:40]!r}")
        triples = [
            t for t in (_triple(place, i, row, wrong) for i, row in enumerate(_list(place, doc, "triples"))) if t
        ]
        entities = [
            e for e in (_name(place, i, row, wrong) for i, row in enumerate(_list(place, doc, "entities"))) if e
        ]
        document = _document(place, doc, {*entities, *(name for t in triples for name in (t[0], t[2]))})
        tables.documents.append(document)
        for name in entities:
            mentioned.setdefault(name, set()).add(document.id)
        tables.triples += [GivenTriple(*t, passage_ids=(document.id,), place=place) for t in triples]
    tables.entities = [GivenEntity(name, passage_ids=tuple(sorted(ids))) for name, ids in sorted(mentioned.items())]
    if wrong:
        tables.notes.append(f"entities and triples that are none, left out: {len(wrong)}, such as {wrong[0]}")
    return tables


def _the_file(path: Path) -> Path:
    if path.is_file() and path.suffix.lower() not in _PICKLES:
        return path
    files = [] if path.is_file() else _files(path)
    if len(files) > 1:
        raise GfmError(
            f"{path}: expected one openie_*.json, found {', '.join(f.name for f in files)}; name one of them"
        )
    if not files:
        raise GfmError(
            f"{path}: expected HippoRAG's openie_results_ner_*.json, found only a pickle, which is never loaded: "
            "unpickling runs whatever code the file holds. Give the openie_results_ner_*.json of the same run"
        )
    return files[0]


def _list(place: str, doc: dict[str, Any], kind: str) -> list[Any]:
    value = doc.get(f"extracted_{kind}") or []
    if not isinstance(value, list):
        raise GfmError(f"{place}: 'extracted_{kind}': expected an array, found {str(value)[:40]!r}")
    return value


def _name(place: str, number: int, value: object, wrong: list[str]) -> str:
    name = one_line(value) if isinstance(value, str) else ""
    if not name_key(name):
        wrong.append(f"{place}.extracted_entities[{number}]")
        return ""
    return name


def _triple(place: str, number: int, value: object, wrong: list[str]) -> tuple[str, str, str] | None:
    parts = [one_line(x) for x in value if isinstance(x, str)] if isinstance(value, list) and len(value) == 3 else []
    if len(parts) != 3 or not name_key(parts[0]) or not name_key(parts[2]):
        wrong.append(f"{place}.extracted_triples[{number}]")
        return None
    return parts[0], parts[1], parts[2]


def _document(place: str, doc: dict[str, Any], names: set[str]) -> Document:
    identifier = doc.get("idx")
    text = doc.get("passage")
    if identifier is None and isinstance(text, str):
        identifier = f"doc-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
    identifier = str(identifier) if isinstance(identifier, int) else identifier
    identifier, text = checked_text(place, identifier, text)
    first, _, rest = printable(text).partition("\n")
    if rest.strip() and is_title(first, names):
        return Document(identifier, one_line(first), rest)
    return Document(identifier, "", printable(text))


def write(tables: GraphTables, folder: Path) -> list[str]:
    """Write the file that `read` reads; a title becomes the first line of its passage."""
    entities: dict[str, list[str]] = {d.id: [] for d in tables.documents}
    triples: dict[str, list[list[str]]] = {d.id: [] for d in tables.documents}
    for entity in tables.entities:
        for passage in entity.passage_ids:
            entities[passage].append(entity.name)
    for t in tables.triples:
        row = [t.head, t.relation, t.tail]
        for passage in t.passage_ids if t.head else ():
            if row not in triples[passage]:
                triples[passage].append(row)
    docs = [
        {
            "idx": d.id,
            "passage": f"{d.title}\n{d.text}" if d.title else d.text,
            "extracted_entities": entities[d.id],
            "extracted_triples": triples[d.id],
        }
        for d in tables.documents
    ]
    names = [e.name for e in tables.entities for _ in e.passage_ids]
    value = {
        "docs": docs,
        "avg_ent_chars": round(sum(map(len, names)) / len(names), 4) if names else 0,
        "avg_ent_words": round(sum(len(name.split()) for name in names) / len(names), 4) if names else 0,
    }
    write_text(folder / FILE, json.dumps(value, ensure_ascii=False) + "\n")
    return not_kept(
        tables,
        *("weights", "descriptions of triples", "sentences of triples", "sentences without a triple"),
        *("ids of entities", "types of entities", "descriptions of entities", "aliases", "metadata"),
    )
