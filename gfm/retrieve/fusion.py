"""Reciprocal rank fusion of what several retrievers find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, Self, TypeVar

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Retriever, Stopwatch, as_query
from gfm.types import Entity, GfmError, Hit, Passage, PathStep, Query, Retrieval, Triple

T = TypeVar("T")


class FusionRetriever:
    """Reciprocal rank fusion: score = Σ weight / (k + rank) over the lists that hold an item.

    Passages, entities and facts are fused alike; a passage's evidence path is that of the first retriever with one.
    The order is total: score, then id.

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet …", SIGIR 2009.

    Args:
        retrievers: What is fused, by name; all over one index.
        k: Flattens the top of each list.
        depth: How many results of each list are fused, at least.
        weights: By name, 1 unless given.
        name: What the result calls it.

    Raises:
        GfmError: A setting that cannot be meant.
    """

    def __init__(
        self,
        retrievers: Mapping[str, Retriever],
        k: int = 60,
        depth: int = 100,
        weights: Mapping[str, float] | None = None,
        name: str = "fusion",
    ):
        if len(retrievers) < 2:
            raise GfmError(f"{name} retrievers: expected two or more, found {', '.join(retrievers) or 'none'}")
        for setting, number, least in (("k", k, 0), ("depth", depth, 1)):
            if not number >= least:
                raise GfmError(f"{name} {setting}: expected {least} or more, found {number}")
        self.weights = {**dict.fromkeys(retrievers, 1.0), **(weights or {})}
        numbers = list(self.weights.values())
        if set(self.weights) != set(retrievers) or not all(0 <= w < inf for w in numbers) or not any(numbers):
            raise GfmError(
                f"{name} weights: expected {' and '.join(retrievers)}, each 0 or more and one above 0, "
                f"found {dict(weights or {})}"
            )
        self.retrievers, self.k, self.depth, self.name = dict(retrievers), k, depth, name
        self.index = next(iter(self.retrievers.values())).index

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        retrievers = {name: one.over(index) for name, one in self.retrievers.items()}
        return type(self)(retrievers, self.k, self.depth, self.weights, self.name)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages of the fused lists."""
        query, clock = as_query(query, top_k), Stopwatch()
        found = {name: one.retrieve(query, max(top_k, self.depth)) for name, one in self.retrievers.items()}
        with clock.stage("fuse"):
            passages = self._fuse({n: r.passages for n, r in found.items()}, _passage_key)[:top_k]
            entities = self._fuse({n: r.entities for n, r in found.items()}, _entity_key)
            triples = self._fuse({n: r.triples for n, r in found.items()}, _triple_key)
        return Retrieval(
            query,
            entities,
            triples,
            passages,
            "reciprocal rank",
            paths=_paths(passages, found.values()),
            trace={"retriever": self.name, "fused": {name: result.trace for name, result in found.items()}},
            seconds=clock.seconds | _seconds(found),
        )

    def _fuse(self, lists: Mapping[str, list[Hit[T]]], key: Callable[[T], Any]) -> list[Hit[T]]:
        """Everything in the lists, best first, ties by key."""
        scores: dict[Any, float] = defaultdict(float)
        items: dict[Any, T] = {}
        for name, hits in lists.items():
            for hit in hits:
                scores[key(hit.item)] += self.weights[name] / (self.k + hit.rank)
                items[key(hit.item)] = hit.item
        order = sorted(scores, key=lambda i: (-scores[i], i))
        return [Hit(items[i], scores[i], rank) for rank, i in enumerate(order, start=1)]


def _passage_key(passage: Passage) -> str:
    return passage.id


def _entity_key(entity: Entity) -> str:
    return entity.key


def _triple_key(triple: Triple) -> tuple[str, ...]:
    return triple.text, triple.head, triple.relation, triple.tail


def _paths(passages: Iterable[Hit[Passage]], found: Iterable[Retrieval]) -> dict[str, list[PathStep]]:
    ids = {hit.item.id for hit in passages}
    paths: dict[str, list[PathStep]] = {}
    for result in found:
        for passage, path in result.paths.items():
            if passage in ids:
                paths.setdefault(passage, path)
    return paths


def _seconds(found: Mapping[str, Retrieval]) -> dict[str, float]:
    """Seconds of each retriever's stages; those that encode the question are one stage."""
    out: dict[str, float] = {}
    for name, result in found.items():
        for stage, seconds in result.seconds.items():
            label = stage if stage == "encode" else f"{name} {stage}"
            out[label] = out.get(label, 0.0) + seconds
    return out
