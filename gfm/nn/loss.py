"""Training loss: which passages, entities and facts a question needs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from gfm.nn.model import Scores


def listwise(logits: Tensor, gold: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """Mean over groups with gold of the cross-entropy between softmax(logits) and the uniform law over gold.

    Source: ListNet's top-one loss (Cao et al., 2007).

    Args:
        logits: (m,).
        gold: (m,) bool.
        group: (m,) the question of each item.
        num_groups: Number of questions.
    """
    log_p = _log_softmax(logits, group, num_groups)  # (m,)
    count = gold.new_zeros(num_groups, dtype=torch.float).index_add(0, group, gold.float())
    per_group = log_p.new_zeros(num_groups).index_add(0, group, -log_p * gold) / count.clamp(min=1.0)
    return per_group.sum() / (count > 0).sum().clamp(min=1)


def _log_softmax(logits: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """Log of the softmax within each group, (m,): never the log of a probability that underflowed to 0."""
    lowest = logits.new_full((num_groups,), -torch.inf)
    peak = lowest.scatter_reduce(0, group, logits.detach(), "amax")
    shifted = logits - peak.index_select(0, group)
    total = logits.new_zeros(num_groups).index_add(0, group, shifted.exp())
    return shifted - total.log().index_select(0, group)


def retrieval_loss(
    scores: Scores, data: Data, *, bce_weight: float = 0.3, positive_weight: float = 5.0, auxiliary: float = 0.2
) -> Tensor:
    """Listwise cross-entropy over passages + 0.3 · BCE, and the same over entities and facts with weight 0.2.

    Args:
        scores: From the model.
        data: A batch, with y (n,) and edge_y (e,): 1 gold, 0 not, -1 unknown. Without gold the loss is 0.
        bce_weight: Weight of the BCE.
        positive_weight: Weight of a gold item in the BCE.
        auxiliary: Weight of entities and of facts.
    """
    groups = int(data.num_graphs)
    edge_group = data.batch[data.edge_index[1]]
    parts = [
        (scores.node, data.y, data.batch, data.node_kind == 1, 1.0),
        (scores.node, data.y, data.batch, data.node_kind == 0, auxiliary),
        (scores.edge, data.edge_y, edge_group, data.edge_triple >= 0, auxiliary),
    ]
    total = scores.node[:0].sum()  # 0, and part of the gradient's graph also where nothing in the batch has gold
    for logits, y, group, of_kind, weight in parts:
        known = of_kind & (y >= 0)
        if not bool((y[known] > 0).any()):
            continue
        x, gold = logits[known], y[known] > 0
        bce = F.binary_cross_entropy_with_logits(x, gold.float(), pos_weight=x.new_tensor(positive_weight))
        total = total + weight * (listwise(x, gold, group[known], groups) + bce_weight * bce)
    return total
