"""The learnt retriever: seeds → candidate subgraph → message passing → scores → prune."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import EDGE_KINDS, FACT, INVERSE_FACT, MIRROR
from gfm.index.index import GraphIndex
from gfm.nn.attribution import edge_contributions
from gfm.nn.checkpoint import load_model
from gfm.nn.model import GraphRetrieverModel
from gfm.retrieve.base import Stopwatch, as_query, passage_hits, ranked
from gfm.retrieve.candidates import CandidateBuilder, Candidates
from gfm.retrieve.features import EDGE_INPUTS, NAMED, NODE_INPUTS, question_parts, subgraph
from gfm.retrieve.prune import Kept, evidence_paths, prune
from gfm.retrieve.signals import CandidateSettings, Signals
from gfm.types import Entity, GfmError, Hit, PathStep, Query, Retrieval, Triple

_LOG = logging.getLogger(__name__)
_OVERLAP = NODE_INPUTS.index("overlap")
_FLAT = 1e-9  # passages whose scores differ by less than this are not told apart


@dataclass(frozen=True, slots=True)
class Explained:
    """A result with the whole candidate subgraph that it was cut from, in that subgraph's local numbers.

    Attributes:
        result: What `GNNRetriever.retrieve` returns.
        found: The subgraph.
        node: float64[n], score of each node, in the unit of the result.
        edge: float64[e], score of each edge that is a fact; of the others it says nothing.
        kept: What was kept of it.
        paths: Of each returned passage with one, by its node, the evidence path as positions of edges.
        data: What the network read.
    """

    result: Retrieval
    found: Candidates
    node: np.ndarray
    edge: np.ndarray
    kept: Kept
    paths: dict[int, list[int]]
    data: Data


class GNNRetriever:
    """Ranks passages, entities and facts of a candidate subgraph with a trained network.

    Args:
        index: Where to search.
        model: The network; its input names must be those that this version computes.
        settings: How candidates are built.
        keep: Share of nodes and of facts that is kept.
        least_kept: Of each kind, as many are kept in any case: a share of a small subgraph is next to nothing.

    Raises:
        GfmError: The network was trained on other inputs, or ``keep`` is not in (0, 1].
    """

    def __init__(
        self,
        index: GraphIndex,
        model: GraphRetrieverModel,
        settings: CandidateSettings | None = None,
        keep: float = 0.3,
        least_kept: int = 32,
    ):
        wanted = (model.settings.node_inputs, model.settings.edge_inputs)
        if wanted != (NODE_INPUTS, EDGE_INPUTS):
            raise GfmError(
                f"the checkpoint reads the inputs {wanted}, this version computes {(NODE_INPUTS, EDGE_INPUTS)}; "
                "train another with train.py, or use the version of gfm that made it"
            )
        if not 0 < keep <= 1:
            raise GfmError(f"keep: expected a share above 0 and up to 1, found {keep}")
        self.index, self.model, self.keep, self.least_kept = index, model.eval(), keep, least_kept
        self.builder = CandidateBuilder(index, settings)
        self._openmp = ThreadpoolController().select(user_api="openmp")

    @classmethod
    def from_pretrained(
        cls,
        index: GraphIndex,
        path: str | Path | None = None,
        keep: float = 0.3,
        least_kept: int = 32,
        **candidates: Any,
    ) -> Self:
        """A retriever with a stored network: the one in the package unless ``path`` names a checkpoint folder.

        The candidates are built as in training, but for the settings named in ``candidates``.

        Raises:
            GfmError: No such checkpoint, a damaged one, or an unknown setting.
        """
        model, config = load_model(Path(path) if path else None)
        chosen = {**config.get("candidates", {}), **candidates}
        known = [f.name for f in fields(CandidateSettings)]
        if unknown := sorted(set(chosen) - set(known)):
            raise GfmError(f"candidates: unknown settings {', '.join(unknown)}; expected some of {', '.join(known)}")
        return cls(index, model, CandidateSettings(**chosen), keep, least_kept)

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index, self.model, self.builder.settings, self.keep, self.least_kept)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages with the entities, facts and paths that lead to them."""
        return self.explain(query, top_k).result

    def explain(self, query: str | Query, top_k: int = 10) -> Explained:
        """As `retrieve`, with the subgraph that was scored."""
        query, clock = as_query(query, top_k), Stopwatch()
        with clock.stage("encode"):
            vectors = self.index.encode([query.text, *question_parts(query.text)])
        with clock.stage("signals"):
            signals = self.builder.signals(query.text, vectors[0])
        with clock.stage("candidates"):
            found = self.builder.build(signals)
        with clock.stage("inputs"):
            data = subgraph(self.builder, signals, found, vectors[1:])
        # One thread: waking a second one for each of a hundred small steps takes longer than they do. Once asked, torch
        # has given a thread that is new to it the number of the process, and does not do so later.
        torch.get_num_threads()
        with clock.stage("network"), torch.inference_mode(), self._openmp.limit(limits=1):
            scores = self.model(data)
            node, edge = (torch.sigmoid(logits.double()).numpy() for logits in scores)  # large ones stay apart
        with clock.stage("prune"):
            done = self._result(query, top_k, signals, found, node, edge, data)
        done.result.seconds.update(clock.seconds)
        return done

    def rank_entities(self, query: str | Query, top_k: int = 10) -> list[Hit[Entity]]:
        """The best entities of the whole candidate subgraph, also of what is pruned in a result."""
        done = self.explain(query, top_k)
        entities = done.found.entities
        return ranked(self.index.entities, entities, done.node[: len(entities)], top_k)

    def _result(
        self,
        query: Query,
        top_k: int,
        signals: Signals,
        found: Candidates,
        node: np.ndarray,
        edge: np.ndarray,
        data: Data,
    ) -> Explained:
        n_e, overlap = len(found.entities), data.node_input[:, _OVERLAP].numpy()
        triple = self.index.graph.edge_triple[found.edge]
        is_fact = triple >= 0
        fallback = None if _tells_apart(found, node, edge) else "dense"
        if fallback:
            _LOG.warning("query %r: nothing in the graph tells passages apart; ranked by cosine (dense)", query.id)
            node, edge = self._cosines(signals, found, triple)
            ids, scores = (x[0] for x in self.index.passage_vectors.search(signals.vector[None], top_k))
        else:
            ids, scores = found.passages, node[n_e:]
        passages = passage_hits(self.index, ids, scores, top_k)
        number = {self.index.passage_ids[int(p)]: n_e + i for i, p in enumerate(found.passages)}
        tops = np.array([] if fallback else [number[h.item.id] for h in passages], dtype=np.int64)
        paths = evidence_paths(found, node, edge, is_fact, overlap, tops)
        whole = sorted({e for path in paths.values() for e in path})
        steps = self._steps(found, whole)
        kept = prune(found, node, edge, is_fact, self.keep, whole, self.least_kept)
        result = Retrieval(
            query=query,
            entities=self._entities(found, node, kept),
            triples=self._triples(triple, edge, kept.edge & is_fact),
            passages=passages,
            score_unit="cosine" if fallback else "relevance",
            paths={
                hit.item.id: [steps[e] for e in paths[n]] for hit in passages if (n := number.get(hit.item.id)) in paths
            },
            trace=self._trace(signals, found, kept, overlap, fallback),
        )
        return Explained(result, found, node, edge, kept, paths, data)

    def contributions(self, explained: Explained, passage_id: str, top_k: int = 10) -> list[Hit[PathStep]]:
        """The kept links that a passage's score rests on most, each with what it adds to the score's logit.

        A link is both directions of an edge; its score is their sum, see `edge_contributions`. How far they can be
        trusted: docs/explain.md.

        Args:
            explained: From `explain`.
            passage_id: Of a candidate passage.
            top_k: How many links.

        Raises:
            GfmError: The passage is no candidate of the question.
        """
        found = explained.found
        ids = [self.index.passage_ids[int(p)] for p in found.passages]
        if passage_id not in ids:
            raise GfmError(f"passage {passage_id!r}: expected a candidate of the question, found none; ask for another")
        node = len(found.entities) + ids.index(passage_id)
        added = edge_contributions(self.model, explained.data, [node])[0].numpy().astype(np.float64)
        link, first = self.links(found)
        total = np.bincount(link, weights=added, minlength=len(first))
        kept = np.flatnonzero(np.bincount(link, weights=explained.kept.edge, minlength=len(first)))
        best = kept[np.lexsort((kept, -total[kept]))[:top_k]]
        steps = self._steps(found, first[best].tolist())
        return [Hit(steps[int(first[n])], float(total[n]), rank) for rank, n in enumerate(best, start=1)]

    def links(self, found: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """The link of each edge, int64[e], and the first edge of each link; both directions of an edge are one link."""
        ends = np.sort(found.edge_index, axis=0)
        kind = np.minimum(found.edge_kind, MIRROR[found.edge_kind])
        key = np.stack([*ends, self.index.graph.edge_triple[found.edge], kind])  # (4, e)
        _, first, link = np.unique(key, axis=1, return_index=True, return_inverse=True)
        return link, first

    def _cosines(self, signals: Signals, found: Candidates, triple: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosine with the question of every candidate node, float64[n], and of every fact edge, float64[e]."""
        index = self.index
        node = np.concatenate(
            [
                index.entity_vectors.cosine(found.entities, signals.vector),
                index.passage_vectors.cosine(found.passages, signals.vector),
            ]
        )
        edge, is_fact = np.zeros(len(triple)), triple >= 0
        edge[is_fact] = index.fact_vectors.cosine(index.graph.triple_fact[triple[is_fact]], signals.vector)
        return node.astype(np.float64), edge

    def _entities(self, found: Candidates, node: np.ndarray, kept: Kept) -> list[Hit[Entity]]:
        local = np.flatnonzero(kept.node[: len(found.entities)])
        return ranked(self.index.entities, found.entities[local], node[local])

    def _triples(self, triple: np.ndarray, edge: np.ndarray, kept: np.ndarray) -> list[Hit[Triple]]:
        """Kept facts by the better score of their two directions."""
        numbers, group = np.unique(triple[kept], return_inverse=True)
        best = np.full(len(numbers), -np.inf)
        np.maximum.at(best, group, edge[kept])
        return ranked(self.index.triples, numbers, best)

    def _steps(self, found: Candidates, edges: list[int]) -> dict[int, PathStep]:
        """What a reader sees of each of the given edges, by its position."""
        index, n_e = self.index, len(found.entities)
        position = np.array(edges, dtype=np.int64)
        ends = found.edge_index[:, position].T  # (m, 2)
        inner = np.unique(ends[ends < n_e])
        names = dict(zip(inner.tolist(), self._names(found.entities[inner]), strict=True))
        ids = {int(i): index.passage_ids[int(found.passages[i - n_e])] for i in np.unique(ends[ends >= n_e])}
        stated = np.flatnonzero(index.graph.edge_triple[found.edge[position]] >= 0)
        triples = index.triples(index.graph.edge_triple[found.edge[position[stated]]])
        fact = dict(zip(stated.tolist(), triples, strict=True))
        shown, out = {**names, **ids}, {}
        for i, (edge, (source, target)) in enumerate(zip(edges, ends.tolist(), strict=True)):
            kind = int(found.edge_kind[edge])
            if i in fact:
                text, passage = fact[i].text, fact[i].passage_ids[0]
            else:
                text, passage = "", ids.get(source, ids.get(target, ""))  # a synonym has no passage
            name = EDGE_KINDS[kind] if kind in (FACT, INVERSE_FACT) else EDGE_KINDS[kind].removeprefix("inverse ")
            out[edge] = PathStep(shown[source], name, text, shown[target], passage)
        return out

    def _names(self, entities: np.ndarray) -> list[str]:
        return [entity.name for entity in self.index.entities(entities)]

    def _trace(
        self, signals: Signals, found: Candidates, kept: Kept, overlap: np.ndarray, fallback: str | None
    ) -> dict[str, Any]:
        n_e, graph = len(found.entities), self.index.graph
        hops, counts = np.unique(found.hop[:n_e], return_counts=True)
        return {
            "retriever": "gfm",
            "fallback": fallback,
            # Names that stand whole in the question; the seeds are the nearest names, however far.
            "linked_entities": self._names(found.entities[overlap[:n_e] >= NAMED][:10]),
            "seeds": self._names(signals.seeds[:10]),
            "start_entities": found.num_start,
            "entities_by_hop": {str(h): int(n) for h, n in zip(hops, counts, strict=True)},
            "nodes": len(found.hop),
            "edges": len(found.edge),
            "kept_nodes": int(kept.node.sum()),
            "pruned_nodes": int((~kept.node).sum()),
            "kept_edges": int(kept.edge.sum()),
            "pruned_edges": int((~kept.edge).sum()),
            "hubs": found.hubs,
            "reach": f"{len(found.passages)} of {graph.num_passages} passages, {n_e} of {graph.num_entities} entities",
        }


def _tells_apart(found: Candidates, node: np.ndarray, edge: np.ndarray) -> bool:
    """Whether there was an edge to pass messages over, and the passages' scores are finite and not all equal."""
    finite = len(found.edge) > 0 and bool(np.isfinite(node).all() and np.isfinite(edge).all())
    return finite and float(np.ptp(node[len(found.entities) :])) >= _FLAT
