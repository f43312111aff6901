"""The network: query-relative inputs, a few rounds of message passing, one head a kind; a pure function."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import EDGE_KINDS
from gfm.nn.conv import GatedConv


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Shape of the network; travels with its weights.

    Attributes:
        node_inputs: Names of the node inputs in order.
        edge_inputs: Names of the edge inputs in order.
        width: Node channels.
        edge_width: Edge channels.
        rounds: Rounds of message passing.
        dropout: Dropout in training.
    """

    node_inputs: tuple[str, ...]
    edge_inputs: tuple[str, ...]
    width: int = 64
    edge_width: int = 16
    rounds: int = 3
    dropout: float = 0.1

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


class Scores(NamedTuple):
    """Logits: of every node by the head of its kind (n,), and of every edge that is a fact (e,), 0 for the others."""

    node: Tensor
    edge: Tensor


class GraphRetrieverModel(nn.Module):
    """Scores entities, passages and facts of one candidate subgraph (or of a batch of them) in one pass."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        self.settings = settings
        width, edge_width = settings.width, settings.edge_width
        self.node_net = nn.Sequential(nn.Linear(len(settings.node_inputs), width), nn.ReLU(), nn.Linear(width, width))
        self.kind = nn.Embedding(len(EDGE_KINDS), edge_width)
        self.edge_net = nn.Linear(len(settings.edge_inputs), edge_width)
        self.edge_mix = nn.Sequential(nn.ReLU(), nn.Linear(edge_width, edge_width))
        self.rounds = nn.ModuleList(GatedConv(width, edge_width, settings.dropout) for _ in range(settings.rounds))
        self.entity_head = _head(2 * width)
        self.passage_head = _head(2 * width)
        # The fact head's first layer, in three parts: what concerns a node is computed once a node, not once an edge.
        self.fact_source, self.fact_target = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.fact_edge = nn.Linear(edge_width, width, bias=False)
        self.fact_head = nn.Sequential(nn.ReLU(), nn.Linear(width, 1))

    def forward(self, data: Data) -> Scores:
        """Score every node and every fact.

        Args:
            data: node_input (n, a), edge_input (e, b), edge_kind (e,), edge_index (2, e) sorted by target, edge_triple
                (e,) with -1 where an edge is no fact, and node_kind (n,) with 1 for passages.
        """
        initial = self.node_net(data.node_input)  # (n, width)
        edge_state = self.edge_mix(self.kind(data.edge_kind) + self.edge_net(data.edge_input))  # (e, edge_width)
        source, target = data.edge_index
        zeros = data.node_input.new_zeros(len(initial))  # in full precision, whatever the rest is in
        ones = torch.ones(len(target), 1, device=initial.device)
        degree = zeros[:, None].index_add(0, target, ones).clamp(min=1.0)  # (n, 1)
        state = initial
        for conv in self.rounds:
            state = conv(state, initial, data.edge_index, edge_state, degree)
        both = torch.cat([state, initial], dim=1)  # (n, 2 * width)
        node = zeros  # (n,)
        for kind, head in enumerate((self.entity_head, self.passage_head)):
            rows = (data.node_kind == kind).nonzero()[:, 0]
            node = node.index_put((rows,), head(both.index_select(0, rows))[:, 0].to(zeros.dtype))
        facts = (data.edge_triple >= 0).nonzero()[:, 0]  # (f,)
        ends = self.fact_source(state).index_select(0, source[facts]) + self.fact_target(state).index_select(
            0, target[facts]
        )  # (f, width)
        fact = self.fact_head(ends + self.fact_edge(edge_state.index_select(0, facts)))[:, 0]  # (f,)
        return Scores(node, zeros.new_zeros(len(source)).index_put((facts,), fact.to(zeros.dtype)))


def _head(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1))
