from __future__ import annotations

import math
from collections.abc import Sequence

import lightning as L
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data

from gfm.nn.model import ModelSettings
from gfm.train.callbacks import Best, FlatLoss
from gfm.train.module import FIGURES, MONITOR, RetrievalModule, Row, document_figures, drop_inputs, monitor
from gfm.train.settings import OptimizerSettings
from gfm.types import GfmError


def graph(set_number: int = 0, passages: int = 4) -> Data:
    """One entity and some passages, joined with it both ways; the first passage is gold, its first input is 1."""
    n = passages + 1
    edge_index = torch.tensor([[*range(1, n), *[0] * passages], [*[0] * passages, *range(1, n)]])
    node_input = torch.full((n, 2), 0.5)
    node_input[1, 0] = 1.0
    return Data(
        node_input=node_input,
        edge_input=torch.ones(2 * passages, 1),
        edge_kind=torch.zeros(2 * passages, dtype=torch.long),
        edge_index=edge_index,
        edge_triple=torch.full((2 * passages,), -1),
        node_kind=torch.tensor([0] + [1] * passages),
        document=torch.tensor([-1, *range(passages)]),
        y=torch.tensor([-1, 1] + [0] * (passages - 1)),
        edge_y=torch.full((2 * passages,), -1),
        num_gold=torch.tensor([1]),
        set_number=torch.tensor([set_number]),
        num_nodes=n,
    )


def module(names: Sequence[str] = ("a",), **optimizer: float) -> RetrievalModule:
    torch.manual_seed(0)
    settings = ModelSettings(("one", "two"), ("weight",), width=8, edge_width=4, rounds=1)
    return RetrievalModule.of(settings, OptimizerSettings(**optimizer), names, max_steps=10, seed=3)


def fit(own: RetrievalModule, steps: int, callbacks: Sequence[L.Callback] = ()) -> L.Trainer:
    steps_of_two = [[0, 1]] * steps
    loader = DataLoader([graph(), graph()], batch_sampler=steps_of_two, collate_fn=Batch.from_data_list)
    trainer = L.Trainer(
        accelerator="cpu", max_steps=steps, logger=False, callbacks=list(callbacks), num_sanity_val_steps=0,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, gradient_clip_val=1.0,
    )  # fmt: skip
    trainer.fit(own, loader)
    return trainer


# --- figures


def test_a_document_stands_where_its_best_passage_does() -> None:
    # Order of the passages: 4 (document 9), 2 (document 7), 0 (document 7), 1 (document 8), 3 (document 5).
    scores = torch.tensor([0.4, 0.3, 0.6, 0.1, 0.9])
    document = torch.tensor([7, 8, 7, 5, 9])
    row = document_figures(scores, torch.tensor([1, 1, 1, 0, 0]), document, 3)
    assert row == Row(1 / 3, 2 / 3, 1 / 2)  # gold: 7 at rank 2, 8 at rank 3, and one outside the candidates
    five = document_figures(-torch.arange(7.0), torch.tensor([0, 0, 0, 0, 1, 1, 0]), torch.arange(7), 2)
    assert five == Row(0.0, 0.5, 1 / 5)


def test_equal_scores_keep_the_order_of_the_ids() -> None:
    y = torch.tensor([0, 0, 1])
    assert document_figures(torch.zeros(3), y, torch.arange(3), 1) == Row(0.0, 1.0, 1 / 3)


def test_no_gold_and_no_passages() -> None:
    assert document_figures(torch.zeros(2), torch.zeros(2), torch.arange(2), 2) == Row(0.0, 0.0, 0.0)
    empty = torch.zeros(0, dtype=torch.long)
    assert document_figures(torch.zeros(0), empty, empty, 1) == Row(0.0, 0.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_no_ranking(bad: float) -> None:
    row = document_figures(torch.tensor([1.0, bad]), torch.tensor([1, 0]), torch.arange(2), 1)
    assert np.isnan(row).all()


def test_the_monitor_weighs_sets_equally() -> None:
    figures = {"large": {"recall@2": 0.2, "recall@5": 0.4, "mrr": 1.0}, "small": {"recall@2": 0.8, "recall@5": 1.0}}
    assert monitor(figures) == pytest.approx((0.3 + 0.9) / 2)


# --- one step


def test_whole_columns_of_whole_questions_are_dropped() -> None:
    batch = Batch.from_data_list([graph() for _ in range(200)])
    torch.manual_seed(0)
    out = drop_inputs(batch, 0.25)
    kept = out.node_input[:, 1].view(200, 5) / 0.5
    assert ((kept == 0) | (kept == 1)).all()
    assert (kept == kept[:, :1]).all()
    assert 0.15 < float((kept == 0).float().mean()) < 0.35
    assert 0.15 < float((out.edge_input == 0).float().mean()) < 0.35
    assert bool((batch.node_input != 0).all())
    assert drop_inputs(batch, 0.0) is batch


def test_the_running_mean_starts_at_the_first_step_and_follows() -> None:
    own = module(ema=0.75)
    seen = []

    class Watch(L.Callback):
        def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: object) -> None:
            seen.append(own.model.node_net[0].weight.detach().clone())

    fit(own, 3, [Watch()])
    expected = seen[0]
    for weight in seen[1:]:
        expected = 0.75 * expected + 0.25 * weight
    torch.testing.assert_close(own.average.module.node_net[0].weight, expected)
    assert not torch.equal(seen[0], seen[2])


def test_dropout_depends_on_the_seed_and_the_step_only() -> None:
    own, other = module(input_dropout=0.5), module(input_dropout=0.5)
    fit(own, 3)
    torch.manual_seed(99)
    torch.rand(5)
    fit(other, 3)
    for a, b in zip(own.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_what_a_step_logs() -> None:
    trainer = fit(module(), 1)
    logged = trainer.callback_metrics
    assert set(logged) == {"train/loss", "train/gold_rate", "train/lr", "train/grad_norm", "step"}
    assert float(logged["train/gold_rate"]) == 0.25
    assert float(logged["train/grad_norm"]) > 0
    assert float(logged["train/lr"]) == pytest.approx(2e-3 / 25)  # one cycle begins at a 25th of its peak


def test_a_loss_that_is_not_finite_stops_the_run() -> None:
    own = module()
    torch.nn.init.constant_(own.model.node_net[0].weight, math.nan)
    with pytest.raises(GfmError, match=r"step 0: expected a finite loss, found nan; lower optimizer\.lr"):
        fit(own, 1)


def test_hyperparameters_are_plain() -> None:
    def plain(value: object) -> bool:
        if type(value) is dict:
            return all(type(k) is str and plain(v) for k, v in value.items())
        return all(map(plain, value)) if type(value) is list else type(value) in (int, float, str, bool)

    saved = dict(module(("a", "b/c")).hparams)
    assert plain(saved)
    assert saved["set_names"] == ["a", "b/c"]
    assert saved["model"]["node_inputs"] == ["one", "two"]


# --- validation


def test_validation_is_by_the_averaged_weights_and_by_set() -> None:
    own = module(("a", "b"))
    torch.nn.init.constant_(own.model.node_net[0].weight, math.nan)  # not what is validated
    own.average.module.forward = lambda data: type("S", (), {"node": data.node_input[:, 0]})()  # finds the gold passage
    own.log = own.log_dict = lambda *a, **k: None  # type: ignore[method-assign]
    own.on_validation_epoch_start()
    wrong = graph(1, passages=8)
    wrong.node_input[1, 0] = 0.0  # last of eight
    own.validation_step(Batch.from_data_list([graph(0), graph(1)]), 0)
    own.validation_step(Batch.from_data_list([wrong]), 1)
    own.on_validation_epoch_end()
    assert own.figures == {
        "a": dict.fromkeys(FIGURES, 1.0),
        "b": {"recall@2": 0.5, "recall@5": 0.5, "mrr": pytest.approx((1 + 1 / 8) / 2)},
    }


class Scripted(L.Callback):
    """Gives `Best` the figures of a script, one a validation."""

    def __init__(self, script: Sequence[float]):
        self.script, self.best, self.own = list(script), Best(), module()

    def run(self) -> Best:
        for step, score in enumerate(self.script, start=1):
            self.own.figures = {"a": {"recall@2": score}}
            torch.nn.init.constant_(self.own.average.module.node_net[0].weight, step)
            trainer = type("T", (), {"global_step": step, "callback_metrics": {MONITOR: torch.tensor(score)}})()
            self.best.on_validation_end(trainer, self.own)
        return self.best


def test_the_best_is_the_first_of_equals_and_keeps_its_own_weights() -> None:
    best = Scripted([0.5, 0.75, 0.75, 0.25]).run()
    assert (best.score, best.step, best.figures) == (0.75, 2, {"a": {"recall@2": 0.75}})
    assert bool((best.weights["node_net.0.weight"] == 2).all())


@pytest.mark.parametrize(
    ("script", "step", "rejected"),
    [([math.nan, 0.5], 2, [1]), ([0.5, math.nan], 1, [2]), ([math.inf, 0.25, -math.inf], 2, [1, 3])],
)
def test_a_figure_that_is_not_finite_is_never_the_best(script: list[float], step: int, rejected: list[int]) -> None:
    best = Scripted(script).run()
    assert (best.step, best.rejected) == (step, rejected)
    assert Scripted([math.nan]).run().weights == {}


def test_the_best_survives_its_state() -> None:
    best, other = Scripted([0.5, math.nan]).run(), Best()
    other.load_state_dict(best.state_dict())
    assert (other.score, other.step, other.figures, other.rejected) == (0.5, 1, best.figures, [2])
    assert other.weights.keys() == best.weights.keys()


# --- flat loss


def watch(losses: Sequence[float]) -> FlatLoss:
    flat = FlatLoss(steps=8)
    for loss in losses:
        flat.on_train_batch_end(None, None, {"loss": torch.tensor(loss)}, None, 0)  # type: ignore[arg-type]
    return flat


@pytest.mark.parametrize("losses", [[1.0] * 8, [1, 1, 0, 0, 0, 0, 1, 2], [math.nan] * 8])
def test_a_loss_that_does_not_fall_gives_one_warning(losses: list[float], caplog: pytest.LogCaptureFixture) -> None:
    flat = watch([*losses, *losses])
    assert "does not fall" in flat.warning
    assert len(caplog.records) == 1


@pytest.mark.parametrize("losses", [[1, 1, 1, 1, 1, 1, 0.9, 1], [1.0] * 7])
def test_a_falling_loss_or_too_few_steps_give_none(losses: list[float]) -> None:
    assert watch(losses).warning == ""


def test_the_losses_seen_survive_a_resume() -> None:
    first, second = watch([1.0] * 7), FlatLoss(steps=8)
    second.load_state_dict(first.state_dict())
    second.on_train_batch_end(None, None, {"loss": torch.tensor(1.0)}, None, 0)  # type: ignore[arg-type]
    assert "mean 1.0000 over the first 2 of 8 steps" in second.warning
