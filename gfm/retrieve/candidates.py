"""One question's candidate subgraph: seeds, two hops with a beam, passages, and the edges among what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, MIRROR, SYNONYM, expand, pointers
from gfm.graph.pagerank import transition
from gfm.index.index import GraphIndex
from gfm.retrieve.signals import CandidateSettings, Signals, read_signals

_FLOOR = 1e-4  # of a fact on a walk: one that the question says nothing of still leads on
NO_HOP = 3  # hop label of an entity that only a chosen passage brought in, and of passages


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chosen nodes and edges in global numbers.

    Attributes:
        entities: int64[n_e], sorted.
        passages: int64[n_p], sorted, numbered 0 … P-1.
        hop: int8[n_e + n_p], distance from the start entities, `NO_HOP` for the rest and for passages.
        edge_index: int64[2, e] in local numbers (entities first, then passages), sorted by target, then source.
        edge: int64[e], number of each edge in the graph.
        edge_kind: int8[e].
        num_start: Start entities.
        hubs: Entities met with more edges than ``max_fanout``.
    """

    entities: np.ndarray
    passages: np.ndarray
    hop: np.ndarray
    edge_index: np.ndarray
    edge: np.ndarray
    edge_kind: np.ndarray
    num_start: int
    hubs: int


class CandidateBuilder:
    """Builds candidate subgraphs over one index; what does not depend on the question is computed here, once."""

    def __init__(self, index: GraphIndex, settings: CandidateSettings | None = None):
        self.index = index
        self.settings = settings or CandidateSettings()
        graph = index.graph
        self.graph = graph
        self._transition = transition(graph)
        self.degree = np.diff(graph.node_ptr)
        self.log_degree = np.log(2.0 + self.degree).astype(np.float32)
        # Fact of each edge, -1 for the others; edges among entities only.
        self.edge_fact = (
            np.where(graph.edge_triple >= 0, graph.triple_fact[graph.edge_triple], -1)
            if graph.num_triples
            else (np.full(graph.num_edges, -1))
        )
        # Facts of each passage, for the inputs of passages.
        order = np.argsort(graph.fact_passage, kind="stable")
        self.passage_fact = np.repeat(np.arange(graph.num_facts), np.diff(graph.fact_passage_ptr))[order]
        self.passage_fact_ptr = pointers(graph.fact_passage[order], graph.num_passages)
        self._between_entities = np.isin(graph.edge_kind, (FACT, INVERSE_FACT, SYNONYM))

    @cached_property
    def subject_count(self) -> np.ndarray:
        """Passages on each entity, int64[N + 1]; those without a subject stand at 0, entity i at i + 1."""
        return np.bincount(self.index.subjects + 1, minlength=self.graph.num_entities + 1)

    def signals(self, text: str, vector: np.ndarray) -> Signals:
        """Searches of the question in the index."""
        return read_signals(self.index, self.settings, self._transition, text, vector)

    def build(self, signals: Signals) -> Candidates:
        """Choose entities, passages and edges."""
        start = self._start(signals)
        hop = {0: start}
        chosen, hubs = self._grow(start, signals, hop)
        passages = self._passages(chosen, signals)
        return self._induce(chosen, passages, hop, len(start), hubs)

    def _start(self, signals: Signals) -> np.ndarray:
        """Named entities by rarity, seeds and ends of the nearest facts by rank; distinct, capped, in that order."""
        graph, s = self.graph, self.settings
        triples, _ = expand(graph.fact_triple_ptr, signals.near_facts[: s.facts])
        ends = np.stack([graph.triple_head[triples], graph.triple_tail[triples]], axis=1).ravel()
        named = self.index.lexical.named(signals.token_ids)[: s.named] if s.named else ends[:0]
        everything = np.concatenate([named, signals.seeds, ends]).astype(np.int64)
        return distinct(everything, min(s.max_start, s.max_entities))

    def _grow(self, start: np.ndarray, signals: Signals, hop: dict[int, np.ndarray]) -> tuple[np.ndarray, int]:
        """Beam search outwards; fills ``hop`` with the new entities of each hop."""
        s, graph = self.settings, self.graph
        seen = np.zeros(graph.num_entities, dtype=bool)
        seen[start] = True
        reached = np.ones(graph.num_entities, dtype=np.float32)  # of the frontier, how well the way to it fits
        frontier, total, hubs = start, len(start), 0
        for step in range(1, s.hops + 1):
            room = min(s.beam, s.max_entities - total)
            if room <= 0 or not len(frontier):
                break
            edges, met = self._edges_of(frontier, signals)
            hubs += met
            edges = edges[~seen[graph.edge_index[1, edges]]]
            source, target = graph.edge_index[:, edges]
            score = self._edge_cosine(edges, signals)
            if s.walk:
                score = np.maximum(score, _FLOOR) * reached[source] / np.sqrt(self.degree[source])
            else:
                score = score / self.log_degree[target]
            best = np.full(graph.num_entities, -np.inf, dtype=np.float32)
            np.maximum.at(best, target, score)
            new = np.flatnonzero(best > -np.inf)
            frontier = new[top(best[new], room)]
            reached[frontier] = best[frontier] / np.abs(best[frontier]).max(initial=_FLOOR)
            seen[frontier] = True
            total += len(frontier)
            hop[step] = frontier
        return np.flatnonzero(seen), hubs

    def _edges_of(self, nodes: np.ndarray, signals: Signals) -> tuple[np.ndarray, int]:
        """Edges between entities that leave ``nodes``; of a hub, those of near facts and its first ``max_fanout``."""
        graph, s = self.graph, self.settings
        hub = self.degree[nodes] > s.max_fanout
        edges, _ = expand(graph.node_ptr, nodes[~hub])
        hubs = nodes[hub]
        if len(hubs):
            start = graph.node_ptr[hubs]
            first = (start[:, None] + np.arange(s.max_fanout)).ravel()
            chosen = np.zeros(graph.num_edges, dtype=bool)
            for part in (edges, first, self._near_edges(hubs, signals)):
                chosen[part] = True
            edges = np.flatnonzero(chosen)
        return edges[self._between_entities[edges]], len(hubs)

    def _near_edges(self, hubs: np.ndarray, signals: Signals) -> np.ndarray:
        """Edges that leave ``hubs`` over a triple of a near fact, found from the triple's other end."""
        graph = self.graph
        triples, _ = expand(graph.fact_triple_ptr, signals.near_facts)
        ends = np.concatenate([graph.triple_head[triples], graph.triple_tail[triples]])
        others = np.concatenate([graph.triple_tail[triples], graph.triple_head[triples]])
        source, target = ends[np.isin(ends, hubs)], others[np.isin(ends, hubs)]
        found = [np.zeros(0, dtype=np.int64)]
        for a, b in sorted({(int(a), int(b)) for a, b in zip(source, target, strict=True)}):
            row = slice(graph.node_ptr[a], graph.node_ptr[a + 1])
            low, high = np.searchsorted(graph.edge_index[1, row], [b, b + 1])
            found.append(np.arange(low, high) + graph.node_ptr[a])
        return np.concatenate(found)

    def _edge_cosine(self, edges: np.ndarray, signals: Signals) -> np.ndarray:
        """Cosine of each edge's fact with the question; of a synonym edge, that of the name it leads to."""
        index = self.index
        fact = self.edge_fact[edges]
        out = np.empty(len(edges), dtype=np.float32)
        named = fact >= 0
        out[named] = signals.fact_cosine(index, fact[named])
        out[~named] = index.entity_vectors.cosine(self.graph.edge_index[1, edges[~named]], signals.vector)
        return out

    def _passages(self, entities: np.ndarray, signals: Signals) -> np.ndarray:
        """The best by PageRank, BM25 and cosine first, then by the prior among those that the entities name."""
        s, graph = self.settings, self.graph
        by_rank = np.flatnonzero(signals.pagerank[graph.num_entities :])
        by_rank = by_rank[np.lexsort((by_rank, -signals.pagerank[graph.num_entities + by_rank]))[: s.pagerank_passages]]
        by_word = top(signals.bm25, s.bm25_passages)
        by_word = by_word[signals.bm25[by_word] > 0]
        near = signals.near_passages[: s.dense_passages]
        first = np.sort(distinct(np.concatenate([near, by_rank, by_word]), s.max_passages))
        room = s.max_passages - len(first)
        if room <= 0:
            return first
        passages, prior = self._prior(entities, signals)
        fresh = ~np.isin(passages, first)
        passages, prior = passages[fresh], prior[fresh]
        return np.sort(np.concatenate([first, passages[np.lexsort((passages, -prior))[:room]]]))

    def _prior(self, entities: np.ndarray, signals: Signals) -> tuple[np.ndarray, np.ndarray]:
        """Passages that mention the entities, and their prior.

        The prior is cosine + 0.5 · best near fact + 0.3 · log(1 + Σ 1 / log(2 + degree)) over the entities.
        """
        graph, s = self.graph, self.settings
        small = entities[self.degree[entities] <= s.max_fanout]
        edges, owner = expand(graph.node_ptr, small)
        target = graph.edge_index[1, edges]
        is_passage = target >= graph.num_entities
        named = target[is_passage] - graph.num_entities
        weight = 1.0 / self.log_degree[small[owner[is_passage]]]
        support = np.bincount(named, weights=weight, minlength=graph.num_passages)
        passages = np.flatnonzero(support)
        cosine = self.index.passage_vectors.cosine(passages, signals.vector)
        sources, fact = expand(graph.fact_passage_ptr, signals.near_facts)
        best = np.zeros(graph.num_passages, dtype=np.float32)
        np.maximum.at(best, graph.fact_passage[sources], np.maximum(signals.near_fact_cosine[fact], 0.0))
        return passages, cosine + 0.5 * best[passages] + 0.3 * np.log1p(support[passages])

    def _among_hubs(self, hubs: np.ndarray) -> np.ndarray:
        """Edges whose both ends are hubs, looked up in the sorted row of each."""
        graph, found = self.graph, [np.zeros(0, dtype=np.int64)]
        for hub in hubs:
            start, end = graph.node_ptr[hub], graph.node_ptr[hub + 1]
            low = np.searchsorted(graph.edge_index[1, start:end], hubs, side="left")
            high = np.searchsorted(graph.edge_index[1, start:end], hubs, side="right")
            found += [np.arange(a, b) + start for a, b in zip(low, high, strict=True) if b > a]
        return np.concatenate(found)

    def _induce(
        self, entities: np.ndarray, passages: np.ndarray, hop: dict[int, np.ndarray], num_start: int, hubs: int
    ) -> Candidates:
        """All edges among the chosen nodes; those of a hub are found from their other end, so a hub costs no more."""
        graph, s = self.graph, self.settings
        nodes = np.concatenate([entities, passages + graph.num_entities])
        local = np.zeros(graph.num_nodes, dtype=np.int32)  # 1 + local number; zero pages are never touched
        local[nodes] = np.arange(1, len(nodes) + 1)
        is_hub = self.degree[nodes] > s.max_fanout
        edge, owner = expand(graph.node_ptr, nodes[~is_hub])
        source = np.flatnonzero(~is_hub)[owner]
        target = local[graph.edge_index[1, edge]] - 1
        kept = target >= 0
        edge, source, target = edge[kept], source[kept], target[kept]
        kind = graph.edge_kind[edge]
        back = is_hub[target]
        edge = np.concatenate([edge, edge[back]])
        source, target = np.concatenate([source, target[back]]), np.concatenate([target, source[back]])
        kind = np.concatenate([kind, MIRROR[kind[back]]])
        among = self._among_hubs(nodes[is_hub])
        edge, kind = np.concatenate([edge, among]), np.concatenate([kind, graph.edge_kind[among]])
        source = np.concatenate([source, local[graph.edge_index[0, among]] - 1])
        target = np.concatenate([target, local[graph.edge_index[1, among]] - 1])
        order = np.argsort(target.astype(np.int64) * len(nodes) + source, kind="stable")
        labels = np.full(graph.num_entities, NO_HOP, dtype=np.int8)
        for step, found in hop.items():
            labels[found] = step
        return Candidates(
            entities=entities,
            passages=passages,
            hop=np.concatenate([labels[entities], np.full(len(passages), NO_HOP, dtype=np.int8)]),
            edge_index=np.stack([source[order], target[order]]),
            edge=edge[order],
            edge_kind=kind[order],
            num_start=num_start,
            hubs=hubs,
        )


def distinct(numbers: np.ndarray, limit: int) -> np.ndarray:
    """The first ``limit`` distinct numbers, in the order of their first places."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)][:limit]


def top(scores: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the k best scores, best first, ties by number."""
    k = min(k, len(scores))
    if k <= 0:
        return np.zeros(0, dtype=np.int64)
    if k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        better = np.flatnonzero(scores > bound)
        equal = np.flatnonzero(scores == bound)[: k - len(better)]
        numbers = np.concatenate([better, equal])
    else:
        numbers = np.arange(len(scores))
    return numbers[np.lexsort((numbers, -scores[numbers]))]
