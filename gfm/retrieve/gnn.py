"""The learnt retriever: seeds → candidate subgraph → message passing → scores → prune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gfm.graph.knowledge_graph import EDGE_KINDS, FACT, SYNONYM
from gfm.index.index import GraphIndex
from gfm.nn.checkpoint import load_model
from gfm.nn.model import GraphRetrieverModel
from gfm.retrieve.base import Stopwatch, as_query, passage_hits, query_vector
from gfm.retrieve.candidates import CandidateBuilder, Candidates, CandidateSettings, Signals
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS, subgraph
from gfm.retrieve.prune import Kept, evidence_paths, prune
from gfm.types import Entity, GfmError, Hit, PathStep, Query, Retrieval, Triple


class GNNRetriever:
    """Ranks passages, entities and facts of a candidate subgraph with a trained network.

    Args:
        index: Where to search.
        model: The network; its input names must be those that this version computes.
        settings: How candidates are built.
        keep: Share of nodes and of facts that is kept.

    Raises:
        GfmError: The network was trained on other inputs, or ``keep`` is not in (0, 1].
    """

    def __init__(
        self,
        index: GraphIndex,
        model: GraphRetrieverModel,
        settings: CandidateSettings | None = None,
        keep: float = 0.3,
    ):
        wanted = (model.settings.node_inputs, model.settings.edge_inputs)
        if wanted != (NODE_INPUTS, EDGE_INPUTS):
            raise GfmError(f"the checkpoint reads the inputs {wanted}, this version computes {(NODE_INPUTS, EDGE_INPUTS)}")
        if not 0 < keep <= 1:
            raise GfmError(f"keep: expected a share above 0 and up to 1, found {keep}")
        self.index, self.model, self.keep = index, model.eval(), keep
        self.builder = CandidateBuilder(index, settings)

    @classmethod
    def from_pretrained(
        cls, index: GraphIndex, path: str | Path | None = None, keep: float = 0.3, **candidates: Any
    ) -> GNNRetriever:
        """A retriever with a stored network: the one in the package unless ``path`` names a checkpoint folder.

        The candidates are built as in training, but for the settings named in ``candidates``.
        """
        model, config = load_model(Path(path) if path else None)
        settings = CandidateSettings(**{**config.get("candidates", {}), **candidates})
        return cls(index, model, settings, keep)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages with the entities, facts and paths that lead to them."""
        query, clock = as_query(query, top_k), Stopwatch()
        vector = query_vector(self.index, query, clock)
        with clock.stage("signals"):
            signals = self.builder.signals(query.text, vector)
        with clock.stage("candidates"):
            found = self.builder.build(signals)
        with clock.stage("inputs"):
            data = subgraph(self.builder, signals, found)
        with clock.stage("network"), torch.inference_mode():
            scores = self.model(data)
            node = torch.sigmoid(scores.node).numpy().astype(np.float64)
            edge = torch.sigmoid(scores.edge).numpy().astype(np.float64)
        with clock.stage("prune"):
            result = self._result(query, top_k, signals, found, node, edge, data.node_input[:, _OVERLAP].numpy())
        result.seconds.update(clock.seconds)
        return result

    def _result(
        self,
        query: Query,
        top_k: int,
        signals: Signals,
        found: Candidates,
        node: np.ndarray,
        edge: np.ndarray,
        overlap: np.ndarray,
    ) -> Retrieval:
        n_e = len(found.entities)
        scores, fallback = node[n_e:], None
        if not len(found.edge) or not np.isfinite(scores).all() or np.ptp(scores) < 1e-9:
            # Nothing to pass messages over, or nothing that tells passages apart: say so and rank by cosine.
            scores, fallback = self.index.passage_vectors.cosine(found.passages, signals.vector).astype(float), "dense"
            node = np.concatenate([node[:n_e], scores])
        hits = passage_hits(self.index, found.passages, scores, top_k)
        triple = self.index.graph.edge_triple[found.edge]
        is_fact = triple >= 0
        edge = np.where(is_fact, edge, 1.0)
        at = {int(p): n_e + i for i, p in enumerate(found.passages)}
        number = {self.index.passage_ids[int(p)]: at[int(p)] for p in found.passages}
        tops = np.array([number[h.item.id] for h in hits], dtype=np.int64)
        paths = evidence_paths(found, node, edge, overlap, tops) if fallback is None else {}
        whole = sorted({e for path in paths.values() for e in path})
        kept = prune(found, node, edge, is_fact, self.keep, whole)
        return Retrieval(
            query=query,
            entities=self._entities(found, node, kept),
            triples=self._triples(triple, edge, kept.edge & is_fact),
            passages=hits,
            score_unit="cosine" if fallback else "probability",
            paths={h.item.id: self._steps(found, paths[number[h.item.id]]) for h in hits if number[h.item.id] in paths},
            trace=self._trace(signals, found, kept, fallback),
        )

    def _entities(self, found: Candidates, node: np.ndarray, kept: Kept) -> list[Hit[Entity]]:
        numbers = np.flatnonzero(kept.node[: len(found.entities)])
        order = numbers[np.lexsort((numbers, -node[numbers]))]
        return [
            Hit(self.index.entity(int(found.entities[i])), float(node[i]), rank) for rank, i in enumerate(order, start=1)
        ]

    def _triples(self, triple: np.ndarray, edge: np.ndarray, kept: np.ndarray) -> list[Hit[Triple]]:
        """Kept facts by the better score of their two directions."""
        numbers, group = np.unique(triple[kept], return_inverse=True)
        best = np.zeros(len(numbers))
        np.maximum.at(best, group, edge[kept])
        order = np.lexsort((numbers, -best))
        return [
            Hit(self.index.triple(int(numbers[i])), float(best[i]), rank) for rank, i in enumerate(order, start=1)
        ]

    def _steps(self, found: Candidates, path: list[int]) -> list[PathStep]:
        return [self._step(found, position) for position in path]

    def _step(self, found: Candidates, position: int) -> PathStep:
        n_e, kind = len(found.entities), int(found.edge_kind[position])
        source, target = (int(x) for x in found.edge_index[:, position])
        names = [
            self.index.entity(int(found.entities[i])).name
            if i < n_e
            else self.index.passage_ids[int(found.passages[i - n_e])]
            for i in (source, target)
        ]
        if kind == SYNONYM:
            return PathStep(names[0], "synonym", "", names[1], "")
        if (triple := int(self.index.graph.edge_triple[found.edge[position]])) >= 0:
            fact = self.index.triple(triple)
            return PathStep(names[0], "fact" if kind == FACT else "inverse fact", fact.text, names[1], fact.passage_ids[0])
        return PathStep(names[0], EDGE_KINDS[kind].removeprefix("inverse "), "", names[1], names[int(source < n_e)])

    def _trace(self, signals: Signals, found: Candidates, kept: Kept, fallback: str | None) -> dict[str, Any]:
        n_e, graph = len(found.entities), self.index.graph
        return {
            "retriever": "gfm",
            "fallback": fallback,
            "linked_entities": [self.index.entity(int(i)).name for i in signals.seeds[:10]],
            "start_entities": found.num_start,
            "entities_by_hop": {str(h): int((found.hop[:n_e] == h).sum()) for h in sorted(set(found.hop[:n_e].tolist()))},
            "nodes": len(found.hop),
            "edges": len(found.edge),
            "kept_nodes": int(kept.node.sum()),
            "pruned_nodes": int((~kept.node).sum()),
            "kept_edges": int(kept.edge.sum()),
            "pruned_edges": int((~kept.edge).sum()),
            "hubs": found.hubs,
            "reach": f"{len(found.passages)} of {graph.num_passages} passages, {n_e} of {graph.num_entities} entities",
        }


_OVERLAP = NODE_INPUTS.index("overlap")
