from __future__ import annotations

from math import exp, log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from gfm.nn.loss import listwise, retrieval_loss
from gfm.nn.model import Scores


def test_listwise_by_hand() -> None:
    """Question 0: gold has 3 of 4 parts. Question 1: two gold of three equals. Question 2: no gold, no part."""
    logits = torch.tensor([0.0, log(3.0), 5.0, 5.0, 5.0, 2.0, -1.0])
    gold = torch.tensor([False, True, True, False, True, False, False])
    group = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    assert listwise(logits, gold, group, 3).item() == pytest.approx((-log(0.75) + log(3.0)) / 2)


def test_listwise_with_groups_that_have_no_item_or_no_gold() -> None:
    logits = torch.tensor([1.0, 2.0], requires_grad=True)
    gold, group = torch.tensor([True, False]), torch.tensor([3, 3])
    loss = listwise(logits, gold, group, 6)
    assert loss.item() == pytest.approx(log(1 + exp(1.0)))
    loss.backward()
    share = 1 / (1 + exp(1.0))
    assert logits.grad.tolist() == pytest.approx([share - 1, 1 - share])
    assert listwise(logits, torch.zeros(2, dtype=torch.bool), group, 6).item() == 0.0


def test_a_gold_item_far_behind_still_learns() -> None:
    logits = torch.tensor([60.0, -60.0], requires_grad=True)
    loss = listwise(logits, torch.tensor([False, True]), torch.tensor([0, 0]), 1)
    assert loss.item() == pytest.approx(120.0)
    loss.backward()
    assert logits.grad.tolist() == pytest.approx([1.0, -1.0])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-30, 30, width=32), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12),
    st.floats(-20, 20, width=32),
)
def test_listwise_is_blind_to_a_shift_and_never_negative(rows: list[tuple[float, bool, int]], shift: float) -> None:
    logits, gold, group = (torch.tensor(x) for x in zip(*rows, strict=True))
    loss = listwise(logits, gold, group, 4)
    assert loss.isfinite()
    assert loss >= -1e-6
    assert torch.allclose(listwise(logits + shift, gold, group, 4), loss, atol=1e-3)


def question(y: list[int], edge_y: list[int] | None = None) -> Data:
    """Two entities and two passages, a fact between the entities in both directions, a mention."""
    data = Data(
        node_kind=torch.tensor([0, 0, 1, 1]),
        y=torch.tensor(y),
        edge_index=torch.tensor([[1, 0, 2], [0, 1, 0]]),
        edge_triple=torch.tensor([0, 0, -1]),
        edge_y=torch.tensor(edge_y or [-1, -1, -1]),
    )
    data.num_nodes = 4
    return data


def loss_of(node: list[float], edge: list[float], *questions: Data, **weights: float) -> Tensor:
    scores = Scores(torch.tensor(node, requires_grad=True), torch.tensor(edge, requires_grad=True))
    return retrieval_loss(scores, Batch.from_data_list(list(questions)), **weights)


def bce(logit: float, gold: bool) -> float:
    return 5.0 * log(1 + exp(-logit)) if gold else log(1 + exp(logit))


def test_passages_by_hand() -> None:
    found = loss_of([9.0, 9.0, 1.0, 0.0], [0.0] * 3, question([-1, -1, 1, 0]))
    expected = log(1 + exp(-1.0)) + 0.3 * (bce(1.0, True) + bce(0.0, False)) / 2
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_entities_and_facts_by_hand() -> None:
    found = loss_of([2.0, 0.0, 1.0, 0.0], [3.0, -1.0, 7.0], question([1, 0, 1, 0], [1, 0, -1]))
    passages = log(1 + exp(-1.0)) + 0.3 * (bce(1.0, True) + bce(0.0, False)) / 2
    entities = log(1 + exp(-2.0)) + 0.3 * (bce(2.0, True) + bce(0.0, False)) / 2
    facts = log(1 + exp(-4.0)) + 0.3 * (bce(3.0, True) + bce(-1.0, False)) / 2
    assert found.item() == pytest.approx(passages + 0.2 * entities + 0.2 * facts, rel=1e-5)


def test_weights_are_settings() -> None:
    found = loss_of([2.0, 0.0, 1.0, 0.0], [0.0] * 3, question([1, 0, 1, 0]), bce_weight=0.0, auxiliary=1.0)
    assert found.item() == pytest.approx(log(1 + exp(-1.0)) + log(1 + exp(-2.0)), rel=1e-5)


def test_unknown_labels_and_edges_that_are_no_facts_play_no_part() -> None:
    label = question([-1, 1, 1, 0], [1, -1, 1])  # the third edge is a mention: its label is never read
    base = loss_of([5.0, 1.0, 1.0, 0.0], [1.0, 5.0, 5.0], label)
    assert loss_of([-9.0, 1.0, 1.0, 0.0], [1.0, -9.0, -9.0], label).item() == base.item()
    assert loss_of([5.0, 1.0, 1.0, 2.0], [1.0, 5.0, 5.0], label).item() != base.item()


def test_questions_are_not_mixed() -> None:
    """Listwise: each question's passages compete among themselves alone."""
    one, two = question([-1, -1, 1, 0]), question([-1, -1, 0, 1])
    both = loss_of([0, 0, 1.0, 0.0, 0, 0, 40.0, 40.0], [0.0] * 6, one, two, bce_weight=0.0)
    assert both.item() == pytest.approx((log(1 + exp(-1.0)) + log(2.0)) / 2, rel=1e-5)


@pytest.mark.parametrize("y", [[-1, -1, -1, -1], [0, 0, 0, 0], [-1, 0, 0, -1]])
def test_no_gold_is_zero_and_can_be_learnt_from(y: list[int]) -> None:
    scores = Scores(torch.randn(4, requires_grad=True), torch.randn(3, requires_grad=True))
    loss = retrieval_loss(scores, Batch.from_data_list([question(y)]))
    assert loss.item() == 0.0
    loss.backward()
    assert scores.node.grad.tolist() == [0.0] * 4


def test_huge_logits_stay_finite() -> None:
    loss = loss_of([1e4, -1e4, -1e4, 1e4], [1e4, -1e4, 0.0], question([0, 1, 1, 0], [0, 1, -1]))
    assert loss.isfinite()
