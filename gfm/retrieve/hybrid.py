"""Reciprocal rank fusion of dense and BM25."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Retriever, Stopwatch, as_query
from gfm.retrieve.bm25 import BM25Retriever
from gfm.retrieve.dense import DenseRetriever
from gfm.types import GfmError, Hit, Passage, Query, Retrieval


class HybridRetriever:
    """Reciprocal rank fusion: score = Σ weight / (k + rank).

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet …", SIGIR 2009.

    Args:
        index: Where to search.
        k: Flattens the top of each list.
        depth: How many results of each list are fused, at least.
        weights: By list, ``dense`` and ``bm25``.

    Raises:
        GfmError: A setting that cannot be meant.
    """

    def __init__(self, index: GraphIndex, k: int = 60, depth: int = 100, weights: Mapping[str, float] | None = None):
        self.index = index
        self.k, self.depth = k, depth
        for name, number, least in (("k", k, 0), ("depth", depth, 1)):
            if not number >= least:
                raise GfmError(f"hybrid {name}: expected {least} or more, found {number}")
        self.weights = {"dense": 1.0, "bm25": 1.0, **(weights or {})}
        numbers = list(self.weights.values())
        if set(self.weights) != {"dense", "bm25"} or not all(0 <= w < inf for w in numbers) or not any(numbers):
            raise GfmError(
                f"hybrid weights: expected dense and bm25, each 0 or more and one above 0, found {dict(weights or {})}"
            )
        self._lists: dict[str, Retriever] = {"dense": DenseRetriever(index), "bm25": BM25Retriever(index)}

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages of the fused lists."""
        query, clock = as_query(query, top_k), Stopwatch()
        scores: dict[str, float] = defaultdict(float)
        items: dict[str, Passage] = {}
        for name, retriever in self._lists.items():
            found = retriever.retrieve(query, max(top_k, self.depth))
            clock.seconds |= {f"{name} {stage}": s for stage, s in found.seconds.items()}
            for hit in found.passages:
                scores[hit.item.id] += self.weights[name] / (self.k + hit.rank)
                items[hit.item.id] = hit.item
        with clock.stage("fuse"):
            order = sorted(scores, key=lambda i: (-scores[i], i))[:top_k]
            hits = [Hit(items[i], scores[i], rank) for rank, i in enumerate(order, start=1)]
        clock.seconds["encode"] = clock.seconds.pop("dense encode", 0.0)
        return Retrieval(query, [], [], hits, "reciprocal rank", trace={"retriever": "hybrid"}, seconds=clock.seconds)
