"""Training subgraphs varied at random, so that the network trusts no one kind of link and no one size of graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import INVERSE_MENTION, INVERSE_SUBJECT, MENTION, SUBJECT
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS, standardise
from gfm.types import GfmError

_NODE_Z = [i for i, name in enumerate(NODE_INPUTS) if name.endswith("_z")]
_EDGE_Z = [i for i, name in enumerate(EDGE_INPUTS) if name.endswith("_z")]
_WEIGHT = EDGE_INPUTS.index("weight")


@dataclass(frozen=True, slots=True)
class AugmentSettings:
    """How often a question's subgraph is varied in a step; each draw is independent.

    Attributes:
        plain_subjects: Share of questions in which the link from a passage to its subject reads like any mention.
        fewer_edges: Share of questions that lose edges, a share of them drawn between 0 and ``most_lost``.
        most_lost: See there.
        fewer_nodes: Share of questions in a smaller graph: of passages and of entities a part is kept, down to
            ``least_nodes`` of all, the gold ones among them; what is standardised is so again.
        least_nodes: See there.
    """

    plain_subjects: float = 0.0
    fewer_edges: float = 0.0
    most_lost: float = 0.5
    fewer_nodes: float = 0.0
    least_nodes: float = 0.02

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise GfmError(f"augment.{name}: expected a share between 0 and 1, found {value!r}")


def vary(data: Data, settings: AugmentSettings, random: np.random.Generator) -> Data:
    """A varied copy of a labelled subgraph; the subgraph itself stays as it is.

    Args:
        data: From `gfm.train.dataset`.
        settings: How often.
        random: The draws, as many whatever comes of them.
    """
    plain, edges, nodes = random.random(3) < (settings.plain_subjects, settings.fewer_edges, settings.fewer_nodes)
    if plain:
        data = _plain_subjects(data)
    if edges:
        kept = random.random(data.edge_index.shape[1]) >= random.random() * settings.most_lost
        data = _with_edges(data, torch.from_numpy(kept))
    if nodes:
        share = settings.least_nodes ** random.random()  # as many small graphs as large ones
        kept = (random.random(data.num_nodes) < share) | (data.y.numpy() == 1)
        data = _with_nodes(data, torch.from_numpy(kept))
    return data


def _plain_subjects(data: Data) -> Data:
    out, kind, weight = data.clone(), data.edge_kind.clone(), data.edge_input.clone()
    of_subject = (kind == SUBJECT) | (kind == INVERSE_SUBJECT)
    weight[of_subject, _WEIGHT] = 1.0
    kind[kind == SUBJECT], kind[kind == INVERSE_SUBJECT] = MENTION, INVERSE_MENTION
    out.edge_kind, out.edge_input = kind, weight
    return out


def _with_edges(data: Data, kept: Tensor) -> Data:
    out = data.clone()
    out.edge_index = data.edge_index[:, kept]
    for key in ("edge_input", "edge_kind", "edge_triple", "edge_y"):
        out[key] = data[key][kept]
    return out


def _with_nodes(data: Data, kept: Tensor) -> Data:
    """The subgraph induced by some nodes, its standardised inputs standardised among them."""
    out = _with_edges(data, kept[data.edge_index].all(dim=0))
    out.edge_index = (kept.cumsum(0) - 1)[out.edge_index]
    for key in ("node_input", "node_kind", "node_number", "y", "document"):
        out[key] = data[key][kept]
    out.num_nodes = int(kept.sum())
    for key, columns, rows in (
        ("node_input", _NODE_Z, out.node_kind == 0),
        ("node_input", _NODE_Z, out.node_kind == 1),
        ("edge_input", _EDGE_Z, out.edge_triple >= 0),
    ):
        of = rows.nonzero()  # (m, 1)
        out[key][of, columns] = torch.from_numpy(standardise(out[key][of, columns].numpy()))
    return out
