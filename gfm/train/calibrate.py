"""Scores that mean probabilities: a scale and a shift of each head's logit, fitted to held-out questions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch, Data

from gfm.nn.model import GraphRetrieverModel

_FIT_STEPS = 100  # of L-BFGS; two numbers are found in a dozen


def calibrate(
    model: GraphRetrieverModel, questions: Sequence[Data], batch_size: int = 8
) -> dict[str, dict[str, float]]:
    """Make the sigmoid of each logit the chance that the item is gold, as far as a scale and a shift can.

    Both go into the last layer of the head, so the network has no other parameters than before, and the order within a
    kind stays. Source: Platt (1999), with his smoothed targets, so that a few items cannot make certainties.

    Args:
        model: Changed in place.
        questions: Labelled subgraphs that the network was not trained on, see `gfm.train.labels`.
        batch_size: Questions scored at once.

    Returns:
        By head ("entity", "passage", "fact"): ``scale``, ``shift`` and ``items``, how many it was fitted to. A head
        without both gold and other items, or whose order is wrong, is left out and stays as it is.
    """
    seen: dict[str, list[tuple[Tensor, Tensor]]] = {"entity": [], "passage": [], "fact": []}
    model.eval()
    with torch.inference_mode():
        for first in range(0, len(questions), batch_size):
            batch = Batch.from_data_list(list(questions[first : first + batch_size]))
            scores = model(batch)
            for kind, logits, y, mine in (
                ("entity", scores.node, batch.y, batch.node_kind == 0),
                ("passage", scores.node, batch.y, batch.node_kind == 1),
                ("fact", scores.edge, batch.edge_y, batch.edge_triple >= 0),
            ):
                known = mine & (y >= 0)
                seen[kind].append((logits[known], y[known]))
    heads = {"entity": model.entity_head, "passage": model.passage_head, "fact": model.fact_head}
    done = {}
    for kind, parts in seen.items():
        logits = torch.cat([x for x, _ in parts]).double()
        gold = torch.cat([y for _, y in parts]).double()
        if not 0 < float(gold.sum()) < len(gold):
            continue
        scale, shift = fit(logits, gold)
        if scale <= 0:
            continue
        last = heads[kind][-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(scale)
            last.bias.mul_(scale).add_(shift)
        done[kind] = {"scale": scale, "shift": shift, "items": len(gold)}
    return done


def fit(logits: Tensor, gold: Tensor) -> tuple[float, float]:
    """Scale and shift of the logits, float64 (m,), that make ``gold``, (m,) of 0 and 1, likeliest."""
    count = gold.sum()
    target = torch.where(gold > 0, (count + 1) / (count + 2), 1 / (len(gold) - count + 2))
    line = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([line], max_iter=_FIT_STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        value = F.binary_cross_entropy_with_logits(line[0] * logits + line[1], target)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    solver.step(loss)  # type: ignore[no-untyped-call]
    scale, shift = line.detach().tolist()
    return scale, shift
