"""The knowledge graph as arrays: entities, facts, triples and passages, and one CSR adjacency over all nodes.

Nodes 0 … N-1 are entities, N … N+P-1 passages. A *fact* is a sentence (or a verbalised triple) with its source
passages; it holds zero or more *triples*, each a directed pair of entities. A passage *mentions* entities; the one that
it is about (its title) is its *subject*. Every link stands in the adjacency once in each direction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

FACT, INVERSE_FACT, SYNONYM, MENTION, INVERSE_MENTION, SUBJECT, INVERSE_SUBJECT = range(7)
EDGE_KINDS = ("fact", "inverse fact", "synonym", "mention", "inverse mention", "subject", "inverse subject")
# A search looks at no more edges of one entity than this, but for those of the facts nearest to the question.
HUB_DEGREE = 1000
# The kind of the same link seen from its other end.
MIRROR = np.array([INVERSE_FACT, FACT, SYNONYM, INVERSE_MENTION, MENTION, INVERSE_SUBJECT, SUBJECT], dtype=np.int8)


@dataclass(frozen=True)
class KnowledgeGraph:
    """Arrays of a graph with N entities, F facts, T triples, P passages and E directed edges.

    Attributes:
        triple_head: int32[T], entity.
        triple_tail: int32[T], entity; never the head.
        triple_fact: int32[T], the fact that states the triple.
        triple_weight: float32[T].
        fact_passage_ptr: int64[F+1], CSR pointers into `fact_passage`.
        fact_passage: int32[·], source passages of each fact.
        fact_triple_ptr: int64[F+1], CSR pointers into the triples, which are sorted by fact.
        edge_index: int64[2, E], source and target node, sorted by source, then target, kind and triple.
        edge_kind: int8[E], one of `EDGE_KINDS`.
        edge_triple: int32[E], the triple of a (inverse) fact edge, else -1.
        edge_weight: float32[E]: the triple's weight, the cosine of a synonym, 1 for a mention.
        node_ptr: int64[N+P+1], CSR pointers into the edges by source.
        entity_df: int32[N], number of passages that mention the entity.
    """

    num_entities: int
    num_facts: int
    num_triples: int
    num_passages: int
    triple_head: np.ndarray
    triple_tail: np.ndarray
    triple_fact: np.ndarray
    triple_weight: np.ndarray
    fact_passage_ptr: np.ndarray
    fact_passage: np.ndarray
    fact_triple_ptr: np.ndarray
    edge_index: np.ndarray
    edge_kind: np.ndarray
    edge_triple: np.ndarray
    edge_weight: np.ndarray
    node_ptr: np.ndarray
    entity_df: np.ndarray

    @property
    def num_nodes(self) -> int:
        """N + P."""
        return self.num_entities + self.num_passages

    @property
    def num_edges(self) -> int:
        """E."""
        return int(self.edge_index.shape[1])

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by name, for the store."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("num_")}


def hubs(graph: KnowledgeGraph, most: int | None = None) -> np.ndarray:
    """Entities with more than ``most`` edges (`HUB_DEGREE`), int64[·], the greatest first, ties by number."""
    degree = np.diff(graph.node_ptr)[: graph.num_entities]
    found = np.flatnonzero(degree > (HUB_DEGREE if most is None else most))
    return found[np.lexsort((found, -degree[found]))]


def expand(ptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the CSR entries of ``rows``, row by row in the order given, and their owners.

    Args:
        ptr: int64[n+1], CSR pointers.
        rows: int[m], numbers below n; may repeat.

    Returns:
        int64[·] positions, and for each the index into ``rows`` that it belongs to, int64[·].
    """
    start = ptr[rows]
    count = ptr[rows + 1] - start
    owner = np.repeat(np.arange(len(rows)), count)
    first = np.cumsum(count) - count
    return np.arange(len(owner)) - np.repeat(first - start, count), owner


def pointers(sorted_rows: np.ndarray, size: int) -> np.ndarray:
    """CSR pointers int64[size+1] of rows sorted ascending."""
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_rows, minlength=size))]).astype(np.int64)


def build_graph(
    *,
    num_entities: int,
    num_passages: int,
    triples: np.ndarray,
    triple_weight: np.ndarray,
    fact_passages: list[tuple[int, ...]],
    mentions: np.ndarray,
    subjects: np.ndarray,
    synonyms: np.ndarray,
    synonym_weight: np.ndarray,
) -> KnowledgeGraph:
    """Make the arrays from lists of links.

    No link joins an entity with itself, and none is given twice, so that E = 2 · (T + S + M).

    Args:
        num_entities: N.
        num_passages: P.
        triples: int[T, 3] of head, tail, fact, sorted by fact.
        triple_weight: float[T].
        fact_passages: For each fact its source passages.
        mentions: int[M, 2] of passage, entity; unique.
        subjects: int[P], the entity that each passage is about, or -1; a subject is among the passage's mentions.
        synonyms: int[S, 2] of entity pairs; unique, one direction each.
        synonym_weight: float[S].
    """
    head, tail, fact = (np.ascontiguousarray(c, dtype=np.int32) for c in triples.T)
    passage, entity = mentions[:, 0] + num_entities, mentions[:, 1]
    ids = np.arange(len(head))
    none = np.full(len(mentions), -1)
    is_subject = subjects[mentions[:, 0]] == entity
    links = [
        (head, tail, FACT, ids, triple_weight),
        (tail, head, INVERSE_FACT, ids, triple_weight),
        (synonyms[:, 0], synonyms[:, 1], SYNONYM, np.full(len(synonyms), -1), synonym_weight),
        (synonyms[:, 1], synonyms[:, 0], SYNONYM, np.full(len(synonyms), -1), synonym_weight),
        (passage, entity, np.where(is_subject, SUBJECT, MENTION), none, np.ones(len(mentions))),
        (entity, passage, np.where(is_subject, INVERSE_SUBJECT, INVERSE_MENTION), none, np.ones(len(mentions))),
    ]
    source = np.concatenate([x[0] for x in links]).astype(np.int64)
    target = np.concatenate([x[1] for x in links]).astype(np.int64)
    kind = np.concatenate([np.broadcast_to(np.asarray(x[2]), len(x[0])) for x in links]).astype(np.int8)
    triple = np.concatenate([x[3] for x in links]).astype(np.int32)
    weight = np.concatenate([x[4] for x in links]).astype(np.float32)
    # Stable: links of one pair of nodes stand by kind and triple already.
    order = np.argsort(source * (num_entities + num_passages) + target, kind="stable")
    source, target = source[order], target[order]
    sizes = [len(p) for p in fact_passages]
    return KnowledgeGraph(
        num_entities=num_entities,
        num_facts=len(fact_passages),
        num_triples=len(head),
        num_passages=num_passages,
        triple_head=head,
        triple_tail=tail,
        triple_fact=fact,
        triple_weight=np.asarray(triple_weight, dtype=np.float32),
        fact_passage_ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        fact_passage=np.fromiter((p for row in fact_passages for p in row), dtype=np.int32, count=sum(sizes)),
        fact_triple_ptr=pointers(fact, len(fact_passages)),
        edge_index=np.stack([source, target]),
        edge_kind=kind[order],
        edge_triple=triple[order],
        edge_weight=weight[order],
        node_ptr=pointers(source, num_entities + num_passages),
        entity_df=np.bincount(entity, minlength=num_entities).astype(np.int32),
    )
