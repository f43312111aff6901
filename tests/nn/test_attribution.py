from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from gfm.nn.attribution import _scaled, edge_contributions
from gfm.nn.model import GraphRetrieverModel, ModelSettings
from tests.nn.test_model import MODEL, SETTINGS, graph_of, model_of, score


def logits(model: GraphRetrieverModel, data: Data, factor: Tensor | float) -> Tensor:
    """Scores of all nodes where every message over an edge is scaled by its factor."""
    handles = [module.gate.register_forward_hook(_scaled([], factor)) for module in model.rounds]  # type: ignore[arg-type]
    try:
        return score(data, model).node
    finally:
        for handle in handles:
            handle.remove()


@settings(max_examples=15)
@given(st.integers(2, 8), st.integers(1, 20), st.integers(0, 1000))
def test_a_contribution_is_the_slope_of_the_score_by_the_edges_factor(nodes: int, edges: int, seed: int) -> None:
    data, edge, step = graph_of(nodes, edges, seed), seed % edges, 1e-2
    found = edge_contributions(MODEL, data, [0, nodes - 1])
    assert found.shape == (2, edges)
    up, down = torch.ones(edges, 1), torch.ones(edges, 1)
    up[edge], down[edge] = 1 + step, 1 - step
    slope = (logits(MODEL, data, up) - logits(MODEL, data, down)) / (2 * step)
    assert found[:, edge].tolist() == pytest.approx(slope[[0, nodes - 1]].tolist(), abs=2e-2)


def test_integrated_contributions_add_up_to_what_all_messages_do() -> None:
    data = graph_of(6, 20, 3)
    found = edge_contributions(MODEL, data, [2], steps=400)
    whole = logits(MODEL, data, 1.0)[2] - logits(MODEL, data, 0.0)[2]
    assert abs(float(whole)) > 0.01
    assert float(found.sum()) == pytest.approx(float(whole), rel=0.02)


def test_edges_from_which_no_message_arrives_contribute_nothing() -> None:
    """Nodes 0 → 1 and 2 → 3: the score of 1 knows nothing of the second edge."""
    data = graph_of(4, 2, 1)
    data.edge_index = torch.tensor([[0, 2], [1, 3]])
    found = edge_contributions(MODEL, data, [1, 3])
    assert found[0, 1] == found[1, 0] == 0
    assert found[0, 0] != 0


@pytest.mark.parametrize("rounds", [0, 3])
def test_nothing_to_contribute(rounds: int) -> None:
    shape = ModelSettings(SETTINGS.node_inputs, SETTINGS.edge_inputs, width=8, edge_width=4, rounds=rounds)
    model = model_of(shape)
    assert edge_contributions(model, graph_of(3, 4 if rounds == 0 else 0, 0), [0]).abs().sum() == 0
    assert edge_contributions(model, graph_of(3, 4, 0), []).shape == (0, 4)


def test_the_model_and_inference_stay_as_they_were() -> None:
    data = graph_of(5, 9, 2)
    before = score(data).node
    with torch.inference_mode():
        edge_contributions(MODEL, data, [0])
    assert torch.equal(score(data).node, before)
    assert all(p.grad is None for p in MODEL.parameters())
