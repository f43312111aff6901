"""What watches a run: the best weights so far, and a loss that does not fall."""

from __future__ import annotations

import logging
import math
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor

from gfm.train.module import MONITOR, RetrievalModule

log = logging.getLogger(__name__)


class Best(L.Callback):
    """Keeps the averaged weights of the best validation, the first of equals; they travel in last.ckpt.

    A file of its own would be lost to a run that is resumed in another folder; the weights are a few hundred kilobytes.

    Attributes:
        score: Of the best validation; minus infinity before the first finite one.
        step: Steps done by then.
        figures: Its figures by set.
        weights: State of the network; empty before the first finite validation.
        rejected: Steps whose figure was not finite.
    """

    def __init__(self) -> None:
        self.score, self.step = -math.inf, 0
        self.figures: dict[str, dict[str, float]] = {}
        self.weights: dict[str, Tensor] = {}
        self.rejected: list[int] = []

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Compare."""
        assert isinstance(pl_module, RetrievalModule)
        step, score = trainer.global_step, float(trainer.callback_metrics[MONITOR])
        if not math.isfinite(score):
            self.rejected.append(step)
            log.warning("step %d: the validation figure is %s; these weights cannot become the best", step, score)
            return
        is_better = score > self.score
        log.info("step %d: %s %.4f%s", step, MONITOR, score, ", the best so far" if is_better else "")
        if is_better:
            self.score, self.step, self.figures = score, step, pl_module.figures
            self.weights = {k: v.detach().cpu().clone() for k, v in pl_module.average.module.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """For last.ckpt: numbers, text and tensors only."""
        # By name: Lightning hangs functions of its own on a callback.
        return {name: getattr(self, name) for name in ("score", "step", "figures", "weights", "rejected")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From last.ckpt."""
        vars(self).update(state_dict)


class FlatLoss(L.Callback):
    """Warns once where the loss of the first steps does not fall from their first quarter to their last, by the mean.

    Attributes:
        steps: How many steps are looked at.
        losses: Of those seen.
        warning: The warning given; empty where none was.
    """

    def __init__(self, steps: int = 200):
        self.steps = steps
        self.losses: list[float] = []
        self.warning = ""

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the loss, and judge once enough are seen."""
        if len(self.losses) >= self.steps:
            return
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        self.losses.append(float(torch.as_tensor(loss)))
        if len(self.losses) < self.steps:
            return
        quarter = max(1, self.steps // 4)
        first, last = float(np.mean(self.losses[:quarter])), float(np.mean(self.losses[-quarter:]))
        if not last < first:
            self.warning = (
                f"the loss does not fall: mean {first:.4f} over the first {quarter} of {self.steps} steps, {last:.4f} "
                "over the last; try the labels and the loop on eight questions by sanity=true, or a lower optimizer.lr"
            )
            log.warning("%s", self.warning)

    def state_dict(self) -> dict[str, Any]:
        """For last.ckpt."""
        return {"losses": list(self.losses), "warning": self.warning}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From last.ckpt."""
        vars(self).update(state_dict)
