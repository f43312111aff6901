from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gfm.nn.checkpoint import load_model
from gfm.nn.model import ModelSettings
from gfm.train import module as module_module
from gfm.train.module import RetrievalModule, Row
from gfm.train.run import TrainResult, check_accelerator, new_module, train
from gfm.train.settings import OptimizerSettings, TrainerSettings, TrainSettings
from gfm.types import GfmError

Settings = Callable[..., TrainSettings]


class StopError(Exception):
    """Stands for a machine that goes down."""


def broken_off(settings: TrainSettings, monkeypatch: pytest.MonkeyPatch, at: int) -> Path:
    """last.ckpt of a run that dies in step ``at``."""
    step = RetrievalModule.training_step

    def dying(self: RetrievalModule, batch: object, batch_idx: int) -> torch.Tensor:
        if self.global_step == at:
            raise StopError
        return step(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(RetrievalModule, "training_step", dying)
        with pytest.raises(StopError):
            train(settings)
    return Path(settings.output) / "last.ckpt"


@pytest.fixture
def unbroken(make_settings: Settings) -> TrainResult:
    return train(make_settings())


# --- where a run begins


def test_a_run_begins_with_the_weights_of_a_checkpoint(make_settings: Settings, unbroken: TrainResult) -> None:
    begun = new_module(make_settings(init_from=str(unbroken.checkpoint), seed=5))
    expected, _ = load_model(unbroken.checkpoint)
    for found in (begun.model, begun.average.module):
        for name, weight in expected.state_dict().items():
            torch.testing.assert_close(found.state_dict()[name], weight, rtol=0, atol=0)


def test_a_checkpoint_of_another_shape_is_no_beginning(make_settings: Settings) -> None:
    settings = make_settings(init_from="shipped")
    with pytest.raises(GfmError, match=r"init_from=shipped: expected width \d+, found 64; set model.width"):
        new_module(replace(settings, model=replace(settings.model, width=8)))


# --- what a run leaves


def test_the_exported_checkpoint_loads_and_tells_how_it_was_made(unbroken: TrainResult, tmp_path: Path) -> None:
    model, config = load_model(unbroken.checkpoint)
    assert not model.training
    assert config["model"] == model.settings.as_json()
    assert config["candidates"]["seeds"] == 64
    assert config["training"]["optimizer"]["ema"] == 0.5
    assert config["training"]["seed"] == 0
    (data,) = config["data"]
    assert (data["name"], data["train"], data["validation"], data["encoder"]) == ("mills", 9, 3, "hashing:64")
    validation = config["validation"]
    assert validation.pop("calibration").keys() == {"entity", "passage", "fact"}
    assert validation == {"monitor": unbroken.score, "step": unbroken.step, "sets": unbroken.figures}
    assert config["versions"]["torch"] == torch.__version__
    assert str(tmp_path) not in json.dumps(config)
    assert "best validation" in unbroken.text()


def test_only_names_without_an_equals_sign(unbroken: TrainResult) -> None:
    files = sorted(str(p.relative_to(unbroken.checkpoint.parent)) for p in unbroken.checkpoint.parent.rglob("*.*"))
    assert files == ["checkpoint/config.json", "checkpoint/model.safetensors", "last.ckpt", *files[3:]]
    assert all(file.startswith("log/") and "=" not in file for file in files[3:])


def test_the_log_has_the_steps_and_the_validations(unbroken: TrainResult) -> None:
    header, *rows = (unbroken.checkpoint.parent / "log" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    names = header.split(",")
    for name in ("train/loss", "train/gold_rate", "train/grad_norm", "train/lr", "val/mills/recall@2", "val/monitor"):
        assert name in names
    table = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    assert [row["step"] for row in table if row["train/loss"]] == ["1", "2", "3", "4", "5", "6"]
    assert [row["step"] for row in table if row["val/monitor"]] == ["2", "4", "6"]


def test_a_checkpoint_opens_with_the_defaults_of_torch(unbroken: TrainResult) -> None:
    found = torch.load(unbroken.last, weights_only=True)
    assert found["global_step"] == 6
    assert type(found["hyper_parameters"]) is dict
    assert RetrievalModule.load_from_checkpoint(unbroken.last, weights_only=True).set_names == ["mills"]


def test_the_last_step_is_validated_where_the_stretches_do_not_fit(make_settings: Settings) -> None:
    run = train(make_settings(trainer=TrainerSettings(max_steps=5, val_every=3, log_every=1)))
    lines = (run.checkpoint.parent / "log" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    step, figure = (lines[0].split(",").index(name) for name in ("step", "val/monitor"))
    assert [line.split(",")[step] for line in lines[1:] if line.split(",")[figure]] == ["3", "5"]


# --- the same again


def test_equal_seeds_give_equal_weights(make_settings: Settings, unbroken: TrainResult, tmp_path: Path) -> None:
    torch.rand(7)
    again = train(make_settings(output=str(tmp_path / "again")))
    assert again.weights_hash == unbroken.weights_hash
    assert again.figures == unbroken.figures
    assert (again.checkpoint / "config.json").read_bytes() == (unbroken.checkpoint / "config.json").read_bytes()
    assert train(make_settings(output=str(tmp_path / "other"), seed=1)).weights_hash != unbroken.weights_hash


def test_a_run_leaves_threads_and_determinism_as_they_were(make_settings: Settings) -> None:
    threads = torch.get_num_threads()
    train(make_settings(trainer=TrainerSettings(max_steps=1, val_every=1, log_every=1, threads=1)))
    assert torch.get_num_threads() == threads
    assert torch.are_deterministic_algorithms_enabled()


# --- resume


@pytest.mark.parametrize(("at", "val_every"), [(3, 2), (4, 2), (4, 4), (5, 4), (2, 1)])
def test_a_resumed_run_gives_the_weights_of_an_unbroken_one(
    make_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, val_every: int
) -> None:
    loop = TrainerSettings(max_steps=6, val_every=val_every, log_every=1)
    unbroken = train(make_settings(trainer=loop))
    last = broken_off(make_settings(output=str(tmp_path / "broken"), trainer=loop), monkeypatch, at)
    odd = last.with_name("step=2 #1.ckpt")
    last.rename(odd)
    resumed = train(make_settings(output=str(tmp_path / "resumed"), resume=str(odd), trainer=loop))
    whole, again = (torch.load(run.last, weights_only=True)["state_dict"] for run in (unbroken, resumed))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert (resumed.weights_hash, resumed.step) == (unbroken.weights_hash, unbroken.step)


def test_the_best_of_the_first_part_is_kept(
    make_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = broken_off(make_settings(output=str(tmp_path / "broken")), monkeypatch, 3)
    state = torch.load(last, weights_only=True)
    state["callbacks"]["Best"]["score"] = 2.0  # better than any figure can be
    torch.save(state, last)
    resumed = train(make_settings(output=str(tmp_path / "resumed"), resume=str(last)))
    assert (resumed.score, resumed.step) == (2.0, 2)


def test_a_run_resumed_in_its_own_folder_keeps_the_first_log(
    make_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = broken_off(make_settings(), monkeypatch, 3)
    log = last.parent / "log" / "metrics.csv"
    before = log.read_bytes()
    train(make_settings(resume=str(last)))
    assert log.read_bytes() == before
    rows = (last.parent / "log-2" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    step = rows[0].split(",").index("step")
    assert [row.split(",")[step] for row in rows[1:]] == ["3", "4", "4", "5", "6", "6"]


def test_a_finished_run_is_only_exported_again(make_settings: Settings, unbroken: TrainResult, tmp_path: Path) -> None:
    again = train(make_settings(output=str(tmp_path / "again"), resume=str(unbroken.last)))
    assert (again.weights_hash, again.figures) == (unbroken.weights_hash, unbroken.figures)


def test_what_cannot_be_resumed(make_settings: Settings, unbroken: TrainResult, tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"resume: expected a checkpoint at .*nowhere\.ckpt, found no such file"):
        train(make_settings(resume=str(tmp_path / "nowhere.ckpt")))
    (tmp_path / "text.ckpt").write_text("no checkpoint", encoding="utf-8")
    with pytest.raises(GfmError, match=r"resume: expected a last\.ckpt of train\.py at"):
        train(make_settings(resume=str(tmp_path / "text.ckpt")))
    longer = TrainerSettings(max_steps=8, val_every=2)
    with pytest.raises(GfmError, match=r"max_steps was 6, now 8"):
        train(make_settings(resume=str(unbroken.last), trainer=longer))
    model = replace(make_settings().model, width=8)
    with pytest.raises(GfmError, match=r"other settings; model was"):
        train(make_settings(resume=str(unbroken.last), model=model))


# --- figures that are not finite


def test_a_validation_that_is_not_finite_is_reported_and_never_exported(
    make_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def figures(*_: object) -> Row:
        calls.append(1)
        return Row(*([math.nan] * 3 if 3 < len(calls) <= 6 else [0.5 - len(calls) / 100] * 3))

    monkeypatch.setattr(module_module, "document_figures", figures)
    run = train(make_settings())
    assert run.step == 2
    assert run.warnings == ["the validation figures at steps [4] were not finite and cannot be the best"]
    assert "warning: the validation figures" in run.text()


def test_no_finite_validation_at_all_is_an_error(make_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_module, "document_figures", lambda *_: Row(math.nan, math.nan, math.nan))
    settings = make_settings()
    with pytest.raises(GfmError, match=r"expected a validation with finite figures, found none \(steps \[2, 4, 6\]\)"):
        train(settings)
    assert not (Path(settings.output) / "checkpoint").exists()


# --- devices, loggers, shape


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_no_gpu(make_settings: Settings) -> None:
    with pytest.raises(GfmError, match=r"trainer\.accelerator=gpu: torch finds no CUDA device here; use .*cpu or auto"):
        train(make_settings(trainer=TrainerSettings(accelerator="gpu")))


def test_tensorboard_and_another_shape(make_settings: Settings) -> None:
    pytest.importorskip("tensorboard")
    settings = make_settings(
        trainer=TrainerSettings(max_steps=1, val_every=1, log_every=1, logger="tensorboard", accelerator="auto"),
        optimizer=OptimizerSettings(ema=0.0, input_dropout=0.0),
    )
    model: ModelSettings = replace(settings.model, width=8, rounds=1)
    run = train(replace(settings, model=model))
    assert load_model(run.checkpoint)[0].settings == model
    assert list((run.checkpoint.parent / "log").glob("events.*"))


# --- precision


def test_mixed_precision_trains(make_settings: Settings) -> None:
    loop = TrainerSettings(max_steps=4, val_every=2, log_every=1, precision="bf16-mixed")
    weights = load_file(train(make_settings(trainer=loop)).checkpoint / "model.safetensors")
    assert all(value.dtype == torch.float32 and bool(torch.isfinite(value).all()) for value in weights.values())


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks what happens without a GPU")
def test_what_needs_a_gpu_is_refused_without_one() -> None:
    with pytest.raises(GfmError, match="torch finds no CUDA device here"):
        check_accelerator(TrainerSettings(accelerator="gpu"))
    with pytest.raises(GfmError, match=r"trainer\.precision=16-mixed: expected a GPU, found none"):
        check_accelerator(TrainerSettings(precision="16-mixed"))
    assert check_accelerator(TrainerSettings(accelerator="auto", devices=2)) == "cpu"
