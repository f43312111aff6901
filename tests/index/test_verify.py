from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.index import store
from gfm.index.builder import build_index
from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.index.verify import verify_index
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError, Section
from tests.index.fakes import document, given_table


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of titles and long texts, whose encoder is found by name; not to be written to."""
    path = tmp_path_factory.mktemp("verify") / "index"
    texts = ["Tarn Mill stands by Port Isk.", "Port Isk lies on the Halder Sea.", "Tarn Mill and Mercury. " * 30]
    documents = [document(f"d{i}", text, title) for i, (text, title) in enumerate(zip(texts, TITLES, strict=True))]
    halves = (Section("Mill, past", 0, 12), Section("Mill, today", 12, 24))
    documents.append(Document("d3", "Mill", "It was grey. It is red. ", {}, halves))
    given = given_table({"d0": [("Tarn Mill", "stands by", "Port Isk")], "d1": [("Port Isk", "lies on", "Halder Sea")]})
    build_index(documents, path, HashingEncoder(64), [given], BuildSettings(chunk_tokens=60))
    return path


TITLES = ["Tarn Mill", "Port Isk", "Mercury (god)"]


@pytest.fixture
def path(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "index")
    return tmp_path / "index"


def problems(path: Path, **options: Any) -> dict[str, list[str]]:
    """What is wrong, by the checks that found something."""
    return {check: found for check, found in verify_index(path, **options).items() if found}


def test_a_whole_index(path: Path) -> None:
    names = ["checksums", "counts", "documents", "graph", "occurrences", "vectors"]
    assert verify_index(path) == {name: [] for name in names}
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    assert list(verify_index(path, rebuild=True)) == [*names, "fresh build"]
    assert problems(path, rebuild=True) == {}
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and "sqlite" not in p.name} == {
        p: data for p, data in before.items() if "sqlite" not in p.name
    }


def test_a_byte_flipped_anywhere_is_found(path: Path) -> None:
    """D09: 20 random bits of every file of the generation, and every bit of CURRENT."""
    rng = random.Random(7)
    folder = path / store.current(path)
    files = sorted(folder.iterdir())
    assert len(files) == 14
    for file in [*files, path / "CURRENT"]:
        data = file.read_bytes()
        bits = range(8 * len(data)) if file.name == "CURRENT" else [rng.randrange(8 * len(data)) for _ in range(20)]
        for bit in bits:
            bad = bytearray(data)
            bad[bit // 8] ^= 1 << bit % 8
            file.write_bytes(bad)
            with pytest.raises(GfmError, match=file.name.replace(".", r"\.")):
                verify_index(path)
        file.write_bytes(data)
    assert problems(path) == {}


@pytest.mark.parametrize("keep", [0, 1, 10, 27])
def test_current_is_cut_off(path: Path, keep: int) -> None:
    (path / "CURRENT").write_bytes((path / "CURRENT").read_bytes()[:keep])
    with pytest.raises(GfmError, match="CURRENT: it names"):
        verify_index(path)


def rewritten(path: Path, change: Callable[[Path], None], **manifest: Any) -> None:
    """The generation with something changed, and sealed again so that every checksum fits."""
    folder, old = store.open_generation(path)
    staging = path / store.STAGING
    folder.rename(staging)
    (staging / store.MANIFEST).unlink()
    change(staging)
    store.commit(path, staging, {k: v for k, v in {**old, **manifest}.items() if k not in {"files", "format_version"}})


def arrays(file: str, name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Path], None]:
    """Change one array of a file in place, or by what is given back."""

    def write(staging: Path) -> None:
        found = {key: array.copy() for key, array in store.map_arrays(staging / file).items()}
        new = change(found[name])
        store.write_arrays(staging / file, {**found, **({} if new is None else {name: new})})

    return write


def column(file: str, name: str, change: Callable[[list[Any]], Any]) -> Callable[[Path], None]:
    """Change one column of a table in place."""

    def write(staging: Path) -> None:
        found = store.read_table(staging / file).to_pydict()
        change(found[name])
        store.write_table(staging / file, found)

    return write


def set_to(at: Any, value: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        values[at] = value

    return change


GRAPH, SAID, VECTORS = "graph.safetensors", "occurrences.safetensors", "vectors.safetensors"


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (arrays(GRAPH, "triple_head", set_to(0, 99)), "graph", "triple_head: expected numbers from 0 to 5, found 99"),
        (arrays(GRAPH, "fact_passage", set_to(0, -1)), "graph", "fact_passage: expected numbers from 0"),
        (arrays(GRAPH, "edge_index", set_to((1, 0), 0)), "graph", "expected every edge in both directions"),
        (arrays(GRAPH, "edge_index", set_to((0, 0), 5)), "graph", "where node_ptr says, found others"),
        (arrays(GRAPH, "edge_kind", set_to(0, 2)), "graph", "expected every edge in both directions"),
        (arrays(GRAPH, "node_ptr", set_to(1, 10**6)), "graph", "node_ptr: expected pointers that rise"),
        (arrays(SAID, "mention", set_to((0, 0), 77)), "occurrences", "mention 0: expected numbers from 0"),
        (arrays(SAID, "near_ptr", set_to(0, 1)), "occurrences", "near names: expected pointers"),
        (arrays("lexical.safetensors", "bm25_indices", set_to(0, 77)), "occurrences", "words: expected numbers"),
        (arrays(VECTORS, "passage", set_to((1, 0), 1.5)), "vectors", "vector of passage 1: expected length 1, found"),
        (
            arrays(VECTORS, "entity", set_to((0, 0), np.nan)),
            "vectors",
            "vector of entity 0: expected length 1, found nan",
        ),
        (column("passages.parquet", "document_id", set_to(0, "dx")), "documents", "its document 'dx' does not exist"),
        (column("passages.parquet", "text", set_to(0, "Other.")), "documents", "passage 'd0': its title and text"),
        (column("passages.parquet", "title", set_to(-1, "Mill")), "documents", "passage 'd3#1': its title and text"),
        (column("passages.parquet", "id", set_to(0, "d9")), "documents", "expected ids in order"),
        (column("documents.parquet", "id", set_to(0, "d00")), "documents", "document 'd00': it has no passage"),
    ],
)
def test_what_no_checksum_tells(path: Path, change: Callable[[Path], None], check: str, words: str) -> None:
    rewritten(path, change)
    assert any(words in problem for problem in problems(path)[check]), problems(path)


def test_counts(path: Path) -> None:
    counts = GraphIndex.open(path).manifest["counts"]
    rewritten(path, lambda staging: None, counts={**counts, "mentions": 99, "hubs": 1, "self_loops": 3})
    assert problems(path)["counts"] == [
        "hubs: expected 1 by the manifest, found 0",
        f"mentions: expected 99 by the manifest, found {counts['mentions']}",
        "self_loops: expected 3 by the manifest, found 0",
    ]


def test_a_fresh_build_tells_what_looks_right_and_is_not(path: Path) -> None:
    """A unit vector, but another one; the names of the files that differ are given."""

    def turned(rows: np.ndarray) -> np.ndarray:
        return np.roll(rows, 1, axis=1)

    rewritten(path, arrays(VECTORS, "fact", turned))
    rewritten(path, arrays(VECTORS, "passage", turned))
    assert problems(path) == {}
    (problem,) = problems(path, rebuild=True)["fresh build"]
    assert problem.startswith("vectors.safetensors: a fresh build makes another (the cache lacked 0 texts")


def test_a_damaged_cache_is_seen_by_a_fresh_build(path: Path) -> None:
    import sqlite3

    with sqlite3.connect(path / "cache.sqlite") as connection:
        connection.execute("UPDATE vector SET value = (SELECT max(value) FROM vector)")
    connection.close()
    assert problems(path) == {}
    assert [p.split(":")[0] for p in problems(path, rebuild=True)["fresh build"]] != []


def test_without_a_cache_a_fresh_build_makes_its_own_elsewhere(path: Path) -> None:
    for file in path.glob("cache.sqlite*"):
        file.unlink()
    assert problems(path, rebuild=True) == {}
    assert list(path.glob("cache.sqlite*")) == []


def test_another_manifest(path: Path) -> None:
    manifest = json.loads((path / store.current(path) / store.MANIFEST).read_bytes())
    rewritten(path, lambda staging: None, search={**manifest["search"], "more": "words"})
    assert problems(path, rebuild=True)["fresh build"] == ["manifest.json: a fresh build makes another"]
