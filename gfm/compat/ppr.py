"""Personalised PageRank over the whole graph, as in HippoRAG: the second form of it, and the first."""

from __future__ import annotations

import logging
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, SYNONYM, KnowledgeGraph, expand
from gfm.graph.pagerank import pagerank, walk_matrix
from gfm.index.index import GraphIndex
from gfm.retrieve.base import Stopwatch, as_query, passage_hits, query_vector, ranked
from gfm.retrieve.candidates import top
from gfm.retrieve.signals import min_max, restart
from gfm.types import Entity, GfmError, Hit, Query, Retrieval

_LOG = logging.getLogger(__name__)


class PPRRetriever:
    """Passages by the mass of a walk that starts anew at what is near the question.

    It walks over facts, synonyms (by their cosine) and mentions, and starts from the heaviest ends of the nearest
    facts (cosine, scaled to [0, 1] over all facts, by document frequency) and weakly from every passage. The order is
    total: mass, then passage id.

    Source: HippoRAG 2 (Gutiérrez et al., "From RAG to memory", ICML 2025) without the LLM that sifts the facts.

    Args:
        index: Where to search.
        facts: Nearest facts to start from.
        phrases: Entities kept of those that the facts name.
        passage_weight: Start weight of the nearest passage, beside 1 for the only phrase of the nearest fact.
        damping: Share of the mass that walks on in each step.

    Raises:
        GfmError: A setting that cannot be meant.
    """

    def __init__(
        self,
        index: GraphIndex,
        facts: int = 5,
        phrases: int = 5,
        passage_weight: float = 0.05,
        damping: float = 0.5,
    ):
        for name, number in (("facts", facts), ("phrases", phrases)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise GfmError(f"ppr {name}: expected a whole number of 1 or more, found {number!r}")
        if not 0 < passage_weight < np.inf:
            raise GfmError(f"ppr passage_weight: expected a number above 0, found {passage_weight}")
        self.index = index
        self.facts, self.phrases, self.passage_weight = facts, phrases, passage_weight
        self.damping = _damping("ppr", damping)
        self._walk = walk_matrix(index.graph)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index, self.facts, self.phrases, self.passage_weight, self.damping)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` passages with the most mass, and the phrases that it came from."""
        query, clock = as_query(query, top_k), Stopwatch()
        vector = query_vector(self.index, query, clock)
        n_e = self.index.graph.num_entities
        nodes, rank = self._mass(vector, clock)
        with clock.stage("rank"):
            best = top(rank[n_e:], top_k)
            hits = passage_hits(self.index, best, rank[n_e + best], top_k)
            phrases = nodes[nodes < n_e]
            entities = ranked(self.index.entities, phrases, rank[phrases])
        trace = {"retriever": "ppr", "seeds": [hit.item.name for hit in entities]}
        return Retrieval(query, entities, [], hits, "PageRank", trace=trace, seconds=clock.seconds)

    def rank_entities(self, query: str | Query, top_k: int = 10) -> list[Hit[Entity]]:
        """The entities with the most mass."""
        query, clock = as_query(query, top_k), Stopwatch()
        _, rank = self._mass(query_vector(self.index, query, clock), clock)
        best = top(rank[: self.index.graph.num_entities], top_k)
        return ranked(self.index.entities, best, rank[best])

    def _mass(self, vector: np.ndarray, clock: Stopwatch) -> tuple[np.ndarray, np.ndarray]:
        """Nodes that the walk starts from, and the mass of every node."""
        with clock.stage("seeds"):
            nodes, mass = self._seeds(vector)
        with clock.stage("pagerank"):
            return nodes, pagerank(self._walk, nodes, mass, damping=self.damping)

    def _seeds(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes to start from, and their mass."""
        index = self.index
        # The fact farthest from the question is the one nearest to its opposite.
        facts, cosine = index.fact_vectors.search(np.stack([vector, -vector]), self.facts)
        score = min_max(np.append(cosine[0], -cosine[1, :1]))
        passages = np.arange(index.graph.num_passages)
        near = index.passage_vectors.cosine(passages, vector)
        return restart(index, facts[0], score, passages, near, self.phrases, self.passage_weight)


class EntityPPRRetriever:
    """Passages by the mass of the entities in their facts, after a walk from the entities that the question names.

    It walks over facts and synonyms, and starts at each named entity with 1 / document frequency. A passage's score
    is the mass of both ends of each triple that it states; one without any is no result. Where the question names no
    entity, or none with a fact, passages are ranked by cosine, and ``trace["fallback"]`` says so. The order is total:
    score, then passage id.

    Source: HippoRAG (Gutiérrez et al., NeurIPS 2024). There an LLM finds the names in the question and the nearest
    entity stands for each; here an entity is named where all words of its name stand in the question, unless they are
    some of the words of a longer name that stands there too.

    Args:
        index: Where to search.
        damping: Share of the mass that walks on in each step.

    Raises:
        GfmError: A damping that is not above 0 and below 1.
    """

    def __init__(self, index: GraphIndex, damping: float = 0.5):
        self.index, self.damping = index, _damping("ppr_entity", damping)
        graph = index.graph
        between = np.isin(graph.edge_kind, (FACT, INVERSE_FACT, SYNONYM))
        self._walk = walk_matrix(graph, np.where(between, graph.edge_weight, 0.0))
        self._stated = _stated(graph)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index, self.damping)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages, and the named entities."""
        query, clock = as_query(query, top_k), Stopwatch()
        index = self.index
        seeds, rank = self._mass(query, clock)
        with clock.stage("pagerank"):
            score = self._stated @ rank
        fallback = None if score.any() else "dense"
        if fallback:
            _LOG.warning("query %r: it names no entity of a fact; ranked by cosine (dense)", query.id)
            vector = query_vector(index, query, clock)
            with clock.stage("rank"):
                best, cosine = (x[0] for x in index.passage_vectors.search(vector[None], top_k))
                hits = passage_hits(index, best, cosine, top_k)
        else:
            with clock.stage("rank"):
                best = top(score, top_k)
                best = best[score[best] > 0]
                hits = passage_hits(index, best, score[best], top_k)
        entities = ranked(index.entities, seeds, rank[seeds])
        return Retrieval(
            query,
            entities,
            [],
            hits,
            "cosine" if fallback else "PageRank",
            trace={"retriever": "ppr_entity", "fallback": fallback, "seeds": [hit.item.name for hit in entities]},
            seconds=clock.seconds,
        )

    def rank_entities(self, query: str | Query, top_k: int = 10) -> list[Hit[Entity]]:
        """The entities with the most mass; none where the question names none."""
        _, rank = self._mass(as_query(query, top_k), Stopwatch())
        best = top(rank, top_k)
        best = best[rank[best] > 0]
        return ranked(self.index.entities, best, rank[best])

    def _mass(self, query: Query, clock: Stopwatch) -> tuple[np.ndarray, np.ndarray]:
        """The named entities, and the mass of every entity."""
        index = self.index
        with clock.stage("seeds"):
            seeds = np.sort(index.lexical.named(index.lexical.token_ids(query.text)))
            weight = 1.0 / np.maximum(index.graph.entity_df[seeds], 1)
        with clock.stage("pagerank"):
            return seeds, pagerank(self._walk, seeds, weight, damping=self.damping)[: index.graph.num_entities]


def _stated(graph: KnowledgeGraph) -> csr_array:
    """How often each entity is an end of a triple that each passage states, float64[P, N]."""
    position, triple = expand(graph.fact_passage_ptr, graph.triple_fact)
    passage = np.tile(graph.fact_passage[position], 2)
    entity = np.concatenate([graph.triple_head[triple], graph.triple_tail[triple]])
    return csr_array((np.ones(len(entity)), (passage, entity)), shape=(graph.num_passages, graph.num_entities))


def _damping(name: str, damping: float) -> float:
    """A damping that lets a walk both go on and start anew.

    Raises:
        GfmError: It is not above 0 and below 1.
    """
    if not 0 < damping < 1:
        raise GfmError(f"{name} damping: expected a share above 0 and below 1, found {damping}")
    return damping
