from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gfm.nn.conv import GatedConv, _SegmentMax

# Node 3 sends and hears nothing, node 0 hears three, node 1 hears one twice. Sorted by target.
EDGES = torch.tensor([[1, 2, 4, 0, 0, 1], [0, 0, 0, 1, 1, 4]])


def parts(seed: int = 1) -> tuple[GatedConv, Tensor, Tensor, Tensor, Tensor]:
    """A round of width 6 with edges of width 3, two states of 5 nodes, the edges' states and the degrees."""
    torch.manual_seed(seed)
    conv = GatedConv(6, 3).eval()
    degree = torch.bincount(EDGES[1], minlength=5).clamp(min=1).float()[:, None]
    return conv, torch.randn(5, 6), torch.randn(5, 6), torch.randn(6, 3), degree


def test_a_round_against_matrices() -> None:
    """The formula of the docstring with a dense (targets × edges) matrix instead of gather and scatter."""
    conv, state, initial, edge_state, degree = parts()
    sender = torch.nn.functional.one_hot(EDGES[0], 5).float()  # (e, n)
    receiver = torch.nn.functional.one_hot(EDGES[1], 5).float()  # (e, n)
    message = (sender @ (state @ conv.send.weight.T + conv.send.bias)) * (
        edge_state @ conv.gate.weight.T + conv.gate.bias
    )  # (e, 6)
    total = receiver.T @ message  # (n, 6)
    most = torch.where(receiver.T[:, :, None] > 0, message[None], -torch.inf).amax(dim=1)  # (n, 6)
    most = torch.where(torch.isinf(most), 0.0, most)
    count = receiver.sum(dim=0).clamp(min=1)[:, None]
    mixed = torch.cat([state, initial, total / count.sqrt(), most], dim=1)  # (n, 24)
    raw = state + conv.update_net(mixed)
    expected = (raw - raw.mean(1, keepdim=True)) / (raw.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    assert torch.allclose(conv(state, initial, EDGES, edge_state, degree), expected, atol=1e-5)


def test_a_node_that_hears_nothing_gets_zeros() -> None:
    """Zeros, and no others: a maximum of negative messages stays negative."""
    conv, *_ = parts()
    messages = -torch.ones(6, 6)
    gathered = conv.aggregate(messages, EDGES[1], dim_size=5)
    assert gathered.shape == (5, 12)
    assert gathered[[2, 3]].abs().max() == 0
    assert gathered[0].tolist() == [-3.0] * 6 + [-1.0] * 6
    assert gathered[1].tolist() == [-2.0] * 6 + [-1.0] * 6


def test_no_edges_at_all() -> None:
    conv, state, initial, edge_state, _ = parts()
    none = torch.zeros(2, 0, dtype=torch.long)
    out = conv(state, initial, none, edge_state[:0], torch.ones(5, 1))
    alone = conv.norm(state + conv.update_net(torch.cat([state, initial, torch.zeros(5, 12)], dim=1)))
    assert torch.equal(out, alone)
    assert conv(state[:0], initial[:0], none, edge_state[:0], torch.ones(0, 1)).shape == (0, 6)


def test_the_gradient_of_the_maximum_is_right() -> None:
    torch.manual_seed(2)
    messages = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: _SegmentMax.apply(m, EDGES[1], 5), (messages,))


def test_the_maximum_is_that_of_scatter_reduce() -> None:
    torch.manual_seed(3)
    ours = torch.randn(6, 4, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    weight = torch.randn(5, 4)
    out = _SegmentMax.apply(ours, EDGES[1], 5)
    index = EDGES[1][:, None].expand(6, 4)
    expected = torch.zeros(5, 4).scatter_reduce(0, index, theirs, "amax", include_self=False)
    assert torch.equal(out, expected)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    assert torch.equal(ours.grad, theirs.grad)


def test_equal_maxima_share_the_gradient_in_full() -> None:
    messages = torch.tensor([[2.0], [2.0], [1.0]], requires_grad=True)
    _SegmentMax.apply(messages, torch.tensor([0, 0, 0]), 1).sum().backward()
    assert messages.grad.tolist() == [[1.0], [1.0], [0.0]]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_whole_round_has_the_right_gradient(seed: int) -> None:
    conv, state, initial, edge_state, degree = (x.double() for x in parts(seed))
    inputs = tuple(x.requires_grad_() for x in (state, initial, edge_state))
    assert torch.autograd.gradcheck(lambda s, i, e: conv(s, i, EDGES, e, degree), inputs, eps=1e-7, atol=1e-4)
