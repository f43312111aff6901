from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gfm.nn.model import GraphRetrieverModel, ModelSettings
from gfm.train.calibrate import calibrate, fit

SHAPE = ModelSettings(("signal",), ("signal",), width=8, edge_width=4, rounds=1)


def questions(count: int, label: int | None = None) -> list[Data]:
    """Graphs of five entities and forty passages; a larger input makes gold likelier, unless all have one label."""
    made = []
    for seed in range(count):
        random = np.random.default_rng(seed)
        signal = random.normal(size=(45, 1)).astype(np.float32)
        gold = random.random(45) < 1 / (1 + np.exp(3 - 2 * signal[:, 0])) if label is None else np.full(45, label)
        made.append(
            Data(
                node_input=torch.from_numpy(signal),
                edge_input=torch.zeros(2, 1),
                edge_kind=torch.zeros(2, dtype=torch.int64),
                edge_index=torch.tensor([[0, 1], [1, 2]]),
                edge_triple=torch.tensor([0, 1]),
                edge_y=torch.tensor([-1, -1]),
                node_kind=(torch.arange(45) >= 5).long(),
                y=torch.from_numpy(gold.astype(np.int64)),
                num_nodes=45,
            )
        )
    return made


def network() -> GraphRetrieverModel:
    torch.manual_seed(0)
    return GraphRetrieverModel(SHAPE).eval()


def passages(model: GraphRetrieverModel, data: Data) -> torch.Tensor:
    with torch.inference_mode():
        return model(data).node[5:]


def test_a_scale_and_a_shift_are_found() -> None:
    """Labels drawn by a known line of the logits give that line back."""
    logits = torch.linspace(-6, 6, 20001, dtype=torch.float64)
    gold = (torch.rand(20001, generator=torch.Generator().manual_seed(0)) < torch.sigmoid(0.5 * logits - 2)).double()
    assert fit(logits, gold) == pytest.approx((0.5, -2.0), abs=0.1)


def test_few_items_make_no_certainty() -> None:
    """Two items that any steep line tells apart; the smoothed targets are 2/3 and 1/3."""
    scale, shift = fit(torch.tensor([-1.0, 1.0], dtype=torch.float64), torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert (scale, shift) == pytest.approx((np.log(2), 0.0), abs=1e-4)


def test_the_mean_score_becomes_the_share_of_gold_and_the_order_stays() -> None:
    model, held_out = network(), questions(40)
    before = torch.cat([passages(model, data) for data in held_out])
    done = calibrate(model, held_out)
    after = torch.cat([passages(model, data) for data in held_out])
    gold = torch.cat([data.y[5:] for data in held_out])
    assert done["passage"]["items"] == len(gold) == 1600
    expected = done["passage"]["scale"] * before + done["passage"]["shift"]
    torch.testing.assert_close(after, expected)
    assert float(torch.sigmoid(after).mean()) == pytest.approx(float(gold.float().mean()), abs=2e-3)
    assert float(torch.sigmoid(before).mean()) > 2 * float(gold.float().mean())


def test_heads_without_labels_stay() -> None:
    model, untouched = network(), network()
    assert "fact" not in calibrate(model, questions(4))
    for name in ("fact_head", "fact_source", "fact_target", "fact_edge"):
        torch.testing.assert_close(getattr(model, name).state_dict(), getattr(untouched, name).state_dict())
    for label in (-1, 0, 1):  # unknown, no gold, all gold: there is nothing to fit
        assert calibrate(model, questions(4, label)) == {}


def test_a_head_whose_order_is_wrong_is_left_alone() -> None:
    model, held_out = network(), questions(40)
    scale = calibrate(model, held_out)["passage"]["scale"]
    assert scale > 0
    with torch.no_grad():
        model.passage_head[-1].weight.neg_()
    assert "passage" not in calibrate(model, held_out)
