"""The check before a long run: eight questions must be learnt by heart, and shuffled labels must not."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import torch
from torch_geometric.data import Data

from gfm.train.data import LoadedSet, SubgraphData
from gfm.train.module import RetrievalModule
from gfm.train.run import make_trainer, new_module, seeded
from gfm.train.settings import TrainSettings
from gfm.types import GfmError

QUESTIONS, STEPS, SECONDS = 8, 60, 60
LEAST_MRR, LEAST_GAP = 0.95, 0.2


@dataclass(frozen=True, slots=True)
class SanityResult:
    """Both figures.

    Attributes:
        mrr: After training on the true labels; mean reciprocal rank by document on the same eight questions.
        shuffled_mrr: The same where labels were shuffled among the passages of each question, anew for each step: a
            network of this size learns even one wrong labelling by heart.
        seconds: Wall time of the training on true labels.
    """

    mrr: float
    shuffled_mrr: float
    seconds: float

    def text(self) -> str:
        """A report for a person."""
        return (
            f"sanity: {QUESTIONS} questions reach MRR {self.mrr:.3f} in {self.seconds:.0f} s (expected {LEAST_MRR} or "
            f"more in {SECONDS} s); with shuffled labels {self.shuffled_mrr:.3f} (expected {LEAST_GAP} less)"
        )


def sanity(settings: TrainSettings) -> SanityResult:
    """Learn eight questions of the first set by heart, then try the same with shuffled labels.

    Raises:
        GfmError: The first fails (labels, inputs or loop are broken), or the second does not (the figure is).
    """
    first = replace(settings, data=replace(settings.data, sets=settings.data.sets[:1]))
    data = SubgraphData(first)
    data.prepare_data()
    data.setup()
    chosen = _learnable(data.loaded[0])
    start = time.perf_counter()
    mrr = _overfit(first, chosen, chosen)
    seconds = time.perf_counter() - start
    noise = [shuffled(d, seed) for seed, d in enumerate(chosen * (STEPS + 1))]
    result = SanityResult(mrr, _overfit(first, noise[QUESTIONS:], noise[:QUESTIONS]), seconds)
    if result.mrr < LEAST_MRR:
        raise GfmError(f"{result.text()}. Eight questions are not learnt: look at the labels and at optimizer.lr")
    if result.shuffled_mrr > result.mrr - LEAST_GAP:
        raise GfmError(f"{result.text()}. Shuffled labels are learnt as well: the figure says nothing about the labels")
    return result


def shuffled(data: Data, seed: int) -> Data:
    """A copy in which the labels of passages are permuted among them; it shares all other tensors."""
    out = copy.copy(data)
    passages = torch.nonzero(data.node_kind == 1)[:, 0]
    order = torch.randperm(len(passages), generator=torch.Generator().manual_seed(seed))
    out.y = data.y.index_copy(0, passages, data.y[passages[order]])
    return out


def _learnable(loaded: LoadedSet) -> list[Data]:
    """The first questions with a gold passage, and others, among the candidates."""
    questions = [*loaded.train, *loaded.validation]
    found = [d for d in questions if len({*(d.y[d.node_kind == 1] == 1).tolist()}) == 2][:QUESTIONS]
    if len(found) < QUESTIONS:
        raise GfmError(
            f"set {loaded.name!r}: expected {QUESTIONS} questions whose gold passages are among the candidates, found "
            f"{len(found)} of {len(questions)}; try the demo set with data=demo"
        )
    return found


def _overfit(settings: TrainSettings, questions: Sequence[Data], asked: Sequence[Data]) -> float:
    """Mean reciprocal rank of the questions ``asked`` after training on ``questions`` without any dropout."""
    own = replace(
        settings,
        model=replace(settings.model, dropout=0.0),
        optimizer=replace(settings.optimizer, input_dropout=0.0, ema=0.0),
        trainer=replace(settings.trainer, max_steps=STEPS, val_every=STEPS),
        data=replace(settings.data, batch_size=QUESTIONS),
    )
    data = SubgraphData(own)
    name = own.data.sets[0].name
    data.loaded = [LoadedSet(name, list(questions), list(asked), "", "")]
    with seeded(own):
        module: RetrievalModule = new_module(own)
        trainer = make_trainer(own.trainer, own.optimizer.clip, None, [], max_time=timedelta(seconds=SECONDS))
        trainer.fit(module, train_dataloaders=None, datamodule=data)
    return module.figures[name]["mrr"]
