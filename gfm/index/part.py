"""A part of an index: what some of its documents say, as an index of its own that every retriever can search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np

from gfm.graph.knowledge_graph import MENTION, SUBJECT, SYNONYM, KnowledgeGraph, build_graph, expand
from gfm.index.filters import DocumentFilters
from gfm.index.index import GraphIndex
from gfm.index.vectors import Vectors
from gfm.types import GfmError

_PARTS = 8  # of an index, that are kept
_KEEPING = Lock()


def fitting_passages(index: GraphIndex, filters: Mapping[str, Any]) -> np.ndarray:
    """Whether the document of each passage fits, bool[P].

    Raises:
        GfmError: Filters that cannot be meant.
    """
    metadata = index.document_metadata
    documents = DocumentFilters(metadata)
    fits = dict(zip(metadata, documents.matching(documents.parse(filters)).tolist(), strict=True))
    return np.array([fits[document] for document in index.document_ids], dtype=bool)


def where(index: GraphIndex, filters: Mapping[str, Any]) -> GraphIndex:
    """The part of an index that documents with the given fields support, to be searched like a whole one.

    What the other documents say reaches no seed, no edge and no score. The last few parts are kept for the next
    question.

    Args:
        index: The whole.
        filters: In the form of `gfm.index.filters.DocumentFilters.parse`, such as ``{"metadata.year": {"$gt": 1990}}``
            or ``{"document_id": {"$in": ["d1", "d2"]}}``.

    Raises:
        GfmError: Filters that cannot be meant, or that no document fits.
    """
    key = json.dumps(filters, sort_keys=True, default=str)
    part = index.parts.get(key)
    if part is None:
        passages = fitting_passages(index, filters)
        if not passages.any():
            raise GfmError(f"filters: expected some document with {key}, found none; widen the filters")
        part = PartialIndex(index, passages)
        with _KEEPING:  # threads may share the index
            index.parts[key] = part
            for old in list(index.parts)[:-_PARTS]:
                del index.parts[old]
    return part


class PartialIndex(GraphIndex):
    """The passages of some documents, and what these support: no other reaches a seed, an edge or a score.

    Entities that the passages mention or that their facts join; facts with one of the passages among their sources, and
    of these sources the passages alone; synonyms among the entities. Word statistics are those of the passages. Names
    and vectors are those of the whole. Everything is numbered anew, in the same order.

    Args:
        whole: The index.
        passages: Which of its passages, bool[P].
    """

    def __init__(self, whole: GraphIndex, passages: np.ndarray):
        self._whole, graph = whole, whole.graph
        facts = np.flatnonzero(np.bincount(_owners(graph)[passages[graph.fact_passage]], minlength=graph.num_facts))
        triples = np.flatnonzero(np.isin(graph.triple_fact, facts))
        mentions = _links(graph, MENTION, SUBJECT) - [graph.num_entities, 0]  # (M, 2) of passage, entity
        mentions = mentions[passages[mentions[:, 0]]]
        entities = np.unique(
            np.concatenate([mentions[:, 1], graph.triple_head[triples], graph.triple_tail[triples]]).astype(np.int64)
        )
        documents = set(np.array(whole.document_ids, dtype=object)[passages])
        self._rows = {
            "passages": np.flatnonzero(passages),
            "entities": entities,
            "facts": facts,
            "triples": triples,
            "documents": np.flatnonzero([i in documents for i in whole._tables.whole("documents", "id")]),
        }
        self._start(whole.path, whole._encoder)  # without reading the folder: it may hold another generation by now
        self.manifest, self.generation, self.fingerprint = whole.manifest, whole.generation, whole.fingerprint
        self._tables, self._details = whole._tables.rows(self._rows), whole._details
        self.graph = self._graph(mentions)
        self.entity_vectors = Vectors(whole.entity_vectors.rows[entities])
        self.fact_vectors = Vectors(whole.fact_vectors.rows[facts])
        self.passage_vectors = Vectors(whole.passage_vectors.rows[passages])
        moved = np.where(passages, np.cumsum(passages) - 1, -1)
        names = (tables.whole("entities", "name") for tables in (whole._tables, self._tables))
        self.lexical = whole.lexical.part(moved, *names)

    def _graph(self, mentions: np.ndarray) -> KnowledgeGraph:
        graph, rows = self._whole.graph, self._rows
        entity, passage, fact = (
            _places(rows[name], size)
            for name, size in (
                ("entities", graph.num_entities),
                ("passages", graph.num_passages),
                ("facts", graph.num_facts),
            )
        )
        triples = rows["triples"]
        positions, owner = expand(graph.fact_passage_ptr, rows["facts"])
        sources = passage[graph.fact_passage[positions]]
        owner, sources = owner[sources >= 0], sources[sources >= 0]
        pairs, weights = _synonyms(graph)
        both = (entity[pairs] >= 0).all(axis=1)
        return build_graph(
            num_entities=len(rows["entities"]),
            num_passages=len(rows["passages"]),
            triples=np.stack(
                [
                    entity[graph.triple_head[triples]],
                    entity[graph.triple_tail[triples]],
                    fact[graph.triple_fact[triples]],
                ],
                axis=1,
            ),
            triple_weight=graph.triple_weight[triples],
            fact_passages=_groups(sources, owner, len(rows["facts"])),
            mentions=np.stack([passage[mentions[:, 0]], entity[mentions[:, 1]]], axis=1),
            subjects=entity[self._whole.subjects[rows["passages"]]],
            synonyms=entity[pairs[both]],
            synonym_weight=weights[both],
        )


def _owners(graph: KnowledgeGraph) -> np.ndarray:
    """The fact of each entry of ``graph.fact_passage``."""
    return np.repeat(np.arange(graph.num_facts), np.diff(graph.fact_passage_ptr))


def _links(graph: KnowledgeGraph, *kinds: int) -> np.ndarray:
    """Source and target of the edges of some kinds, int64[m, 2]."""
    chosen: np.ndarray = graph.edge_index[:, np.isin(graph.edge_kind, kinds)].T
    return chosen


def _synonyms(graph: KnowledgeGraph) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of entities, each once, int64[S, 2], and their cosines."""
    once = (graph.edge_kind == SYNONYM) & (graph.edge_index[0] < graph.edge_index[1])
    pairs: np.ndarray = graph.edge_index[:, once].T
    return pairs, graph.edge_weight[once]


def _places(rows: np.ndarray, size: int) -> np.ndarray:
    """The new number of each old one, int64[size + 1]; -1 where it is left out, and of -1."""
    out = np.full(size + 1, -1, dtype=np.int64)
    out[rows] = np.arange(len(rows))
    return out


def _groups(values: np.ndarray, owner: np.ndarray, size: int) -> list[tuple[int, ...]]:
    """The values of each owner."""
    cuts = np.cumsum(np.bincount(owner, minlength=size))[:-1]
    return [tuple(part.tolist()) for part in np.split(values, cuts)] if size else []
