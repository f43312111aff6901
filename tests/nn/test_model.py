from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from gfm.graph.knowledge_graph import EDGE_KINDS
from gfm.nn.checkpoint import load_model, save_model
from gfm.nn.model import GraphRetrieverModel, ModelSettings, Scores
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS

SETTINGS = ModelSettings(node_inputs=("a", "b", "c"), edge_inputs=("d", "e"), width=8, edge_width=4, rounds=3)


def model_of(shape: ModelSettings = SETTINGS, seed: int = 5) -> GraphRetrieverModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return GraphRetrieverModel(shape).eval()


MODEL = model_of()


def graph_of(nodes: int, edges: int, seed: int, shape: ModelSettings = SETTINGS) -> Data:
    """Random inputs; edges sorted by target."""
    make = torch.Generator().manual_seed(seed)
    target = torch.randint(0, max(nodes, 1), (edges,), generator=make).sort().values
    data = Data(
        node_input=torch.randn(nodes, len(shape.node_inputs), generator=make),
        edge_input=torch.randn(edges, len(shape.edge_inputs), generator=make),
        edge_kind=torch.randint(0, len(EDGE_KINDS), (edges,), generator=make),
        edge_index=torch.stack([torch.randint(0, max(nodes, 1), (edges,), generator=make), target]),
        node_kind=torch.randint(0, 2, (nodes,), generator=make),
        edge_triple=torch.randint(-1, 3, (edges,), generator=make),
    )
    data.num_nodes = nodes
    return data


def score(data: Data, model: GraphRetrieverModel = MODEL) -> Scores:
    with torch.inference_mode():
        return model(data)


def renumbered(data: Data, order: torch.Tensor) -> tuple[Data, torch.Tensor]:
    """Node ``order[i]`` becomes node i; also the edges' order after sorting them by their new target."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    edge_index = place[data.edge_index]
    by_target = edge_index[1].argsort(stable=True)
    out = Data(
        node_input=data.node_input[order],
        edge_input=data.edge_input[by_target],
        edge_kind=data.edge_kind[by_target],
        edge_index=edge_index[:, by_target],
        node_kind=data.node_kind[order],
        edge_triple=data.edge_triple[by_target],
    )
    out.num_nodes = len(order)
    return out, by_target


@settings(max_examples=40, deadline=None)
@given(nodes=st.integers(1, 12), edges=st.integers(0, 30), seed=st.integers(0, 10_000))
def test_renumbering_the_nodes_renumbers_the_scores(nodes: int, edges: int, seed: int) -> None:
    data = graph_of(nodes, edges, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(nodes))
    other, by_target = renumbered(data, order)
    one, two = score(data), score(other)
    assert torch.allclose(one.node[order], two.node, atol=1e-5)
    assert torch.allclose(one.edge[by_target], two.edge, atol=1e-5)


def test_a_batch_is_its_graphs_one_by_one() -> None:
    graphs = [graph_of(7, 20, 1), graph_of(3, 0, 2), graph_of(5, 9, 3)]
    together = score(Batch.from_data_list(graphs))
    alone = [score(g) for g in graphs]
    assert torch.allclose(together.node, torch.cat([s.node for s in alone]), atol=1e-6)
    assert torch.allclose(together.edge, torch.cat([s.edge for s in alone]), atol=1e-6)


def test_no_edges_and_no_nodes() -> None:
    scores = score(graph_of(4, 0, 1))
    assert (scores.node.shape, scores.edge.shape) == ((4,), (0,))
    assert scores.node.isfinite().all()
    assert len(scores.node.unique()) == 4  # each node by its own inputs
    nothing = score(graph_of(0, 0, 1))
    assert (nothing.node.shape, nothing.edge.shape) == ((0,), (0,))


@pytest.mark.parametrize("kind", [0, 1])
def test_one_kind_of_node_alone(kind: int) -> None:
    data = graph_of(5, 9, 4)
    data.node_kind[:] = kind
    scores = score(data)
    assert scores.node.shape == (5,)
    data.node_kind[:] = 1 - kind
    assert not torch.allclose(score(data).node, scores.node)  # a head of its own


def test_what_an_edge_says_reaches_nodes_within_the_rounds() -> None:
    """A chain 0 → 1 → … → 5: three rounds carry a change at node 0 to node 3 and no further."""
    data = graph_of(6, 5, 6)
    data.edge_index = torch.stack([torch.arange(5), torch.arange(1, 6)])
    before = score(data).node
    data.node_input[0] += 10.0
    changed = score(data).node != before
    assert changed.tolist() == [True, True, True, True, False, False]


@pytest.mark.parametrize("name", ["edge_input", "edge_kind"])
def test_inputs_of_edges_matter(name: str) -> None:
    data = graph_of(6, 12, 7)
    before = score(data)
    data[name] = (data[name] + 1) % len(EDGE_KINDS) if name == "edge_kind" else data[name] + 1.0
    after = score(data)
    assert not torch.allclose(before.node, after.node)
    assert not torch.allclose(before.edge, after.edge)


def test_only_facts_have_a_score_of_their_own() -> None:
    data = graph_of(9, 30, 11)
    scores = score(data)
    assert torch.equal(scores.edge == 0, data.edge_triple < 0)


def test_the_network_is_small() -> None:
    model = model_of(ModelSettings(node_inputs=NODE_INPUTS, edge_inputs=EDGE_INPUTS))
    count = sum(p.numel() for p in model.parameters())
    assert 50_000 < count < 120_000


def test_the_same_input_gives_the_same_bits_and_leaves_the_input_alone() -> None:
    data = graph_of(9, 30, 8)
    copies = {name: value.clone() for name, value in data.to_dict().items() if isinstance(value, torch.Tensor)}
    one, two = score(data), score(data)
    assert torch.equal(one.node, two.node)
    assert torch.equal(one.edge, two.edge)
    assert all(torch.equal(data[name], value) for name, value in copies.items())


def test_saved_and_loaded_it_scores_the_same(tmp_path: Path) -> None:
    save_model(MODEL, tmp_path)
    loaded, _ = load_model(tmp_path)
    assert loaded.settings == SETTINGS
    assert not loaded.training
    data = graph_of(9, 30, 9)
    assert torch.equal(score(data).node, score(data, loaded).node)
    assert torch.equal(score(data).edge, score(data, loaded).edge)


def test_every_weight_learns() -> None:
    model = model_of().train()
    scores = model(graph_of(12, 40, 10))
    (scores.node.square().sum() + scores.edge.square().sum()).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_settings_as_json() -> None:
    row = SETTINGS.as_json()
    assert row["node_inputs"] == ["a", "b", "c"]
    assert ModelSettings(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) == SETTINGS
