from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gfm.nn.checkpoint import WEIGHTS
from gfm.train.processes import gathered, launched, rank, together, world_size
from gfm.train.run import train
from gfm.train.settings import OptimizerSettings, TrainerSettings, TrainSettings
from gfm.types import GfmError

Settings = Callable[..., TrainSettings]


def its_rank(given: str) -> tuple[str, str]:
    if given == "wrong" and os.environ["RANK"] == "1":
        raise GfmError("expected a right one: found, say, a wrong one")
    return given, os.environ["WORLD_SIZE"]


def test_alone() -> None:
    assert (launched(), rank(), world_size(), gathered([1, 2])) == (False, 0, 1, [1, 2])


def test_the_first_process_answers() -> None:
    assert together(its_rank, "right", 2) == ("right", "2")


def test_the_error_of_any_process_is_told() -> None:
    with pytest.raises(GfmError, match=r"^expected a right one: found, say, a wrong one$"):
        together(its_rank, "wrong", 2)


def test_two_processes_train_as_one_does(make_settings: Settings, tmp_path: Path) -> None:
    """Without dropout the shares of a batch add up to the batch: weights differ by rounding, figures not at all."""
    loop = TrainerSettings(max_steps=4, val_every=2, log_every=1, threads=1)
    made = make_settings(trainer=loop, optimizer=OptimizerSettings(ema=0.5, input_dropout=0.0))
    made = replace(made, model=replace(made.model, dropout=0.0))
    one = train(made)
    two = train(replace(made, output=str(tmp_path / "two"), trainer=replace(loop, devices=2)))
    assert (two.figures, two.step, two.checkpoint) == (one.figures, one.step, tmp_path / "two" / "checkpoint")
    mine, theirs = (load_file(run.checkpoint / WEIGHTS) for run in (one, two))
    for name in mine:
        torch.testing.assert_close(theirs[name], mine[name], rtol=1e-3, atol=1e-5)


def test_more_processes_than_questions_in_a_batch(make_settings: Settings) -> None:
    with pytest.raises(GfmError, match=r"trainer\.devices: expected at most data\.batch_size, 4, found 5"):
        make_settings(trainer=TrainerSettings(devices=5))


def test_a_killed_run_that_is_resumed_gives_the_weights_of_an_unbroken_one(
    make_settings: Settings, tmp_path: Path
) -> None:
    loop = TrainerSettings(max_steps=80, val_every=2, log_every=1, threads=1)
    broken = make_settings(output=str(tmp_path / "broken"), trainer=loop)
    last = tmp_path / "broken" / "last.ckpt"
    process = multiprocessing.get_context("spawn").Process(target=train, args=(broken,))
    process.start()
    patience = time.monotonic() + 120
    while not last.is_file() and process.is_alive() and time.monotonic() < patience:
        time.sleep(0.002)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert torch.load(last, weights_only=True)["global_step"] < 80
    resumed = train(replace(broken, output=str(tmp_path / "resumed"), resume=str(last)))
    unbroken = train(replace(broken, output=str(tmp_path / "unbroken")))
    assert (resumed.weights_hash, resumed.figures) == (unbroken.weights_hash, unbroken.figures)
