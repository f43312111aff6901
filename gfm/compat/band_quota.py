"""The band-quota retriever: relationships hop by hop, each hop filled from bands of distance to the question.

Source: the knowledge-graph retriever of AutoFlow (pingcap/autoflow at commit 7eb3e1c6f246).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Self

import numpy as np

from gfm.compat.filters import passing_passages
from gfm.compat.quota import (
    ANY_DISTANCE,
    BANDS,
    DEGREE_COEFFICIENT,
    FIRST_RANK_N,
    LIMIT,
    OVERSAMPLE,
    QUOTA,
    SYNOPSIS_ENTITIES,
    band_quota,
    weight_score,
)
from gfm.graph.knowledge_graph import expand
from gfm.index.index import GraphIndex
from gfm.retrieve.base import Stopwatch, as_query, check_whole, passage_hits, query_vector, ranked
from gfm.types import GfmError, Query, Retrieval

_LOG = logging.getLogger(__name__)
_DECIMALS = 6  # of a distance: rounding noise of float32 must not move a relationship across the end of a band
_NEAREST = 10.0**-_DECIMALS  # a perfect match, or one that rounding puts below 0


@dataclass
class _Walk:
    """What one question has visited.

    Attributes:
        vector: float32[D], the question.
        pool: int64[n] triples and float64[n] distances, the nearest of the whole graph, nearest first.
        synopsis: int64[2] entities and float64[2] distances, the nearest (fewer where the graph has fewer).
        triples: bool[T], visited.
        entities: bool[N], visited.
        found: int64 triples and their float64 scores, search by search.
        hops: For each hop its searches: range of distances (None for no cut-off), how many asked for, how many found.
    """

    vector: np.ndarray
    pool: tuple[np.ndarray, np.ndarray]
    synopsis: tuple[np.ndarray, np.ndarray]
    triples: np.ndarray
    entities: np.ndarray
    found: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    hops: list[list[dict[str, Any]]] = field(default_factory=list)


class BandQuotaRetriever:
    """Passages of the relationships that a walk with quotas finds; finds the same relationships as AutoFlow does.

    A relationship is a triple; its distance is 1 - cosine of its fact's vector with the question, rounded to six
    decimals. The first hop takes the 10 best; each further hop takes up to 10 that start from entities visited before,
    near ones first, by the quotas of `gfm.compat.quota.BANDS`. A search looks at the 1,000 nearest relationships of the
    whole graph, keeps those that fit, ranks the 100 nearest by alpha / distance + weight score (+ degrees), and adds
    both ends of the best to the visited entities.

    What the original does not do:

    - All relationships have that score, also where a search had no more than it was asked for and ranked nothing, and
      results are in total order (score descending, then number). What is found is the same.
    - A distance of 0 (or below, by rounding) counts as 0.000001, for the original divides by zero.
    - The graph has no entities that stand for a synopsis of documents: the 2 entities nearest to the question are
      added, however far. They score alpha / distance; no filter applies to them.
    - Passages are those that state a found relationship (and whose documents pass the filters), each with its best
      score. There may be fewer than ``top_k``. Where no relationship is found, and no filter is to blame, passages are
      ranked by alpha / distance of their own, and ``trace["fallback"]`` is "dense".

    Args:
        index: Where to search.
        depth: Hops, the first included; below 2 there is only the first.
        with_degree: Add (in-degree of the head - out-degree of the tail) * 0.001 to a score, over the whole graph.
        alpha: Worth of nearness.
        oversample_visited: Look at the 1,000 nearest unvisited relationships *of the visited entities*. The original
            takes the nearest of the whole graph first, so that it never sees far neighbours of visited entities.
        filters: Metadata that at least one source document of a relationship must have, all of it.

    Raises:
        GfmError: A setting that cannot be meant, or a filter as in `passing_passages`.
    """

    def __init__(
        self,
        index: GraphIndex,
        depth: int = 2,
        with_degree: bool = False,
        alpha: float = 1.0,
        oversample_visited: bool = False,
        filters: Mapping[str, Any] | None = None,
    ):
        check_whole("band_quota depth", depth, 0)
        if not 0 < alpha < inf:
            raise GfmError(f"band_quota alpha: expected a number above 0, found {alpha}")
        self.index, self.depth, self.alpha, self.oversample_visited = index, depth, alpha, oversample_visited
        self.with_degree, self.filters = with_degree, filters
        graph = index.graph
        self._passes = passing_passages(index, filters) if filters else None
        self._valid = graph.triple_weight >= 0
        if self._passes is not None:
            sources, fact = expand(graph.fact_passage_ptr, np.arange(graph.num_facts))
            passing = np.bincount(fact, weights=self._passes[graph.fact_passage[sources]], minlength=graph.num_facts)
            self._valid &= passing[graph.triple_fact] > 0
        self._weight_score = weight_score(graph.triple_weight)
        incoming = np.bincount(graph.triple_tail, minlength=graph.num_entities)
        outgoing = np.bincount(graph.triple_head, minlength=graph.num_entities)
        degrees = incoming[graph.triple_head] - outgoing[graph.triple_tail]
        self._degree_score = degrees * (DEGREE_COEFFICIENT if with_degree else 0.0)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index, self.depth, self.with_degree, self.alpha, self.oversample_visited, self.filters)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages of the found relationships, with these and their entities."""
        query, clock = as_query(query, top_k), Stopwatch()
        vector = query_vector(self.index, query, clock)
        with clock.stage("search"):
            walk = self._start(vector)
        with clock.stage("hops"):
            self._first_hop(walk)
            for _ in range(self.depth - 1):
                self._hop(walk)
        with clock.stage("result"):
            result = self._result(query, top_k, walk)
        result.seconds.update(clock.seconds)
        return result

    def _start(self, vector: np.ndarray) -> _Walk:
        """Nothing visited, and the nearest relationships and entities of the whole graph."""
        graph, count = self.index.graph, LIMIT * OVERSAMPLE
        facts = 2 * count * graph.num_facts // max(graph.num_triples, 1) + 1  # twice what hold so many on average
        while True:
            ids, cosine = (x[0] for x in self.index.fact_vectors.search(vector[None], facts))
            triples, owner = expand(graph.fact_triple_ptr, ids)
            if len(triples) >= count or facts >= graph.num_facts:
                break
            facts *= 2
        pool = _nearest_first(triples[:count], _distance(cosine[owner[:count]]))
        near, cosine = (x[0] for x in self.index.entity_vectors.search(vector[None], SYNOPSIS_ENTITIES))
        visited = np.zeros(graph.num_triples, bool), np.zeros(graph.num_entities, bool)
        return _Walk(vector, pool, (near, _distance(cosine)), *visited)

    def _first_hop(self, walk: _Walk) -> None:
        walk.hops.append([])
        self._search(walk, FIRST_RANK_N, ANY_DISTANCE)

    def _hop(self, walk: _Walk) -> None:
        """One further hop, band by band; each band starts from what the bands before it found, too."""
        found, passed = 0, 0.0
        walk.hops.append([])
        for low, high, ratio in BANDS:
            if found >= QUOTA:
                break
            found += self._search(walk, band_quota(ratio, passed, found), (low, high))
            passed += ratio if ratio != 1 else 0.0

    def _search(self, walk: _Walk, rank_n: int, band: tuple[float, float]) -> int:
        """One search over relationships; what it finds is visited from then on. How many it found."""
        graph = self.index.graph
        triple, distance = self._pool(walk)
        keep = self._valid[triple] & ~walk.triples[triple]
        if band != ANY_DISTANCE:
            keep &= (band[0] <= distance) & (distance <= band[1])
        if walk.entities.any():
            keep &= walk.entities[graph.triple_head[triple]]
        kept = np.flatnonzero(keep)[:LIMIT]
        triple = triple[kept]
        score = self.alpha / distance[kept] + self._weight_score[triple] + self._degree_score[triple]
        if len(triple) > rank_n:
            best = np.argsort(-score, kind="stable")[:rank_n]
            triple, score = triple[best], score[best]
        walk.triples[triple] = True
        walk.entities[graph.triple_head[triple]] = walk.entities[graph.triple_tail[triple]] = True
        walk.found.append((triple, score))
        shown = None if band == ANY_DISTANCE else list(band)
        walk.hops[-1].append({"range": shown, "asked": rank_n, "found": len(triple)})
        return len(triple)

    def _pool(self, walk: _Walk) -> tuple[np.ndarray, np.ndarray]:
        """The relationships that a search looks at and their distances, nearest first."""
        if not (self.oversample_visited and walk.entities.any()):
            return walk.pool
        graph = self.index.graph
        triples = np.flatnonzero(walk.entities[graph.triple_head] & ~walk.triples)
        facts, owner = np.unique(graph.triple_fact[triples], return_inverse=True)
        distance = _distance(self.index.fact_vectors.cosine(facts, walk.vector))[owner]
        triples, distance = _nearest_first(triples, distance)
        return triples[: LIMIT * OVERSAMPLE], distance[: LIMIT * OVERSAMPLE]

    def _result(self, query: Query, top_k: int, walk: _Walk) -> Retrieval:
        graph = self.index.graph
        triples, scores = (np.concatenate(x) for x in zip(*walk.found, strict=True))
        near, near_distance = walk.synopsis
        ends = np.concatenate([graph.triple_head[triples], graph.triple_tail[triples], near])
        entities, best = _best(ends, np.concatenate([scores, scores, self.alpha / near_distance]))
        passages, passage_scores, fallback = self._passages(query, top_k, walk, triples, scores)
        return Retrieval(
            query=query,
            entities=ranked(self.index.entities, entities, best),
            triples=ranked(self.index.triples, triples, scores),
            passages=passage_hits(self.index, passages, passage_scores, top_k),
            score_unit="inverse distance",
            trace={
                "retriever": "band_quota",
                "hops": walk.hops,
                "visited_triples": int(walk.triples.sum()),
                "visited_entities": int(walk.entities.sum()),
                "synopsis": [entity.name for entity in self.index.entities(near)],
                "fallback": fallback,
            },
        )

    def _passages(
        self, query: Query, top_k: int, walk: _Walk, triples: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, str | None]:
        """Passages int64[m] with their scores float64[m], and the name of the fallback that found them, if one did."""
        if not len(triples) and self._passes is None:
            _LOG.warning("query %r: found no relationship; passages are ranked by distance (dense)", query.id)
            ids, cosine = (x[0] for x in self.index.passage_vectors.search(walk.vector[None], top_k))
            return ids, self.alpha / _distance(cosine), "dense"
        graph = self.index.graph
        sources, owner = expand(graph.fact_passage_ptr, graph.triple_fact[triples])
        passages, best = _best(graph.fact_passage[sources], scores[owner])
        keep = slice(None) if self._passes is None else self._passes[passages]
        return passages[keep], best[keep], None


def _distance(cosine: np.ndarray) -> np.ndarray:
    """Cosine distance, float64 like ``cosine``, above 0."""
    return np.maximum(np.round(1.0 - cosine.astype(np.float64), _DECIMALS), _NEAREST)


def _nearest_first(triples: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In order of distance, then number."""
    order = np.lexsort((triples, distance))
    return triples[order], distance[order]


def _best(numbers: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each number once, ascending, with the best of its scores."""
    unique, group = np.unique(numbers, return_inverse=True)
    best = np.full(len(unique), -inf)
    np.maximum.at(best, group, scores)
    return unique, best
