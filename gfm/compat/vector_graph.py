"""Vector Graph RAG by rules: vectors choose entities and relations, the graph joins their neighbours."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from gfm.graph.knowledge_graph import expand
from gfm.graph.linker import TitleLinker
from gfm.index.index import GraphIndex
from gfm.retrieve.base import Stopwatch, as_query, check_whole, passage_hits, query_vector, ranked
from gfm.retrieve.candidates import distinct, top
from gfm.types import GfmError, Query, Retrieval

_LOG = logging.getLogger(__name__)

Chooser = Callable[[str, Sequence[tuple[int, str]]], Sequence[int]]


class VectorGraphRetriever:
    """Relations near the question and around the entities that it names; their passages, then the nearest passages.

    A relation is one embedded sentence: a fact of the index, with all entities that its triples join. Both LLM calls of
    the original are replaced:

    - *Entities of the question.* The names of the index that stand in the question whole, the longest where they
      overlap, all of those that differ in a bracket alone; each searches with its own vector. A model would also find
      names that begin in lower case or that the index spells otherwise.
    - *The choice of relations.* By cosine with the question, unless a ``chooser`` is given. The best of them are then
      the nearest facts of the whole index, for those are in the start set: the expansion shows only where more
      relations are picked than ``near_relations``, or where a chooser picks.

    Source: Vector Graph RAG (zilliztech/vector-graph-rag), whose defaults are the defaults here.

    Args:
        index: Where to search.
        near_entities: Entities nearest to each name in the question.
        above_cosine: An entity joins where its cosine with the name is above this.
        near_relations: Relations nearest to the question.
        degree: Steps outwards, each from relations over their entities to the relations of those, whatever the
            direction.
        max_relations: Where the expansion gives more relations, those nearest to the question stay.
        picked: Relations whose passages are taken, where no chooser picks.
        chooser: Gets the question and (id, text) of every relation, nearest first; gives the ids of those to use, the
            most useful first. Not called where there is no relation.

    Raises:
        GfmError: A setting that cannot be meant.
    """

    def __init__(
        self,
        index: GraphIndex,
        near_entities: int = 20,
        above_cosine: float = 0.9,
        near_relations: int = 20,
        degree: int = 1,
        max_relations: int = 1000,
        picked: int = 5,
        chooser: Chooser | None = None,
    ):
        for name, value, least in (
            ("near_entities", near_entities, 0),
            ("near_relations", near_relations, 0),
            ("degree", degree, 0),
            ("max_relations", max_relations, 1),
            ("picked", picked, 1),
        ):
            check_whole(f"vector_graph {name}", value, least)
        if isinstance(above_cosine, bool) or not isinstance(above_cosine, int | float) or not -1 <= above_cosine <= 1:
            raise GfmError(f"vector_graph above_cosine: expected a number from -1 to 1, found {above_cosine!r}")
        self.index, self.chooser = index, chooser
        self.near_entities, self.above_cosine, self.near_relations = near_entities, above_cosine, near_relations
        self.degree, self.max_relations, self.picked = degree, max_relations, picked
        self._names = TitleLinker(index.entity_keys)  # some 30 microseconds a name
        # Keys that differ in a bracket alone, by what they share: mercury → mercury (planet), mercury (element).
        self._namesakes: dict[str, list[str]] = defaultdict(list)
        for name, key in sorted(self._names.aliases):
            self._namesakes[name].append(key)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(
            index,
            self.near_entities,
            self.above_cosine,
            self.near_relations,
            self.degree,
            self.max_relations,
            self.picked,
            self.chooser,
        )

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """Passages in the order of their relations, padded to ``top_k`` with those nearest to the question.

        A passage's score is the reciprocal of its rank; ``trace["padded"]`` lists the ids that no relation brought.

        Raises:
            GfmError: The chooser gave something else than ids of relations that it was shown.
        """
        query, clock = as_query(query, top_k), Stopwatch()
        vector = query_vector(self.index, query, clock)
        graph, facts = self.index.graph, self.index.fact_vectors
        with clock.stage("search"):
            named, entities, closeness = self._entities(query.text)
            near = facts.search(vector[None], self.near_relations)[0][0]
        with clock.stage("expand"):
            start = np.union1d(near, self._relations_of(entities))
            reached = self._expanded(start)
            relations = reached[top(facts.cosine(reached, vector), self.max_relations)]
        with clock.stage("choose"):
            chosen = self._choose(query, relations)
        with clock.stage("passages"):
            brought, padding = self._passages(chosen, vector, top_k)
            passages = np.concatenate([brought, padding])
            hits = passage_hits(self.index, passages, 1.0 / np.arange(1, len(passages) + 1), top_k)
            triples, owner = expand(graph.fact_triple_ptr, chosen)
            cosine = facts.cosine(chosen, vector)[owner]
        if not len(brought):
            _LOG.warning("query %r: no relation brought a passage; ranked by cosine (dense)", query.id)
        return Retrieval(
            query=query,
            entities=ranked(self.index.entities, entities, closeness),
            triples=ranked(self.index.triples, triples, cosine),
            passages=hits,
            score_unit="reciprocal rank",
            trace={
                "retriever": "vector_graph",
                "fallback": None if len(brought) else "dense",
                "linked_entities": [entity.name for entity in self.index.entities(named)],
                "start_relations": len(start),
                "expanded_relations": len(reached),
                "kept_relations": len(relations),
                "relations": [self.index.fact_texts[i] for i in chosen],
                "chosen_by": "cosine" if self.chooser is None else "chooser",
                "padded": [self.index.passage_ids[i] for i in padding],
                "reach": f"{len(relations)} of {graph.num_facts} facts",
            },
            seconds=clock.seconds,
        )

    def _entities(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entities named in a text; those near one of them, int64[·]; their best cosines with a name, float32[·]."""
        keys = dict.fromkeys(k for _, _, key in self._names.find(text) for k in (key, *self._namesakes.get(key, ())))
        named = np.array([n for key in keys if (n := self.index.entity_number(key)) is not None], dtype=np.int64)
        vectors = self.index.entity_vectors
        ids, cosine = vectors.search(vectors.rows[named], self.near_entities)  # (names, near_entities)
        near = cosine > self.above_cosine
        entities, group = np.unique(ids[near], return_inverse=True)
        best = np.full(len(entities), -1.0, dtype=np.float32)
        np.maximum.at(best, group, cosine[near])
        return named, entities, best

    def _relations_of(self, entities: np.ndarray) -> np.ndarray:
        """Relations with one of the entities at either end, int64[·], sorted."""
        graph = self.index.graph
        edges, _ = expand(graph.node_ptr, entities)
        triples = graph.edge_triple[edges]
        return np.unique(graph.triple_fact[triples[triples >= 0]]).astype(np.int64)

    def _expanded(self, relations: np.ndarray) -> np.ndarray:
        """The relations and all within ``degree`` steps of them, int64[·], sorted."""
        graph = self.index.graph
        for _ in range(self.degree):
            triples, _ = expand(graph.fact_triple_ptr, relations)
            ends = np.union1d(graph.triple_head[triples], graph.triple_tail[triples])
            relations = np.union1d(relations, self._relations_of(ends))
        return relations

    def _choose(self, query: Query, relations: np.ndarray) -> np.ndarray:
        """The relations to take passages from, the best first, int64[·]."""
        if self.chooser is None or not len(relations):
            return relations[: self.picked]
        texts = self.index.fact_texts
        chosen: Any = self.chooser(query.text, [(int(i), texts[i]) for i in relations])
        if isinstance(chosen, str) or not isinstance(chosen, Sequence):
            raise GfmError(f"query {query.id!r}: expected a list of relation ids from the chooser, found {chosen!r}")
        known = set(relations.tolist())
        if unknown := [i for i in chosen if type(i) is not int or i not in known]:
            raise GfmError(
                f"query {query.id!r}: expected ids among the {len(known)} relations that the chooser was shown, "
                f"found {', '.join(map(repr, unknown))}"
            )
        return distinct(np.array(chosen, dtype=np.int64), len(chosen))

    def _passages(self, relations: np.ndarray, vector: np.ndarray, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Source passages of the relations in their order, and the nearest others: ``top_k`` in all, int64[·] each."""
        graph = self.index.graph
        sources, _ = expand(graph.fact_passage_ptr, relations)
        brought = distinct(graph.fact_passage[sources].astype(np.int64), top_k)
        nearest = self.index.passage_vectors.search(vector[None], top_k)[0][0]
        return brought, nearest[~np.isin(nearest, brought)][: top_k - len(brought)]
