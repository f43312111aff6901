"""Passages by the learnt scores of their entities alone, as in GFM-RAG."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch_geometric.data import Data

from gfm.index.index import GraphIndex
from gfm.retrieve.candidates import Candidates, top
from gfm.retrieve.gnn import Explained, GNNRetriever
from gfm.retrieve.signals import Signals
from gfm.types import GfmError, Query


class EntityGNNRetriever(GNNRetriever):
    """The learnt retriever with another score of passages: mean over its best entities of 1 / document frequency.

    An entity that the passage does not mention counts 0. Which passages are scored, the entities, facts and paths are
    those of `GNNRetriever`. Many passages have equal scores; they are in order of their ids.

    Source: GFM-RAG (Luo et al., 2025), which ranks documents so by the scores of its network; the sum there, the mean
    here, so that no score is above 1.
    """

    best_entities = 20

    @classmethod
    def from_pretrained(
        cls,
        index: GraphIndex,
        path: str | Path | None = None,
        keep: float = 0.3,
        least_kept: int = 32,
        best_entities: int = 20,
        **candidates: Any,
    ) -> Self:
        """As `GNNRetriever.from_pretrained`; ``best_entities`` says how many entities speak for passages.

        Raises:
            GfmError: As there, or a number of entities below 1.
        """
        if isinstance(best_entities, bool) or not isinstance(best_entities, int) or best_entities < 1:
            raise GfmError(f"gfm_entity best_entities: expected a whole number of 1 or more, found {best_entities!r}")
        retriever = super().from_pretrained(index, path, keep, least_kept, **candidates)
        retriever.best_entities = best_entities
        return retriever

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        retriever = super().over(index)
        retriever.best_entities = self.best_entities
        return retriever

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
        n_e = len(found.entities)
        node = np.concatenate([node[:n_e], self._support(found, node[:n_e])])
        done = super()._result(query, top_k, signals, found, node, edge, data)
        result = done.result
        unit = result.score_unit if result.trace["fallback"] else "mean 1/df of the best entities"
        return replace(done, result=replace(result, score_unit=unit, trace={**result.trace, "retriever": "gfm_entity"}))

    def _support(self, found: Candidates, entity_score: np.ndarray) -> np.ndarray:
        """Score of each candidate passage, float64[n_p]."""
        n_e = len(found.entities)
        best = top(entity_score, self.best_entities)
        weight = np.zeros(n_e)
        weight[best] = 1.0 / np.maximum(self.index.graph.entity_df[found.entities[best]], 1)
        source, target = found.edge_index
        mentioned = (source < n_e) & (target >= n_e)  # each mention once: its edge from the entity to the passage
        total = np.bincount(target[mentioned] - n_e, weights=weight[source[mentioned]], minlength=len(found.passages))
        return np.asarray(total / self.best_entities)
