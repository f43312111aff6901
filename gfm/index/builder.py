"""Documents to a generation on disk: split, extract, assemble, embed, link near names, write."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import regex as re

from gfm.extract.extraction import Extraction, Extractor, unite
from gfm.graph.assemble import GraphParts, assemble
from gfm.graph.entity_table import EntityTable
from gfm.graph.knowledge_graph import build_graph
from gfm.index import store, vectors
from gfm.index.cache import Cache
from gfm.index.lexical import make_lexical
from gfm.index.lock import LOCK, writer_lock
from gfm.text.chunk import embedded_text, split
from gfm.text.encoder import Encoder
from gfm.types import Document, GfmError, Passage

_DIGITS = re.compile(r"\d+")
CACHE = "cache.sqlite"


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What a build depends on besides documents, encoder and extractor.

    Attributes:
        chunk_tokens: Most tokens of a passage.
        chunk_overlap: Tokens shared by neighbouring passages of one document.
        synonym_cosine: Least cosine of two names for a synonym edge.
        synonym_neighbours: Nearest names looked at for each name.
    """

    chunk_tokens: int = 256
    chunk_overlap: int = 0
    synonym_cosine: float = 0.8
    synonym_neighbours: int = 8


def split_all(documents: Sequence[Document], encoder: Encoder, settings: BuildSettings) -> list[Passage]:
    """All passages, sorted by id.

    Raises:
        GfmError: No documents, two documents or passages of one id, or an overlap that fills the passages.
    """
    if not documents:
        raise GfmError("expected at least one document to index, found none")
    if not 0 <= settings.chunk_overlap < settings.chunk_tokens:
        raise GfmError(
            f"chunk overlap: expected at least 0 tokens and fewer than the {settings.chunk_tokens} of a passage, "
            f"found {settings.chunk_overlap}; change --chunk-overlap"
        )
    for one, two in pairwise(sorted(d.id for d in documents)):
        if one == two:
            raise GfmError(f"two documents have the id {one!r}; ids must be unique: rename one in the corpus")
    passages = sorted(
        (p for d in documents for p in split(d, encoder, settings.chunk_tokens, settings.chunk_overlap)),
        key=lambda p: p.id,
    )
    for a, b in pairwise(passages):
        if a.id == b.id:
            raise GfmError(
                f"two passages have the id {a.id!r} (documents {a.document_id!r} and {b.document_id!r}); ids must be "
                "unique: rename one in the corpus"
            )
    return passages


def synonyms(
    parts: GraphParts, entity_vectors: np.ndarray, settings: BuildSettings, graph: faiss.Index | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Edges between near-equal names, and between a name and its forms with a bracket (weight 1).

    Names whose numbers differ are never near-equal: "7 March 1901" is not "8 March 1901"; nor are two of one name that
    ids or types tell apart.

    Args:
        parts: The graph without these edges.
        entity_vectors: float32[N, D], unit norm.
        settings: The least cosine, and how many neighbours are looked at.
        graph: HNSW over the same vectors, where the search is approximate.

    Returns:
        int64[S, 2] unique sorted pairs and float32[S] weights.
    """
    pairs, cosine = vectors.similar_pairs(entity_vectors, settings.synonym_neighbours, settings.synonym_cosine, graph)
    numbers = [_DIGITS.findall(key) for key, _ in parts.entities]
    apart = {pair for group in parts.apart for pair in combinations(sorted(group), 2)}
    weight = {
        (int(a), int(b)): float(c)
        for (a, b), c in zip(pairs, cosine, strict=True)
        if numbers[a] == numbers[b] and (int(a), int(b)) not in apart
    }
    weight.update({(min(a, b), max(a, b)): 1.0 for a, b in parts.aliases})
    ordered = sorted(weight)
    return (
        np.array(ordered, dtype=np.int64).reshape(-1, 2),
        np.array([weight[p] for p in ordered], dtype=np.float32),
    )


def build_index(
    documents: Sequence[Document],
    path: Path,
    encoder: Encoder,
    extractors: Sequence[Extractor],
    settings: BuildSettings | None = None,
    cache_path: Path | None = None,
    table: EntityTable | None = None,
) -> dict[str, float]:
    """Write an index of ``documents`` to the folder ``path``.

    Args:
        documents: What to index; their order plays no part.
        path: Folder of the index; made where it is missing. An index already there is replaced atomically.
        encoder: Makes all vectors; its fingerprint goes into the manifest.
        extractors: Their facts are united.
        settings: See `BuildSettings`.
        cache_path: The cache; ``path/cache.sqlite`` unless given.
        table: What is known of entities beside the texts: aliases, types, descriptions.

    Returns:
        Seconds by stage.

    Raises:
        GfmError: Bad input, or a folder that holds something else.
    """
    settings = settings or BuildSettings()
    if path.exists() and not (path.is_dir() and _is_ours(path)):
        raise GfmError(
            f"{path}: expected a new folder or an index to replace, found something else; give another --out"
        )
    clock = _Laps()
    passages = split_all(documents, encoder, settings)
    clock.lap("split")
    with _disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with writer_lock(path):
        _replace(documents, passages, path, encoder, extractors, settings, cache_path, clock, table or EntityTable())
    return clock.seconds


class _Laps:
    """Seconds by stage, one stage after another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End ``stage`` and start the next."""
        now = time.perf_counter()
        self.seconds[stage], self._start = now - self._start, now


def _replace(
    documents: Sequence[Document],
    passages: Sequence[Passage],
    path: Path,
    encoder: Encoder,
    extractors: Sequence[Extractor],
    settings: BuildSettings,
    cache_path: Path | None,
    clock: _Laps,
    table: EntityTable,
) -> None:
    """Make a generation and put it in force; the old one stands until then."""
    cache = Cache(cache_path or path / CACHE)
    try:
        found_by = [cache.extractions(passages, e) for e in extractors]
        rows = zip(*found_by, strict=True)
        extractions = [unite(row) for row in rows] if found_by else [Extraction()] * len(passages)
        clock.lap("extract")
        parts = assemble(passages, extractions, table)
        clock.lap("assemble")
        found = {
            "passage": cache.vectors([embedded_text(p.title, p.text) for p in passages], encoder, "passages"),
            "fact": cache.vectors(parts.facts, encoder, "facts"),
            "entity": cache.vectors([name for _, name in parts.entities], encoder, "entities"),
        }
        clock.lap("encode")
    finally:
        cache.close()
    hnsw = {name: vectors.make_hnsw(rows) for name, rows in found.items()}
    links, weight = synonyms(parts, found["entity"], settings, hnsw["entity"])
    clock.lap("synonyms")
    search = {name: "exact" if graph is None else "hnsw" for name, graph in sorted(hnsw.items())}
    staging = path / store.STAGING
    with _disk_errors(path):
        if staging.exists():  # of a build that was killed
            shutil.rmtree(staging)
        staging.mkdir()
        counts = _write(staging, documents, passages, parts, links, weight, found, hnsw, table)
        store.commit(path, staging, _manifest(encoder, extractors, settings, counts, search))
    clock.lap("write")


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Turns a full disk or a missing permission into what a person can do about it."""
    try:
        yield
    except OSError as error:
        raise GfmError(
            f"{path}: expected a folder that can be written, found: {error}; see that it is writable and has space, "
            "then build again (an index that was there before still stands)"
        ) from error


def _is_ours(path: Path) -> bool:
    """Whether a build may write into the folder: it holds an index, or nothing that a build did not put there."""
    if store.GENERATION.fullmatch(store.current(path)):
        return True
    ours = {store.CURRENT, f"{store.CURRENT}.new", store.STAGING, LOCK, *(CACHE + s for s in ("", "-wal", "-shm"))}
    return all(p.name in ours or store.GENERATION.fullmatch(p.name) for p in path.iterdir())


def _manifest(
    encoder: Encoder,
    extractors: Sequence[Extractor],
    settings: BuildSettings,
    counts: dict[str, int],
    search: dict[str, str],
) -> dict[str, Any]:
    return {
        "counts": counts,
        "encoder": encoder.fingerprint.as_json(),
        "extractors": [e.settings for e in extractors],
        "settings": {name: getattr(settings, name) for name in BuildSettings.__slots__},
        "search": search,
    }


def _write(
    folder: Path,
    documents: Sequence[Document],
    passages: Sequence[Passage],
    parts: GraphParts,
    links: np.ndarray,
    weight: np.ndarray,
    found: dict[str, np.ndarray],
    hnsw: dict[str, faiss.Index | None],
    table: EntityTable,
) -> dict[str, int]:
    triples = np.array([t[:3] for t in parts.triples], dtype=np.int64).reshape(-1, 3)
    graph = build_graph(
        num_entities=len(parts.entities),
        num_passages=len(passages),
        triples=triples,
        triple_weight=np.array([t[4] for t in parts.triples], dtype=np.float32),
        fact_passages=parts.fact_passages,
        mentions=parts.mentions,
        subjects=parts.subjects,
        synonyms=links,
        synonym_weight=weight,
    )
    vocabulary, lexical = make_lexical(
        [embedded_text(p.title, p.text) for p in passages], [name for _, name in parts.entities]
    )
    store.write_arrays(folder / "graph.safetensors", graph.arrays())
    store.write_arrays(folder / "lexical.safetensors", lexical)
    store.write_arrays(folder / "vectors.safetensors", found)
    for name, search_graph in hnsw.items():
        if search_graph is not None:
            vectors.write_hnsw(folder / f"{name}.hnsw", search_graph)
    store.write_table(folder / "vocabulary.parquet", {"token": list(vocabulary)})
    store.write_table(folder / "documents.parquet", _document_columns(documents))
    store.write_table(
        folder / "passages.parquet",
        {name: [getattr(p, name) for p in passages] for name in Passage.__slots__},
    )
    store.write_table(folder / "entities.parquet", _entity_columns(parts))
    store.write_table(folder / "forms.parquet", _form_columns(parts))
    store.write_table(folder / "aliases.parquet", _alias_columns(table))
    store.write_table(folder / "facts.parquet", {"text": parts.facts})
    store.write_table(
        folder / "triples.parquet",
        {"relation": [t[3] for t in parts.triples], "description": parts.descriptions},
    )
    return {
        "documents": len(documents),
        "passages": len(passages),
        "entities": graph.num_entities,
        "facts": graph.num_facts,
        "triples": graph.num_triples,
        "mentions": len(parts.mentions),
        "synonyms": len(links),
        "edges": graph.num_edges,
        "self_loops": parts.self_loops,
    }


def _entity_columns(parts: GraphParts) -> dict[str, list[str]]:
    """Key and name of every entity, and what was given of it."""
    return {
        "key": [key for key, _ in parts.entities],
        "name": [name for _, name in parts.entities],
        **{name: [getattr(g, name) if g else "" for g in parts.given] for name in ("id", "type", "description")},
    }


def _form_columns(parts: GraphParts) -> dict[str, list[Any]]:
    """The spellings, with their counts, of every entity that has another one than its name."""
    rows = [
        (number, form, count)
        for number, ((_, name), forms) in enumerate(zip(parts.entities, parts.forms, strict=True))
        if {form for form, _ in forms} != {name}
        for form, count in forms
    ]
    return {name: [row[i] for row in rows] for i, name in enumerate(("entity", "form", "count"))}


def _alias_columns(table: EntityTable) -> dict[str, list[str]]:
    rows = [(alias.form, name) for _, alias in sorted(table.aliases.items()) for name in alias.names]
    return {"alias": [form for form, _ in rows], "name": [name for _, name in rows]}


def _document_columns(documents: Sequence[Document]) -> dict[str, list[str]]:
    ordered = sorted(documents, key=lambda d: d.id)
    return {
        "id": [d.id for d in ordered],
        "title": [d.title for d in ordered],
        "text": [d.text for d in ordered],
        "metadata": [json.dumps(d.metadata, ensure_ascii=False, sort_keys=True, default=str) for d in ordered],
    }
