"""Documents to a generation on disk: split, extract, assemble, embed, link near names, write."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from gfm.extract.extraction import Extraction, Extractor, unite
from gfm.graph.assemble import read
from gfm.graph.entity_table import EntityTable
from gfm.graph.knowledge_graph import build_graph, hubs
from gfm.graph.linker import TitleLinker
from gfm.graph.occurrences import merge
from gfm.graph.parts import GraphParts, number
from gfm.index import store, vectors
from gfm.index.cache import Cache
from gfm.index.carry import carry
from gfm.index.content import KINDS, Content, write_content
from gfm.index.lexical import lexical_arrays, merge_words
from gfm.index.lock import LOCK, writer_lock
from gfm.index.near import NOBODY, Near, nearest, synonyms
from gfm.index.recipe import BuildSettings, Recipe
from gfm.index.spliced import Spliced
from gfm.memory import without_collector
from gfm.progress import track
from gfm.text.chunk import embedded_text, split
from gfm.text.encoder import Encoder
from gfm.types import Document, GfmError, Passage

CACHE = "cache.sqlite"


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
    s, watched = settings, track(documents, len(documents), "split")
    return by_id(p for d in watched for p in split(d, encoder, s.chunk_tokens, s.chunk_overlap))


def by_id(passages: Iterable[Passage]) -> list[Passage]:
    """Passages sorted by id.

    Raises:
        GfmError: Two have one id.
    """
    found = sorted(passages, key=lambda p: p.id)
    for a, b in pairwise(found):
        if a.id == b.id:
            raise GfmError(
                f"two passages have the id {a.id!r} (documents {a.document_id!r} and {b.document_id!r}); ids must be "
                "unique: rename one in the corpus"
            )
    return found


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
    recipe = Recipe(encoder, extractors, settings or BuildSettings(), table)
    if path.exists() and not (path.is_dir() and _is_ours(path)):
        raise GfmError(
            f"{path}: expected a new folder or an index to replace, found something else; give another --out"
        )
    clock = Laps()
    passages = split_all(documents, encoder, recipe.settings)
    clock.lap("split")
    with store.disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with writer_lock(path), open_cache(path, cache_path) as cache:
        replace(path, Content(), documents, passages, recipe, cache, clock)
    return clock.seconds


class Laps:
    """Seconds by stage, one stage after another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End ``stage`` and start the next."""
        now = time.perf_counter()
        self.seconds[stage], self._start = now - self._start, now


@contextmanager
def open_cache(path: Path, cache_path: Path | None) -> Iterator[Cache]:
    """The cache of the index in the folder ``path``: its own unless another is given."""
    cache = Cache(cache_path or path / CACHE)
    try:
        yield cache
    finally:
        cache.close()


def replace(
    path: Path,
    old: Content,
    documents: Sequence[Document],
    passages: Sequence[Passage],
    recipe: Recipe,
    cache: Cache,
    clock: Laps,
) -> dict[str, Any]:
    """Make a generation and put it in force; the old one stands until then.

    Args:
        path: Folder of the index; the caller holds its lock.
        old: What is carried over; `Content()` for nothing. What is made does not depend on it.
        documents: All documents of the new generation.
        passages: All their passages, sorted by id.
        recipe: How everything is made, also what is in ``old``.
        cache: Knows extractions and vectors that were made before.
        clock: Takes the seconds of each stage.

    Returns:
        The new manifest.
    """
    made = _make(old, documents, passages, recipe, cache, clock)
    staging = path / store.STAGING
    with store.disk_errors(path):
        if staging.exists():  # of a build that was killed
            shutil.rmtree(staging)
        staging.mkdir()
        counts = _write(staging, made)
        folder = store.commit(path, staging, {"counts": counts, "search": made.search, **recipe.as_json()})
        manifest: dict[str, Any] = json.loads((folder / store.MANIFEST).read_bytes())
    clock.lap("write")
    return manifest


@dataclass(frozen=True)
class _Made:
    content: Content
    parts: GraphParts
    table: EntityTable
    links: np.ndarray
    link_weight: np.ndarray
    hnsw: dict[str, faiss.Index | None]

    @property
    def search(self) -> dict[str, str]:
        """How each kind of vectors is searched."""
        return {kind: "exact" if graph is None else "hnsw" for kind, graph in sorted(self.hnsw.items())}


def _make(
    old: Content,
    documents: Sequence[Document],
    passages: Sequence[Passage],
    recipe: Recipe,
    cache: Cache,
    clock: Laps,
) -> _Made:
    linker, given = TitleLinker((p.title for p in passages), recipe.table), recipe.rows
    same, moved = carry(old, passages, given, linker)
    fresh = _left(moved, passages, whole_documents=not all(e.cached for e in recipe.extractors))
    moved[np.isin(moved, fresh)] = -1
    extractions = _extractions([passages[i] for i in fresh], recipe, cache)
    clock.lap("extract")
    pairs = track(zip(fresh, extractions, strict=True), len(fresh), "assemble")
    readings = ((i, read(linker, passages[i], x)) for i, x in pairs)
    said = merge(old.said, moved, readings, len(passages))
    parts = number(said, linker)
    names = [name for _, name in parts.entities]
    clock.lap("assemble")
    texts = [embedded_text(p.title, p.text) for p in passages]
    old_texts = [embedded_text(p.title, p.text) for p in old.passages]
    rows = {
        "passage": _vectors("passage", texts, old_texts, old, recipe, cache),
        "fact": _vectors("fact", said.facts, old.said.facts, old, recipe, cache),
        "entity": _vectors("entity", names, old.names, old, recipe, cache),
    }
    clock.lap("encode")
    hnsw = {kind: vectors.make_hnsw(rows[kind]) for kind in KINDS}
    near = nearest(
        rows["entity"],
        recipe.settings.synonym_neighbours,
        recipe.settings.synonym_cosine,
        *_known_near(old, parts.entities),
        hnsw["entity"],
    )
    links, weight = synonyms(said.keys, near, parts.aliases, parts.apart)
    clock.lap("synonyms")
    new_texts = {i: texts[i] for i in sorted(set(range(len(passages))) - set(same.tolist()))}
    words = merge_words(old.words, same, new_texts, old.names, names)
    near = near if hnsw["entity"] is None else NOBODY  # nearly the nearest: nothing to build upon
    content = Content(sorted(documents, key=lambda d: d.id), passages, given, said, names, words, near, rows)
    return _Made(content, parts, recipe.table, links, weight, hnsw)


def _left(moved: np.ndarray, passages: Sequence[Passage], whole_documents: bool) -> list[int]:
    """The passages that nothing is carried over for; with them, if need be, the others of their documents."""
    left = set(range(len(passages))) - set(moved.tolist())
    if whole_documents:
        open_documents = {passages[i].document_id for i in left}
        left = {i for i, p in enumerate(passages) if p.document_id in open_documents}
    return sorted(left)


def _extractions(passages: Sequence[Passage], recipe: Recipe, cache: Cache) -> Sequence[Extraction]:
    """What all extractors say of each passage, put together."""
    found_by = [cache.extractions(passages, e) for e in recipe.extractors]
    return [unite(row) for row in zip(*found_by, strict=True)] if found_by else [Extraction()] * len(passages)


def _vectors(
    kind: str, texts: Sequence[str], old_texts: Sequence[str], old: Content, recipe: Recipe, cache: Cache
) -> Spliced:
    """Vectors of ``texts``, float32[·, D]: those of the old index where it had the text, else from cache or encoder."""
    place = dict(zip(old_texts, range(len(old_texts)), strict=True))
    row = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
    new = np.flatnonzero(row < 0)
    row[new] = len(old_texts) + np.arange(len(new))
    made = cache.vectors([texts[i] for i in new.tolist()], recipe.encoder, f"{kind} vectors")
    return Spliced(old.rows[kind].whole() if len(old_texts) else made[:0], made, row)


def _known_near(old: Content, entities: Sequence[tuple[str, str]]) -> tuple[Near, np.ndarray]:
    """The old lists of near names, and where each name stands now; one that is shown otherwise has another vector."""
    if len(old.near.ptr) - 1 != len(old.names):
        return NOBODY, np.zeros(0, np.int64)
    place = {entity: i for i, entity in enumerate(entities)}
    moved = [place.get(entity, -1) for entity in zip(old.said.keys, old.names, strict=True)]
    return old.near, np.array(moved, dtype=np.int64)


def _is_ours(path: Path) -> bool:
    """Whether a build may write into the folder: it holds an index, or nothing that a build did not put there."""
    if store.GENERATION.fullmatch(store.current(path)):
        return True
    ours = {store.CURRENT, f"{store.CURRENT}.new", store.STAGING, LOCK, *(CACHE + s for s in ("", "-wal", "-shm"))}
    return all(p.name in ours or store.GENERATION.fullmatch(p.name) for p in path.iterdir())


@without_collector()
def _write(folder: Path, made: _Made) -> dict[str, int]:
    """Write every file of a generation but its manifest; what it counts is given back."""
    content, parts = made.content, made.parts
    graph = build_graph(
        num_entities=len(parts.entities),
        num_passages=len(content.passages),
        triples=parts.triple_ends,
        triple_weight=parts.weight,
        fact_passages=parts.fact_passages,
        mentions=parts.mentions,
        subjects=parts.subjects,
        synonyms=made.links,
        synonym_weight=made.link_weight,
    )
    write_content(folder, content, _given_columns(parts))
    store.write_table(folder / "forms.parquet", _form_columns(parts))
    store.write_table(folder / "aliases.parquet", _alias_columns(made.table))
    store.write_arrays(folder / "lexical.safetensors", lexical_arrays(content.words, len(content.passages)))
    store.write_arrays(folder / "graph.safetensors", graph.arrays())
    store.write_table(folder / "triples.parquet", {"relation": parts.relations, "description": parts.descriptions})
    for kind, search_graph in made.hnsw.items():
        if search_graph is not None:
            vectors.write_hnsw(folder / f"{kind}.hnsw", search_graph)
    return {
        "documents": len(content.documents),
        "passages": len(content.passages),
        "entities": graph.num_entities,
        "facts": graph.num_facts,
        "triples": graph.num_triples,
        "mentions": len(parts.mentions),
        "synonyms": len(made.links),
        "edges": graph.num_edges,
        "hubs": len(hubs(graph)),
        "self_loops": parts.self_loops,
    }


def _given_columns(parts: GraphParts) -> dict[str, list[str]]:
    """What was given of every entity."""
    return {name: [getattr(g, name) if g else "" for g in parts.given] for name in ("id", "type", "description")}


def _form_columns(parts: GraphParts) -> dict[str, list[Any]]:
    """The spellings, with their counts, of every entity that has another one than its name."""
    rows = [(number, form, count) for number, forms in parts.forms.items() for form, count in forms]
    return {name: [row[i] for row in rows] for i, name in enumerate(("entity", "form", "count"))}


def _alias_columns(table: EntityTable) -> dict[str, list[str]]:
    rows = [(alias.form, name) for _, alias in sorted(table.aliases.items()) for name in alias.names]
    return {"alias": [form for form, _ in rows], "name": [name for _, name in rows]}
