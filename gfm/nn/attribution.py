"""What each edge contributes to a node's score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gfm.nn.conv import GatedConv
from gfm.nn.model import GraphRetrieverModel


@torch.inference_mode(False)
@torch.enable_grad()
def edge_contributions(model: GraphRetrieverModel, data: Data, nodes: Sequence[int], steps: int = 1) -> Tensor:
    r"""What each edge adds to the logit of each of some nodes, (len(nodes), e).

    All messages over an edge are scaled by one factor, which is 1 in the network. With one step, a contribution is
    gradient × input of that factor; with more, the mean of the gradients at :math:`(k - 1/2) / steps`, which is its
    integrated gradient. Contributions can be negative.

    Source: Simonyan et al., "Deep inside convolutional networks", 2014; Sundararajan et al., "Axiomatic attribution for
    deep networks", 2017.

    Args:
        model: In evaluation mode; stays as it is.
        data: As for the model.
        nodes: Local numbers of the nodes that are asked about.
        steps: Forward passes, and for each a backward pass a node.
    """
    total = torch.zeros(len(nodes), data.edge_index.shape[1])
    for step in range(steps):
        scale = 1.0 if steps == 1 else (step + 0.5) / steps
        gates: list[Tensor] = []
        rounds = [module for module in model.rounds if isinstance(module, GatedConv)]
        handles = [module.gate.register_forward_hook(_scaled(gates, scale)) for module in rounds]
        try:
            logits = model(data).node
        finally:
            for handle in handles:
                handle.remove()
        for row, node in enumerate(nodes if gates else ()):
            gradients = torch.autograd.grad(logits[node], gates, retain_graph=True)
            # A gradient by the factor, from that by the scaled gate: both meet in gate × factor.
            of_factor = torch.stack([(g * gate).sum(dim=1) for g, gate in zip(gradients, gates, strict=True)])  # (r, e)
            total[row] += of_factor.sum(dim=0).detach() / (scale * steps)
    return total


def _scaled(gates: list[Tensor], scale: float) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    """A hook that keeps the gates of a round, and scales what the round sees of them."""

    def hook(_: nn.Module, __: tuple[Tensor, ...], gate: Tensor) -> Tensor:
        gates.append(gate)
        return gate * scale

    return hook
