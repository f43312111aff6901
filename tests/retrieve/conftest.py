"""Tiny indexes: real ones from texts and triples, and stand-ins with graphs and vectors chosen by hand."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gfm.graph.knowledge_graph import build_graph
from gfm.index.index import GraphIndex
from gfm.index.lexical import Lexical, make_lexical
from gfm.index.vectors import Vectors

logging.getLogger("bm25s").setLevel(logging.WARNING)  # a line an index: hypothesis makes hundreds

MakeIndex = Callable[..., GraphIndex]


@pytest.fixture
def make_index(tmp_path: Path) -> MakeIndex:
    """Builds a real index of texts (id → text) and given triples (head, relation, tail, passage id)."""

    def make(
        texts: dict[str, str], triples: Sequence[tuple[str, str, str, str]] = (), name: str = "made"
    ) -> GraphIndex:
        folder = tmp_path / name
        folder.mkdir()
        rows = [json.dumps({"_id": i, "text": text}, ensure_ascii=False) for i, text in texts.items()]
        (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        links = [dict(zip(("head", "relation", "tail", "passage_id"), row, strict=True)) for row in triples]
        given = folder / "triples.jsonl"
        given.write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in links), encoding="utf-8")
        source: dict[str, Any] = {"triples": given} if links else {"extractor": "none"}
        return GraphIndex.build(folder / "corpus.jsonl", folder / "index", encoder="hashing:64", **source)

    return make


def _rows(vectors: Any, count: int, dim: int) -> Vectors:
    """The given vectors scaled to length 1; the last axis for all where none are given."""
    rows = np.zeros((count, dim), dtype=np.float32) if vectors is None else np.array(vectors, dtype=np.float32)
    if vectors is None:
        rows[:, -1] = 1.0
    rows = rows.reshape(count, dim)
    return Vectors((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))


def _stub_index(
    names: Sequence[str],
    facts: Sequence[tuple[int, int, tuple[int, ...]]] = (),
    *,
    lone_facts: Sequence[tuple[int, ...]] = (),
    passages: Sequence[str] = (),
    mentions: Sequence[tuple[int, int]] = (),
    subjects: dict[int, int] | None = None,
    synonyms: Sequence[tuple[int, int, float]] = (),
    entity_vectors: Any = None,
    fact_vectors: Any = None,
    passage_vectors: Any = None,
    dim: int = 4,
) -> SimpleNamespace:
    """What candidates and inputs read of an index.

    Args:
        names: Of the entities.
        facts: (head, tail, source passages), one triple each.
        lone_facts: Source passages of facts after those, which name no second entity and so have no triple.
        passages: Texts.
        mentions: (passage, entity).
        subjects: Passage → the entity that it is about, one of its mentions.
        synonyms: (entity, entity, cosine).
        entity_vectors: One row an entity; so for the others. Not given: the last axis for all.
        dim: Length of the vectors.
    """
    about = np.full(len(passages), -1, dtype=np.int64)
    for passage, entity in (subjects or {}).items():
        about[passage] = entity
    graph = build_graph(
        num_entities=len(names),
        num_passages=len(passages),
        triples=np.array([(h, t, i) for i, (h, t, _) in enumerate(facts)], dtype=np.int64).reshape(-1, 3),
        triple_weight=np.ones(len(facts)),
        fact_passages=[*(sources for _, _, sources in facts), *lone_facts],
        mentions=np.array(sorted(mentions), dtype=np.int64).reshape(-1, 2),
        subjects=about,
        synonyms=np.array([(a, b) for a, b, _ in synonyms], dtype=np.int64).reshape(-1, 2),
        synonym_weight=np.array([w for _, _, w in synonyms], dtype=np.float32),
    )
    vocabulary, arrays = make_lexical(list(passages), list(names))
    return SimpleNamespace(
        graph=graph,
        subjects=about,
        lexical=Lexical(vocabulary, arrays, len(passages)),
        entity_vectors=_rows(entity_vectors, len(names), dim),
        fact_vectors=_rows(fact_vectors, len(facts) + len(lone_facts), dim),
        passage_vectors=_rows(passage_vectors, len(passages), dim),
    )


def _random_index(seed: int, num_entities: int = 10, num_passages: int = 5, num_links: int = 20) -> SimpleNamespace:
    """Random links of every kind and random vectors; entity 0 has more than its share of the links."""
    rng = np.random.default_rng(seed)

    def pairs(count: int) -> list[tuple[int, int]]:
        if num_entities < 2:
            return []
        drawn = rng.integers(0, num_entities, (count, 2))
        drawn[rng.random(count) < 0.4, 0] = 0
        return [(int(a), int(b)) for a, b in drawn if a != b]

    sources = [
        tuple(sorted({int(p) for p in rng.integers(0, num_passages, 2)})) if num_passages else () for _ in range(99)
    ]
    facts = [(a, b, sources[i]) for i, (a, b) in enumerate(sorted(set(pairs(num_links))))]
    mentions = {(p, e) for h, t, row in facts for p in row for e in (h, t) if rng.random() < 0.7}
    subjects = {p: min(e for q, e in mentions if q == p) for p in {p for p, _ in mentions} if rng.random() < 0.5}
    synonyms = sorted({(min(x), max(x)) for x in pairs(num_links // 4)})
    words = ["mill", "sea", "port", "jam", "year", "winter", "venn", "isk"]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(num_passages)]
    lone = [(int(p),) for p in rng.integers(0, num_passages, 4)] if num_passages else []
    return _stub_index(
        [" ".join(rng.choice(words, 2)) for _ in range(num_entities)],
        facts,
        lone_facts=lone,
        passages=texts,
        mentions=sorted(mentions),
        subjects=subjects,
        synonyms=[(a, b, 0.9) for a, b in synonyms],
        entity_vectors=rng.normal(size=(num_entities, 4)),
        fact_vectors=rng.normal(size=(len(facts) + len(lone), 4)),
        passage_vectors=rng.normal(size=(num_passages, 4)),
    )


@pytest.fixture(scope="session")
def stub_index() -> Callable[..., SimpleNamespace]:
    """Makes a stand-in for an index, see `_stub_index`."""
    return _stub_index


@pytest.fixture(scope="session")
def random_index() -> Callable[..., SimpleNamespace]:
    """Makes a random stand-in for an index, see `_random_index`."""
    return _random_index


@pytest.fixture
def z(z_index: Path) -> GraphIndex:
    """Corpus Z, open."""
    return GraphIndex.open(z_index)
