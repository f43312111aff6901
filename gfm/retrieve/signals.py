"""What a question says of an index: its settings, nearest neighbours, word scores and PageRank, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfm.graph.knowledge_graph import HUB_DEGREE, expand
from gfm.graph.pagerank import push
from gfm.index.index import GraphIndex
from gfm.types import GfmError

_MAY_BE_ZERO = {"named", "hops", "walk", "pagerank_passages", "bm25_passages", "dense_passages", "facts", "beam"}


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """How a candidate subgraph is built; every number is a setting.

    Attributes:
        named: Entities of which the whole name stands in the question, the rarest names; they come before the seeds.
        seeds: Entities nearest to the question (FAISS).
        facts: Nearest facts whose ends join the seeds.
        near_facts: Nearest facts whose edges are always looked at, also those of hubs.
        max_start: Cap on the entities to start from.
        hops: Steps outwards.
        beam: New entities kept a hop.
        walk: 0, the beam judges a new entity by the fact that leads to it; 1, by the whole way from the start: the
            product over its steps of the fact's cosine / sqrt(degree of the entity that it leaves).
        max_entities: Cap on entities.
        max_passages: Cap on passages.
        pagerank_passages: Best passages by personalised PageRank, taken first.
        bm25_passages: Best passages by BM25, taken first.
        dense_passages: Passages nearest to the question, taken first.
        pagerank_facts: Nearest facts that seed the PageRank.
        max_fanout: Edges of one node that are looked at; a node with more is a hub, of which the edges of the nearest
            facts and the first ``max_fanout`` are seen.
    """

    named: int = 0
    seeds: int = 64
    facts: int = 32
    near_facts: int = 256
    max_start: int = 128
    hops: int = 2
    beam: int = 128
    walk: int = 0
    max_entities: int = 256
    max_passages: int = 256
    pagerank_passages: int = 112
    bm25_passages: int = 32
    dense_passages: int = 32
    pagerank_facts: int = 5
    max_fanout: int = HUB_DEGREE

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant."""
        for name in self.__slots__:
            least = 0 if name in _MAY_BE_ZERO else 1
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise GfmError(f"candidates.{name}: expected {least} or more, found {value!r}")


@dataclass(frozen=True, slots=True)
class Signals:
    """Everything that the question says of the index, computed once.

    Attributes:
        vector: float32[D], unit norm.
        token_ids: Known tokens of the question.
        bm25: float32[P].
        near_facts: int64[·], nearest facts, best first, with ``near_fact_cosine``.
        seeds: int64[·], nearest entities, best first.
        near_passages: int64[·], nearest passages, best first.
        pagerank: float64[N+P].
        known_fact_cosine: float32[F], NaN where not asked yet.
    """

    vector: np.ndarray
    token_ids: np.ndarray
    bm25: np.ndarray
    near_facts: np.ndarray
    near_fact_cosine: np.ndarray
    seeds: np.ndarray
    near_passages: np.ndarray
    pagerank: np.ndarray
    known_fact_cosine: np.ndarray

    def fact_cosine(self, index: GraphIndex, facts: np.ndarray) -> np.ndarray:
        """Cosine of facts with the question, float32[len(facts)]; each fact's vector is read once a question."""
        known = self.known_fact_cosine
        wanted = np.zeros(len(known), dtype=bool)
        wanted[facts] = True
        new = np.flatnonzero(wanted & np.isnan(known))
        known[new] = index.fact_vectors.cosine(new, self.vector)
        found: np.ndarray = known[facts]
        return found


def read_signals(
    index: GraphIndex, settings: CandidateSettings, probability: np.ndarray, text: str, vector: np.ndarray
) -> Signals:
    """Search an index for a question.

    Args:
        index: Where.
        settings: How many of each.
        probability: Of each edge, from `gfm.graph.pagerank.transition`.
        text: The question.
        vector: float32[D], its unit vector.
    """
    s, graph = settings, index.graph
    token_ids = index.lexical.token_ids(text)
    bm25 = index.lexical.bm25(token_ids)
    seeds = index.entity_vectors.search(vector[None], s.seeds)[0][0]
    facts, fact_cosine = (x[0] for x in index.fact_vectors.search(vector[None], max(s.near_facts, s.facts)))
    passages, cosine = (x[0] for x in index.passage_vectors.search(vector[None], max(s.dense_passages, 64)))
    nodes, mass = restart(index, facts[: s.pagerank_facts], fact_cosine, passages, cosine)
    rank = push(graph, probability, nodes, mass)
    known = np.full(graph.num_facts, np.nan, dtype=np.float32)
    known[facts] = fact_cosine
    return Signals(vector, token_ids, bm25, facts, fact_cosine, seeds, passages, rank, known)


def restart(
    index: GraphIndex,
    facts: np.ndarray,
    fact_score: np.ndarray,
    passages: np.ndarray,
    cosine: np.ndarray,
    phrases: int | None = None,
    passage_weight: float = 0.05,
) -> tuple[np.ndarray, np.ndarray]:
    """Restart distribution: ends of the nearest facts by score / document frequency, passages weakly by cosine.

    Source: HippoRAG 2 (Gutiérrez et al., 2025) without its LLM filter: an entity's weight is the mean over its
    facts, a passage's ``passage_weight`` times its cosine scaled to [0, 1].

    Args:
        index: Where the facts and passages stand.
        facts: int[·], nearest facts.
        fact_score: float[·] for those, best first; may go on.
        passages: int[p]; distinct.
        cosine: float[p].
        phrases: How many entities are kept, the heaviest; all unless given.
        passage_weight: Of the nearest passage.

    Returns:
        Nodes int64[s], entities first, and their mass float64[s], which sums to anything.
    """
    graph = index.graph
    triples, owner = expand(graph.fact_triple_ptr, facts)
    ends = np.concatenate([graph.triple_head[triples], graph.triple_tail[triples]])
    strength = np.tile(np.maximum(fact_score[owner], 0.0), 2)
    entities, group = np.unique(ends, return_inverse=True)
    mean = np.bincount(group, weights=strength) / np.maximum(np.bincount(group), 1)
    mean = mean / np.maximum(graph.entity_df[entities], 1)
    kept = np.lexsort((entities, -mean))[:phrases] if phrases is not None else slice(None)
    nodes = np.concatenate([entities[kept], passages + graph.num_entities])
    return nodes, np.concatenate([mean[kept], passage_weight * min_max(cosine)])


def min_max(scores: np.ndarray) -> np.ndarray:
    """Scores scaled to [0, 1], float like ``scores``; equal scores all become 1."""
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
    return (scores - low) / (high - low) if high > low else np.ones(len(scores))
