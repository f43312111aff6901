from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, INVERSE_MENTION, INVERSE_SUBJECT, MENTION, SUBJECT
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS
from gfm.train.augment import AugmentSettings, vary
from gfm.types import GfmError

WEIGHT = EDGE_INPUTS.index("weight")


def labelled(seed: int = 0, entities: int = 20, passages: int = 12, edges: int = 60) -> Data:
    """A random labelled subgraph; each node's number is its place, each edge's triple too."""
    random = np.random.default_rng(seed)
    n = entities + passages
    ends = np.stack([random.integers(0, n, edges), np.sort(random.integers(0, n, edges))])
    kind = random.choice([FACT, INVERSE_FACT, MENTION, INVERSE_MENTION, SUBJECT, INVERSE_SUBJECT], edges)
    return Data(
        node_input=torch.from_numpy(random.normal(size=(n, len(NODE_INPUTS))).astype(np.float32)),
        edge_input=torch.from_numpy(random.normal(size=(edges, len(EDGE_INPUTS))).astype(np.float32)),
        edge_kind=torch.from_numpy(kind),
        edge_index=torch.from_numpy(ends),
        node_kind=torch.from_numpy((np.arange(n) >= entities).astype(np.int64)),
        node_number=torch.arange(n),
        edge_triple=torch.from_numpy(np.where(kind <= INVERSE_FACT, np.arange(edges), -1)),
        edge_y=torch.from_numpy(random.integers(-1, 2, edges)),
        y=torch.from_numpy((random.random(n) < 0.1).astype(np.int64)),
        document=torch.arange(n),
        num_gold=torch.tensor([2]),
        num_nodes=n,
    )


def same(a: Data, b: Data) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a.keys() if torch.is_tensor(a[key]))  # noqa: SIM118


def test_without_settings_nothing_changes() -> None:
    data = labelled()
    assert vary(data, AugmentSettings(), np.random.default_rng(0)) is data


def test_subjects_read_like_mentions() -> None:
    data = labelled()
    before = data.clone()
    out = vary(data, AugmentSettings(plain_subjects=1.0), np.random.default_rng(0))
    assert same(data, before)
    assert not ((out.edge_kind == SUBJECT) | (out.edge_kind == INVERSE_SUBJECT)).any()
    assert (out.edge_kind[data.edge_kind == SUBJECT] == MENTION).all()
    assert (out.edge_kind[data.edge_kind == INVERSE_SUBJECT] == INVERSE_MENTION).all()
    changed = out.edge_kind != data.edge_kind
    assert (out.edge_input[changed, WEIGHT] == 1).all()
    assert torch.equal(out.edge_input[~changed], data.edge_input[~changed])


def test_edges_are_lost_with_all_that_is_said_of_them() -> None:
    data = labelled(edges=400)
    out = vary(data, AugmentSettings(fewer_edges=1.0), np.random.default_rng(3))
    assert 200 <= out.edge_index.shape[1] < 400
    kept = [i for i in range(400) if any(torch.equal(row, data.edge_input[i]) for row in out.edge_input)]
    assert torch.equal(out.edge_index, data.edge_index[:, kept])
    assert torch.equal(out.edge_y, data.edge_y[kept])
    assert torch.equal(out.edge_triple, data.edge_triple[kept])
    assert torch.equal(out.node_input, data.node_input)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_smaller_graph_is_induced_holds_the_gold_and_is_standardised_anew(seed: int) -> None:
    data = labelled(seed)
    before = data.clone()
    out = vary(data, AugmentSettings(fewer_nodes=1.0), np.random.default_rng(seed))
    assert same(data, before)
    numbers = out.node_number
    assert set(data.node_number[data.y == 1].tolist()) <= set(numbers.tolist())
    assert torch.equal(out.y, data.y[numbers])
    assert torch.equal(out.node_kind, data.node_kind[numbers])
    inside = torch.isin(data.edge_index, numbers).all(dim=0)
    assert torch.equal(numbers[out.edge_index], data.edge_index[:, inside])
    assert (out.edge_index[1].diff() >= 0).all()
    for kind in (0, 1):
        z = out.node_input[out.node_kind == kind][:, NODE_INPUTS.index("cosine_z")]
        if len(z) > 1:
            assert (float(z.mean()), float(z.std(unbiased=False))) == pytest.approx((0.0, 1.0), abs=1e-4)
    raw = NODE_INPUTS.index("cosine")
    assert torch.equal(out.node_input[:, raw], data.node_input[numbers, raw])


def test_equal_draws_give_equal_graphs() -> None:
    data, chosen = labelled(), AugmentSettings(plain_subjects=0.5, fewer_edges=0.5, fewer_nodes=0.5)
    for seed in range(5):
        one, two = (vary(data, chosen, np.random.default_rng(seed)) for _ in range(2))
        assert same(one, two)


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(GfmError, match=r"augment\.fewer_edges: expected a share between 0 and 1, found 1\.5"):
        AugmentSettings(fewer_edges=1.5)
