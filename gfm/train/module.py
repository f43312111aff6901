"""The training loop's inside: loss, optimizer, running mean of the weights, validation by document."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import lightning as L
import numpy as np
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch

from gfm.nn.loss import retrieval_loss
from gfm.nn.model import GraphRetrieverModel, ModelSettings
from gfm.train.inputs import blind
from gfm.train.processes import gathered, rank
from gfm.train.settings import OptimizerSettings
from gfm.types import GfmError

log = logging.getLogger(__name__)

MONITOR = "val/monitor"
FIGURES = ("recall@2", "recall@5", "mrr")


class Row(NamedTuple):
    """Figures of one question, each in 0 … 1: strict recall, and the reciprocal rank of the first gold document."""

    recall_2: float
    recall_5: float
    reciprocal_rank: float


class RetrievalModule(L.LightningModule):
    """The network in training.

    Args:
        model: Its `ModelSettings` as a plain dict.
        optimizer: The `OptimizerSettings` as a plain dict.
        set_names: Of the sets, in the order of ``set_number``.
        max_steps: Length of the learning-rate schedule.
        leave_out: Groups of inputs that the network is not to see, see `gfm.train.inputs`.
        seed: Of all dropout; each step draws from its own seed, so a resumed run draws what an unbroken one does.

    Attributes:
        model: The network whose weights the optimizer changes.
        average: The running mean of its weights (EMA), which is validated and exported.
        figures: {set: {"recall@2", "recall@5", "mrr": mean}} of the last validation.
    """

    def __init__(
        self,
        *,
        model: dict[str, Any],
        optimizer: dict[str, Any],
        set_names: Sequence[str],
        max_steps: int,
        seed: int,
        leave_out: Sequence[str] = (),
    ):
        super().__init__()
        # Plain dicts and lists: a Lightning checkpoint that holds anything else opens no more with torch's defaults.
        self.save_hyperparameters(
            {
                "model": model,
                "optimizer": optimizer,
                "set_names": list(set_names),
                "max_steps": max_steps,
                "seed": seed,
                "leave_out": list(leave_out),
            }
        )
        self.model = GraphRetrieverModel(ModelSettings(**{k: _frozen(v) for k, v in model.items()}))
        blind(self.model, leave_out)
        self.optimizer_settings = OptimizerSettings(**optimizer)
        self.average = AveragedModel(self.model, multi_avg_fn=_running_mean(self.optimizer_settings.ema))
        self.average.requires_grad_(False)
        self.set_names, self.max_steps, self.seed = list(set_names), max_steps, seed
        self.figures: dict[str, dict[str, float]] = {}
        self._rows: list[tuple[int, Row]] = []

    @classmethod
    def of(
        cls,
        model: ModelSettings,
        optimizer: OptimizerSettings,
        set_names: Sequence[str],
        max_steps: int,
        seed: int,
        leave_out: Sequence[str] = (),
    ) -> RetrievalModule:
        """A module by settings."""
        return cls(
            model=model.as_json(),
            optimizer=asdict(optimizer),
            set_names=set_names,
            max_steps=max_steps,
            seed=seed,
            leave_out=leave_out,
        )

    def start_from(self, model: GraphRetrieverModel) -> None:
        """Take the weights of a trained network of the same shape as the first ones."""
        self.model.load_state_dict(model.state_dict())
        self.average.module.load_state_dict(model.state_dict())

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Give the step its seed, another one in each process."""
        torch.manual_seed((self.seed << 32) + (rank() << 24) + self.global_step)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of one batch.

        Raises:
            GfmError: It is not finite.
        """
        batch = drop_inputs(batch, self.optimizer_settings.input_dropout)
        loss = retrieval_loss(self.model(batch), batch)
        if not bool(torch.isfinite(loss)):
            raise GfmError(
                f"step {self.global_step}: expected a finite loss, found {float(loss.detach())}; lower optimizer.lr, "
                f"now {self.optimizer_settings.lr:g}, or optimizer.clip, now {self.optimizer_settings.clip:g}"
            )
        size = int(batch.num_graphs)
        passage = batch.node_kind == 1
        rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
        self.log("train/loss", loss, prog_bar=True, batch_size=size)
        self.log("train/gold_rate", (batch.y[passage] == 1).float().mean(), batch_size=size)
        self.log("train/lr", rate, batch_size=size)
        # Lightning files a line under this number; its own count is one too high in a resumed run.
        self.log("step", float(self.global_step + 1), batch_size=size)
        return loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the gradient's norm as it is before clipping."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        self.log("train/grad_norm", torch.nn.utils.get_total_norm(gradients), batch_size=1)

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Take the step's weights into the running mean."""
        self.average.update_parameters(self.model)

    def on_validation_epoch_start(self) -> None:
        """Forget the last validation."""
        self._rows = []

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Rank the documents of each question by the averaged weights; the entities, where nothing else is known."""
        scores = self.average(batch).node
        for number in range(int(batch.num_graphs)):
            mine = batch.batch == number
            of, item = mine & (batch.node_kind == 1), batch.document
            if bool((batch.y[of] < 0).all()):
                of, item = mine & (batch.node_kind == 0), batch.node_number
            row = document_figures(scores[of], batch.y[of], item[of], int(batch.num_gold[number]))
            self._rows.append((int(batch.set_number[number]), row))

    def on_validation_epoch_end(self) -> None:
        """Mean figures by set; the monitor is the mean over sets, so that a large set does not outweigh small ones."""
        self.figures = {}
        all_rows = gathered(self._rows)
        for number, name in enumerate(self.set_names):
            rows = [row for of, row in all_rows if of == number]
            if rows:
                self.figures[name] = dict(zip(FIGURES, (float(x) for x in np.mean(rows, axis=0)), strict=True))
        for name, figures in self.figures.items():
            self.log_dict({f"val/{name}/{figure}": value for figure, value in figures.items()})
        self.log_dict({MONITOR: monitor(self.figures), "step": float(self.global_step)})

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """AdamW under one cycle of the learning rate."""
        s = self.optimizer_settings
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=s.lr, weight_decay=s.weight_decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, s.lr, total_steps=self.max_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def drop_inputs(batch: Batch, share: float) -> Batch:
    """Zero whole input columns of whole questions, each with probability ``share``; the batch itself stays as it is."""
    if share == 0:
        return batch
    out = batch.clone()
    device = batch.node_input.device
    groups = int(batch.num_graphs)
    for key, group in (("node_input", batch.batch), ("edge_input", batch.batch[batch.edge_index[1]])):
        keep = (torch.rand(groups, batch[key].shape[1], device=device) >= share).float()  # (B, a)
        out[key] = batch[key] * keep[group]
    return out


def document_figures(scores: Tensor, y: Tensor, document: Tensor, num_gold: int) -> Row:
    """Figures of one question, by document: a document stands where its best passage does.

    Args:
        scores: (m,) of the passages, in the order of their ids; equal scores keep it.
        y: (m,) 1 for a passage of a gold document.
        document: (m,) number of each passage's document.
        num_gold: Gold documents of the question; those outside the candidates count as missed.

    Returns:
        All three not a number where a score is not finite: a broken network must not pass for a ranking.
    """
    if not bool(torch.isfinite(scores).all()):
        return Row(math.nan, math.nan, math.nan)
    order = torch.argsort(-scores, stable=True).cpu().numpy()
    _, first = np.unique(document.cpu().numpy()[order], return_index=True)
    gold = y.cpu().numpy()[order][np.sort(first)] == 1  # by document, best first
    rank = int(gold.argmax()) + 1 if gold.any() else math.inf
    return Row(gold[:2].sum() / num_gold, gold[:5].sum() / num_gold, 1.0 / rank)


def monitor(figures: dict[str, dict[str, float]]) -> float:
    """Mean over sets of (recall@2 + recall@5) / 2."""
    return float(np.mean([(f["recall@2"] + f["recall@5"]) / 2 for f in figures.values()]))


def _running_mean(decay: float) -> Any:
    return get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
