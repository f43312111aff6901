"""R2R's search: the nearest entities, relationships, communities and passages, side by side, by one query vector."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Self, TypeVar

import numpy as np

from gfm.graph.knowledge_graph import expand
from gfm.index.filters import DocumentFilters
from gfm.index.index import GraphIndex
from gfm.index.vectors import Vectors
from gfm.retrieve.base import Stopwatch, as_query, check_whole, passage_hits, query_vector, ranked
from gfm.retrieve.candidates import top
from gfm.text.chunk import embedded_text
from gfm.types import Entity, GfmError, Hit, Passage, Query, Retrieval, Triple

KINDS = ("entities", "relationships", "communities")
T = TypeVar("T")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Community:
    """A group of entities with a summary.

    Attributes:
        id: Unique among the communities.
        name: Its title; may be empty.
        summary: What it is about; embedded together with the name.
        entity_keys: Its entities, by their keys in the index.
    """

    id: str
    name: str
    summary: str
    entity_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Relationship:
    """One embedded sentence, and the triples that it states (none where it names one thing alone)."""

    description: str
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class GraphResult(Generic[T]):
    """One thing of the graph.

    Attributes:
        kind: ``entity``, ``relationship`` or ``community``.
        id: An entity's key, the number of a relationship's fact, a community's id.
        content: The thing itself.
        passage_ids: Those of its source passages that the filters allow, the nearest to the question first.
    """

    kind: str
    id: str
    content: T
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AggregateSearchResult:
    """What each search found, side by side; all scores are cosines with the question, all orders total."""

    query: Query
    passages: list[Hit[Passage]]
    entities: list[Hit[GraphResult[Entity]]]
    relationships: list[Hit[GraphResult[Relationship]]]
    communities: list[Hit[GraphResult[Community]]]
    seconds: dict[str, float]

    def graph_results(self) -> list[Hit[GraphResult[Any]]]:
        """Entities, relationships and communities as one list: score descending, then kind, then rank in the kind."""
        everything: list[Hit[GraphResult[Any]]] = [*self.entities, *self.relationships, *self.communities]
        order = sorted(everything, key=lambda hit: (-hit.score, hit.item.kind, hit.rank))
        return [Hit(hit.item, hit.score, rank) for rank, hit in enumerate(order, start=1)]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the filters allow: bool[P], bool[N], bool[F], bool[communities]; each None where there is no filter."""

    passages: np.ndarray | None = None
    entities: np.ndarray | None = None
    facts: np.ndarray | None = None
    communities: np.ndarray | None = None


class GraphSearchRetriever:
    """Three nearest-neighbour searches over the graph and one over passages, with one query vector.

    `search` gives R2R's envelope: its sources lie side by side. `retrieve` owes one list of passages, and takes the
    sources of the found relationships in their order, then those of the entities, then the nearest passages. So it
    measures what the graph part of R2R brings; the other part, its search of passages, is the retriever ``dense``.
    Nothing is fused, for R2R fuses nothing here. Sources of one relationship or entity come the nearest first.

    A relationship is one embedded sentence: a fact of the index with all its triples.

    Filters choose documents, see `DocumentFilters.parse`. An entity or a relationship is found where one of its
    sources is allowed, and shows no other source. A community's summary may tell of any passage on its entities, so it
    is found only where all of them are allowed.

    Source: R2R (SciPhi-AI/R2R), whose limit is the default here. Mended: a score is a number at distance 0 too, ids and
    source passages are a result's own, unknown filters are errors.

    Args:
        index: Where to search.
        limit: Results of each kind that `retrieve` looks at.
        limits: The same by kind (`KINDS`), where it differs; 0 leaves a kind out.
        filters: Of `retrieve`; all documents unless given.
        communities: Searched beside the rest; embedded here, by the index's encoder.

    Raises:
        GfmError: A limit or filter that cannot be meant, a community without entities or with unknown ones, or two
            communities of one id.
    """

    def __init__(
        self,
        index: GraphIndex,
        limit: int = 10,
        limits: Mapping[str, int | None] | None = None,
        filters: Mapping[str, Any] | None = None,
        communities: Sequence[Community] = (),
    ):
        self.index = index
        self.communities = sorted(communities, key=lambda c: c.id)
        for one, two in pairwise(self.communities):
            if one.id == two.id:
                raise GfmError(f"two communities have the id {one.id!r}; ids must be unique")
        self._community_passages = [self._passages_of(self._members(c)) for c in self.communities]
        texts = [embedded_text(c.name, c.summary) for c in self.communities]
        none = np.zeros((0, index.fingerprint.dim), dtype=np.float32)
        self._community_vectors = Vectors(index.encoder.encode(texts) if texts else none)
        self._limits, self._filters = _by_kind(limit, limits), filters
        self._scope = self._scope_of(filters)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index; of the communities, those that it has all passages of."""
        ids = [np.array(i.passage_ids, dtype=object) for i in (self.index, index)]
        has = np.isin(ids[0], ids[1])
        whole = [c for c, found in zip(self.communities, self._community_passages, strict=True) if has[found].all()]
        return type(self)(index, limits=self._limits, filters=self._filters, communities=whole)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """Sources of relationships, then of entities, then the nearest passages: the first ``top_k`` of them.

        A passage's score is the reciprocal of its rank; ``trace["padded"]`` lists the ids that the graph did not bring.
        """
        found = self._search(as_query(query, top_k), {**self._limits, "passages": top_k}, self._scope)
        source: dict[str, str] = {}  # passage id → what brought it first
        for kind, hits in (("relationships", found.relationships), ("entities", found.entities)):
            for passage in (p for hit in hits for p in hit.item.passage_ids):
                source.setdefault(passage, kind)
        for near in found.passages:
            source.setdefault(near.item.id, "passages")
        ids = list(source)[:top_k]
        numbers = np.array([bisect_left(self.index.passage_ids, i) for i in ids], dtype=np.int64)
        brought_by = [source[i] for i in ids]
        fallback = "dense" if set(brought_by) == {"passages"} else None
        if fallback:
            _LOG.warning("query %r: the graph brought no passage; ranked by cosine (dense)", found.query.id)
        triples = [(triple, hit.score) for hit in found.relationships for triple in hit.item.content.triples]
        return Retrieval(
            query=found.query,
            entities=[Hit(hit.item.content, hit.score, hit.rank) for hit in found.entities],
            triples=[Hit(triple, score, rank) for rank, (triple, score) in enumerate(triples, start=1)],
            passages=passage_hits(self.index, numbers, 1.0 / np.arange(1, len(ids) + 1), top_k),
            score_unit="reciprocal rank",
            trace={
                "retriever": "graph_search",
                "fallback": fallback,
                "limits": self._limits,
                "filters": self._filters,
                "communities": [hit.item.id for hit in found.communities],
                "passages_from": {kind: brought_by.count(kind) for kind in ("relationships", "entities", "passages")},
                "padded": [i for i in ids if source[i] == "passages"],
            },
            seconds=found.seconds,
        )

    def search(
        self,
        query: str | Query,
        limit: int = 10,
        limits: Mapping[str, int | None] | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> AggregateSearchResult:
        """All that each search finds, side by side.

        Args:
            query: The question.
            limit: Results of each kind, and passages.
            limits: Results by kind (`KINDS`), where it differs; 0 leaves a kind out.
            filters: Which documents to search, see `DocumentFilters.parse`; all unless given.

        Raises:
            GfmError: A blank question, or a limit or filter that cannot be meant.
        """
        by_kind = {**_by_kind(limit, limits), "passages": limit}
        return self._search(as_query(query, limit), by_kind, self._scope_of(filters))

    def _search(self, query: Query, limits: Mapping[str, int], scope: _Scope) -> AggregateSearchResult:
        index, clock = self.index, Stopwatch()
        vector = query_vector(index, query, clock)
        with clock.stage("search"):
            passages = _nearest(index.passage_vectors, vector, limits["passages"], scope.passages)
            entities = _nearest(index.entity_vectors, vector, limits["entities"], scope.entities)
            facts = _nearest(index.fact_vectors, vector, limits["relationships"], scope.facts)
            communities = _nearest(self._community_vectors, vector, limits["communities"], scope.communities)
        with clock.stage("results"):
            make = _Results(index, vector, scope.passages)
            return AggregateSearchResult(
                query=query,
                passages=passage_hits(index, *passages, limits["passages"]),
                entities=ranked(_each(lambda i: make.entity(i, self._passages_of([i]))), *entities),
                relationships=ranked(_each(make.relationship), *facts),
                communities=ranked(
                    _each(lambda i: make.community(self.communities[i], self._community_passages[i])), *communities
                ),
                seconds=clock.seconds,
            )

    def _members(self, community: Community) -> list[int]:
        """Numbers of a community's entities."""
        numbers = {key: self.index.entity_number(key) for key in community.entity_keys}
        unknown = [key for key, number in numbers.items() if number is None]
        if unknown or not numbers:
            raise GfmError(
                f"community {community.id!r}: expected keys of entities of the index, found "
                f"{', '.join(map(repr, unknown)) or 'none'}"
            )
        return [number for number in numbers.values() if number is not None]

    def _passages_of(self, entities: Sequence[int]) -> np.ndarray:
        """Passages that mention one of the entities, int64[·], sorted."""
        graph = self.index.graph
        edges, _ = expand(graph.node_ptr, np.asarray(entities, dtype=np.int64))
        nodes = np.unique(graph.edge_index[1, edges])
        return nodes[nodes >= graph.num_entities] - graph.num_entities

    @cached_property
    def _documents(self) -> DocumentFilters:
        return DocumentFilters(self.index.document_metadata)

    @cached_property
    def _document_of(self) -> np.ndarray:
        """Number of each passage's document in the order of the metadata, int64[P]."""
        number = {document: i for i, document in enumerate(self.index.document_metadata)}
        return np.array([number[document] for document in self.index.document_ids], dtype=np.int64)

    def _scope_of(self, filters: Mapping[str, Any] | None) -> _Scope:
        """What filters allow."""
        if filters is None:
            return _Scope()
        graph = self.index.graph
        passages = self._documents.matching(self._documents.parse(filters))[self._document_of]
        edges, _ = expand(graph.node_ptr, graph.num_entities + np.flatnonzero(passages))
        entities, facts = np.zeros(graph.num_entities, dtype=bool), np.zeros(graph.num_facts, dtype=bool)
        entities[graph.edge_index[1, edges]] = True
        owner = np.repeat(np.arange(graph.num_facts), np.diff(graph.fact_passage_ptr))
        facts[owner[passages[graph.fact_passage]]] = True
        communities = np.array([passages[p].all() for p in self._community_passages], dtype=bool)
        return _Scope(passages, entities, facts, communities)


@dataclass(frozen=True, slots=True)
class _Results:
    """Makes the results of one question.

    Attributes:
        index: Where they stand.
        vector: float32[D], the question's.
        allowed: bool[P], passages that may be shown; all where None.
    """

    index: GraphIndex
    vector: np.ndarray
    allowed: np.ndarray | None

    def entity(self, number: int, passages: np.ndarray) -> GraphResult[Entity]:
        found = self.index.entity(number)
        return GraphResult("entity", found.key, found, self._sources(passages))

    def relationship(self, number: int) -> GraphResult[Relationship]:
        graph = self.index.graph
        sources = self._sources(graph.fact_passage[graph.fact_passage_ptr[number] : graph.fact_passage_ptr[number + 1]])
        numbers = np.arange(graph.fact_triple_ptr[number], graph.fact_triple_ptr[number + 1])
        triples = tuple(replace(triple, passage_ids=sources) for triple in self.index.triples(numbers))
        return GraphResult("relationship", str(number), Relationship(self.index.fact_texts[number], triples), sources)

    def community(self, found: Community, passages: np.ndarray) -> GraphResult[Community]:
        return GraphResult("community", found.id, found, self._sources(passages))

    def _sources(self, passages: np.ndarray) -> tuple[str, ...]:
        """Ids of the allowed ones, by cosine, then by id."""
        if self.allowed is not None:
            passages = passages[self.allowed[passages]]
        order = np.lexsort((passages, -self.index.passage_vectors.cosine(passages, self.vector)))
        return tuple(self.index.passage_ids[i] for i in passages[order])


def _each(make: Callable[[int], T]) -> Callable[[np.ndarray], list[T]]:
    return lambda numbers: [make(i) for i in numbers.tolist()]


def _by_kind(limit: int, limits: Mapping[str, int | None] | None) -> dict[str, int]:
    """The limit of each kind."""
    check_whole("limit", limit, 1)
    if limits is not None and not isinstance(limits, Mapping):
        raise GfmError(f"limits: expected numbers by kind ({', '.join(KINDS)}), found {limits!r}")
    given = {kind: value for kind, value in (limits or {}).items() if value is not None}
    if unknown := [kind for kind in given if kind not in KINDS]:
        raise GfmError(f"limits: expected some of {', '.join(KINDS)}, found {', '.join(map(repr, unknown))}")
    for kind, value in given.items():
        check_whole(f"limits.{kind}", value, 0)
    return {kind: int(given.get(kind, limit)) for kind in KINDS}


def _nearest(vectors: Vectors, vector: np.ndarray, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` nearest of the allowed rows, int64[·] and float32[·], best first; exact where there is a filter."""
    if allowed is None:
        ids, scores = vectors.search(vector[None], k)
        return ids[0], scores[0]
    numbers = np.flatnonzero(allowed)
    cosine = vectors.cosine(numbers, vector)
    best = top(cosine, k)
    return numbers[best], cosine[best]
