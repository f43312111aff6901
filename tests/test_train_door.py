"""train.py as a person runs it: in a process of its own, from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gfm.nn.checkpoint import load_model

QUICK = (
    "data.sets=[{name:demo,limit:12}]",
    "data.val_share=0.25",
    "index.encoder=hashing:64",
    "index.extractor=none",
    "model.width=16",
    "trainer.max_steps=4",
    "trainer.val_every=2",
    "trainer.log_every=1",
)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all runs stand in; they share its work folder."""
    return tmp_path_factory.mktemp("elsewhere")


def door(repository: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run train.py."""
    command = [sys.executable, str(repository / "train.py"), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", env=environment, check=False
    )


@pytest.fixture(scope="module")
def first(repository: Path, elsewhere: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run, and its folder."""
    result = door(repository, elsewhere, *QUICK)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder,) = (elsewhere / "outputs").glob("*/*")
    return result, folder


@pytest.mark.slow
def test_a_run_leaves_one_folder_with_a_checkpoint_that_loads(
    first: tuple[subprocess.CompletedProcess[str], Path], elsewhere: Path
) -> None:
    result, folder = first
    assert sorted(path.name for path in elsewhere.iterdir()) == ["outputs", "runs"]
    assert {"checkpoint", "last.ckpt", "log", "train.log"} == {path.name for path in folder.iterdir()} - {".hydra"}
    model, config = load_model(folder / "checkpoint")
    assert model.settings.width == 16
    assert [(s["train"], s["validation"]) for s in config["data"]] == [(9, 3)]
    assert f"checkpoint: {folder / 'checkpoint'}" in result.stdout
    assert "step 4: val/monitor" in result.stderr


@pytest.mark.slow
def test_a_new_process_resumes_from_a_path_with_signs_of_hydras_grammar(
    first: tuple[subprocess.CompletedProcess[str], Path], repository: Path, elsewhere: Path
) -> None:
    _, folder = first
    odd = folder / "step=4 #1.ckpt"
    (folder / "last.ckpt").rename(odd)
    try:
        again = door(repository, elsewhere, *QUICK, f"resume={odd}", f"hydra.run.dir={folder.parent}/resumed")
    finally:
        odd.rename(folder / "last.ckpt")
    assert again.returncode == 0, again.stdout + again.stderr
    weights = "checkpoint/model.safetensors"
    assert (folder.parent / "resumed" / weights).read_bytes() == (folder / weights).read_bytes()


@pytest.mark.slow
def test_a_sweep_makes_one_folder_a_job(
    first: tuple[subprocess.CompletedProcess[str], Path], repository: Path, elsewhere: Path
) -> None:
    result = door(repository, elsewhere, "-m", *QUICK, "seed=1,2", f"hydra.sweep.dir={elsewhere}/outputs/sweep")
    assert result.returncode == 0, result.stdout + result.stderr
    jobs = sorted(path.parent for path in (elsewhere / "outputs" / "sweep").rglob("model.safetensors"))
    assert [job.relative_to(elsewhere / "outputs" / "sweep").parts for job in jobs] == [
        ("0", "checkpoint"),
        ("1", "checkpoint"),
    ]
    assert [load_model(job)[1]["training"]["seed"] for job in jobs] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("trainer.max_stepz=3",),
            "error: Could not override 'trainer.max_stepz' (Key 'max_stepz' is not in struct); --cfg",
        ),
        (
            ("data=nowhere",),
            "error: In 'train': Could not find 'data/nowhere' Available options in 'data': demo multihop self",
        ),
        (("+data.index.x=1",), "error: data.index: expected one value, as in data.index=…, found settings below it: x"),
        (("data=multihop", "data.root=nowhere"), "error: set '2wiki': expected a folder with corpus.jsonl"),
    ],
)
def test_mistakes_end_with_one_message(
    repository: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = door(repository, tmp_path, *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stdout + result.stderr


def test_the_last_checkpoint_opens_with_the_defaults_of_torch(
    first: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    assert torch.load(first[1] / "last.ckpt", weights_only=True)["global_step"] == 4
