"""The formats by name: which one a path is in, reading it, and writing a folder that reads back the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

from gfm.exchange import (
    csv_files,
    g_reasoner,
    gfm_rag,
    graphml,
    graphrag,
    hipporag,
    jsonl,
    lightrag,
    ntriples,
)
from gfm.exchange.tables import GraphTables, canonical
from gfm.index import store
from gfm.types import GfmError

# In the order in which they are tried: a folder of a system before the plain files that it may hold.
_FORMATS: dict[str, ModuleType] = {
    "graphrag": graphrag,
    "lightrag": lightrag,
    "hipporag": hipporag,
    "gfm-rag": gfm_rag,
    "g-reasoner": g_reasoner,
    "jsonl": jsonl,
    "csv": csv_files,
    "graphml": graphml,
    "ntriples": ntriples,
}
NAMES = tuple(_FORMATS)
WHOLE_DOCUMENTS = ("jsonl", "csv")  # the others have one text for what a triple names as its source
_LAYOUTS = (
    "entities.parquet (graphrag), graph_chunk_entity_relation.graphml (lightrag), openie_*.json (hipporag), kg.txt "
    "(gfm-rag), nodes.csv with a column attributes (g-reasoner), triples.jsonl or entities.jsonl (jsonl), triples.csv, "
    "edges.csv, entities.csv or nodes.csv (csv), one .graphml (graphml), or one .nt (ntriples)"
)


def detect(path: Path) -> str:
    """The name of the format that a file or folder is in.

    Raises:
        GfmError: It is in none, or there is no such path.
    """
    if not path.exists():
        raise GfmError(f"{path}: does not exist; expected a file or folder in one of the formats {', '.join(NAMES)}")
    if store.current(path):
        raise GfmError(f"{path}: expected a graph, found an index of gfm; ask it: gfm search {path} QUESTION")
    name = next((name for name, module in _FORMATS.items() if module.detect(path)), None)
    if name is None:
        raise GfmError(f"{path}: expected a graph, found none of {_LAYOUTS}; name the format with --format")
    return name


def read(path: Path, name: str | None = None) -> GraphTables:
    """The graph at a path.

    Args:
        path: A file or a folder.
        name: Its format; detected unless given.

    Raises:
        GfmError: An unknown format, or a row that is not what it should be, by file and line.
    """
    tables: GraphTables = _module(name or detect(path)).read(path)
    return tables


def write(tables: GraphTables, folder: Path, name: str) -> list[str]:
    """Write a graph to a new folder, and read it back before the folder gets its name.

    Args:
        tables: The graph.
        folder: Where; must not be there yet, or be empty.
        name: The format.

    Returns:
        What the format has no place for, for people.

    Raises:
        GfmError: The folder holds something, or what was written does not read back.
    """
    module = _module(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GfmError(
            f"{folder}: expected a new or empty folder to write to, found something in it; give another --out"
        )
    whole = name in WHOLE_DOCUMENTS
    tables = canonical(tables, whole)
    staging = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    notes: list[str] = module.write(tables, staging)
    back: GraphTables = module.read(staging)
    if [d.id for d in back.ordered().documents] != [d.id for d in tables.documents] and name != "gfm-rag":
        raise GfmError(f"{staging}: expected to read back every passage that was written, found others; report this")
    if folder.exists():
        folder.rmdir()
    staging.replace(folder)
    return notes


def _module(name: str) -> ModuleType:
    if name not in _FORMATS:
        raise GfmError(f"format {name!r}: expected one of {', '.join(NAMES)}")
    return _FORMATS[name]
