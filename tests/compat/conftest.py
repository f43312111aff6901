"""Indexes whose distances to the question are chosen by hand: the question is the first axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gfm.graph.knowledge_graph import build_graph
from gfm.index.index import GraphIndex
from gfm.index.vectors import Vectors
from gfm.types import Entity, Passage, Triple

FAR = 1.5


def _at(distances: Sequence[float]) -> Vectors:
    """One unit vector at each cosine distance from the first axis."""
    cosine = 1.0 - np.array(distances, dtype=np.float64)
    return Vectors(np.stack([cosine, np.sqrt(np.maximum(1.0 - cosine**2, 0.0))], axis=1).astype(np.float32))


def _world(
    *facts: tuple[Any, ...],
    weights: Sequence[float] | None = None,
    near: dict[str, float] | None = None,
    passages: Sequence[float] = (FAR,),
    metadata: Sequence[dict[str, Any]] = (),
) -> SimpleNamespace:
    """What a retriever reads of an index; every name is an entity.

    Rows are numbered as they stand in the arguments, entities by name.

    Args:
        facts: (head, tail, distance), and then, if it likes, its source passages; or (pairs, distance, passages) for a
            fact of several triples.
        weights: Of the triples; 1 unless given.
        near: Distance of entities; the others are far.
        passages: Distance of each passage.
        metadata: Of each passage's document.
    """
    rows = [f if isinstance(f[0], list) else ([(f[0], f[1])], *f[2:]) for f in facts]
    pairs = [(h, t, i) for i, row in enumerate(rows) for h, t in row[0]]
    names = sorted({name for h, t, _ in pairs for name in (h, t)} | set(near or {}))
    number = {name: i for i, name in enumerate(names)}
    sources = [row[2] if len(row) > 2 else (0,) for row in rows]
    graph = build_graph(
        num_entities=len(names),
        num_passages=len(passages),
        triples=np.array([(number[h], number[t], i) for h, t, i in pairs], dtype=np.int64).reshape(-1, 3),
        triple_weight=np.array(weights if weights is not None else [1.0] * len(pairs)),
        fact_passages=sources,
        mentions=np.zeros((0, 2), dtype=np.int64),
        subjects=np.full(len(passages), -1),
        synonyms=np.zeros((0, 2), dtype=np.int64),
        synonym_weight=np.zeros(0, dtype=np.float32),
    )
    ids = [f"p{i}" for i in range(len(passages))]

    def triple(i: int) -> Triple:
        head, tail, fact = pairs[i]
        weight = float(graph.triple_weight[i])
        return Triple(head, f"r{i}", tail, f"sentence {fact}", weight, tuple(ids[p] for p in sources[fact]))

    return SimpleNamespace(
        graph=graph,
        fact_vectors=_at([row[1] for row in rows]),
        entity_vectors=_at([(near or {}).get(name, FAR) for name in names]),
        passage_vectors=_at(passages),
        passage_ids=ids,
        document_ids=[f"d{i}" for i in range(len(passages))],
        document_metadata={f"d{i}": row for i, row in enumerate(metadata)},
        encode=lambda texts: np.array([[1.0, 0.0]] * len(texts), dtype=np.float32),
        entities=lambda numbers: [Entity(names[i].casefold(), names[i]) for i in numbers],
        triples=lambda numbers: [triple(i) for i in numbers],
        passages=lambda numbers: [Passage(ids[i], f"d{i}", "", f"text {i}", 0, 6) for i in numbers],
    )


@pytest.fixture(scope="session")
def world() -> Callable[..., SimpleNamespace]:
    """Makes a stand-in for an index, see `_world`."""
    return _world


@pytest.fixture
def z(z_index: Any) -> GraphIndex:
    """Corpus Z, open."""
    return GraphIndex.open(z_index)
