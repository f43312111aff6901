"""A training run from settings to an exported checkpoint."""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger

from gfm import __version__
from gfm.index.store import file_hash
from gfm.nn.checkpoint import WEIGHTS, load_model, save_model
from gfm.nn.model import GraphRetrieverModel
from gfm.progress import watched
from gfm.train.calibrate import calibrate
from gfm.train.callbacks import Best, FlatLoss
from gfm.train.data import LoadedSet, SubgraphData
from gfm.train.module import RetrievalModule
from gfm.train.processes import launched, together
from gfm.train.settings import TrainerSettings, TrainSettings
from gfm.types import GfmError

log = logging.getLogger(__name__)

# What Lightning warns of and this loop means.
_HARMLESS = (
    "does not have many workers",  # batches are cut from memory: workers would only cost
    "is smaller than the logging interval",
    "exists and is not empty",  # a run that is resumed in its own folder
    "ended before the epoch ended",  # the order of questions is a function of the step
    "The dirpath has changed",  # or in another: the best weights travel with the callback
    "`isinstance.treespec, LeafSpec.` is deprecated",  # Lightning itself
    "It is recommended to use `self.log",  # the figures are gathered before they are logged
    "find_unused_parameters=True was specified",  # which parameters get no gradient depends on the batch
)
_PACKAGES = ("torch", "torch-geometric", "lightning", "numpy")


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a run made.

    Attributes:
        checkpoint: Folder with the best weights, for `load_model`.
        last: The last.ckpt to resume from.
        weights_hash: SHA-256 of the exported weights.
        score: Monitor of the best validation.
        step: Steps done by then.
        figures: Its figures by set.
        warnings: What a person should know of the run.
        seconds: Wall time of the training itself.
    """

    checkpoint: Path
    last: Path
    weights_hash: str
    score: float
    step: int
    figures: dict[str, dict[str, float]]
    warnings: list[str]
    seconds: float

    def text(self) -> str:
        """A report for a person."""
        lines = [f"best validation: {self.score:.4f} at step {self.step}, {self.seconds:.0f} s"]
        for name, row in self.figures.items():
            lines.append(f"  {name}: " + ", ".join(f"{figure} {value:.4f}" for figure, value in row.items()))
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(
            [*lines, f"checkpoint: {self.checkpoint} (sha256 {self.weights_hash[:16]})", f"resume: {self.last}"]
        )


def train(settings: TrainSettings) -> TrainResult:
    """Train, and export the best averaged weights to ``output/checkpoint``.

    The same settings give the same weights on a CPU at the same number of threads; a resumed run gives those of an
    unbroken one. On a GPU sums are not ordered, and runs of one seed differ: report the mean over seeds there. Several
    processes (``trainer.devices``) share each batch; their sums and dropouts differ from those of one.

    Raises:
        GfmError: Bad data or settings, a checkpoint that cannot be resumed, or no validation with a finite figure.
    """
    if settings.trainer.devices > 1 and not launched():
        check_accelerator(settings.trainer)
        return together(train, settings, settings.trainer.devices)
    resume = Path(settings.resume).absolute() if settings.resume else None
    if resume:
        check_resume(resume, settings)
    data = SubgraphData(settings)
    best, flat = Best(), FlatLoss()
    output = Path(settings.output).absolute()
    last = ModelCheckpoint(
        output, filename="last", save_top_k=1, save_on_train_epoch_end=True, enable_version_counter=False
    )
    with seeded(settings):
        module = new_module(settings)
        trainer = make_trainer(settings.trainer, settings.optimizer.clip, output, [best, flat, last])
        start = time.perf_counter()
        trainer.fit(module, datamodule=data, ckpt_path=str(resume) if resume else None)
        seconds = time.perf_counter() - start
    if not best.weights:
        raise GfmError(
            f"expected a validation with finite figures, found none (steps {best.rejected}); lower optimizer.lr, now "
            f"{settings.optimizer.lr:g}, and try the data with sanity=true"
        )
    folder = output / "checkpoint"
    if trainer.is_global_zero:
        export(folder, settings, best, data.loaded)
    trainer.strategy.barrier()
    told = [flat.warning] if flat.warning else []
    if best.rejected:
        told.append(f"the validation figures at steps {best.rejected} were not finite and cannot be the best")
    digest = file_hash(folder / WEIGHTS)
    return TrainResult(folder, output / "last.ckpt", digest, best.score, best.step, best.figures, told, seconds)


def new_module(settings: TrainSettings) -> RetrievalModule:
    """The module of a run, with first weights drawn from its seed or read from a checkpoint.

    Raises:
        GfmError: The checkpoint cannot be read, or is of another shape.
    """
    names = [s.name for s in settings.data.sets]
    torch.manual_seed(settings.seed)
    module = RetrievalModule.of(
        settings.model, settings.optimizer, names, settings.trainer.max_steps, settings.seed, settings.groups_left_out
    )
    if settings.init_from:
        model, _ = load_model(None if settings.init_from == "shipped" else Path(settings.init_from))
        for name in ("node_inputs", "edge_inputs", "width", "edge_width", "rounds"):
            wanted, found = getattr(settings.model, name), getattr(model.settings, name)
            if wanted != found:
                raise GfmError(
                    f"init_from={settings.init_from}: expected {name} {wanted}, found {found}; set "
                    f"model.{name} to that, or start from another checkpoint"
                )
        module.start_from(model)
    return module


@contextmanager
def seeded(settings: TrainSettings) -> Iterator[None]:
    """Seeds, threads and determinism for a run; threads and determinism are put back afterwards."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    L.seed_everything(settings.seed, verbose=False)
    torch.set_num_threads(settings.trainer.threads or max(1, threads // settings.trainer.devices))
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in logs]
    for logger in logs:
        logger.setLevel(logging.WARNING)  # hardware that is not used, and advertisements
    try:
        with warnings.catch_warnings():
            for message in _HARMLESS:
                warnings.filterwarnings("ignore", f".*{message}")
            yield
    finally:
        for logger, level in zip(logs, levels, strict=True):
            logger.setLevel(level)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)


def make_trainer(
    settings: TrainerSettings, clip: float, output: Path | None, callbacks: Sequence[L.Callback], **more: Any
) -> L.Trainer:
    """The Lightning trainer of a run; without an ``output`` it logs and keeps nothing.

    Raises:
        GfmError: What is asked for is not here, or the logger is not installed.
    """
    accelerator = check_accelerator(settings)
    if settings.accelerator == "auto":
        log.info("trainer.accelerator=auto: training on the %s", accelerator)
    return L.Trainer(
        accelerator=accelerator,
        devices=settings.devices if launched() else 1,
        # A batch in which nothing has gold entities or facts leaves their heads without a gradient.
        strategy="ddp_find_unused_parameters_true" if launched() else "auto",
        precision=settings.precision,  # type: ignore[arg-type]
        max_steps=settings.max_steps,
        max_epochs=-1,
        reload_dataloaders_every_n_epochs=1,  # an epoch is the stretch between two validations
        num_sanity_val_steps=0,
        gradient_clip_val=clip,
        deterministic=True if accelerator == "cpu" else "warn",
        logger=_logger(settings.logger, output) if output else False,
        log_every_n_steps=settings.log_every,
        enable_checkpointing=output is not None,
        enable_progress_bar=watched(),
        enable_model_summary=False,
        callbacks=list(callbacks),
        use_distributed_sampler=False,
        default_root_dir=output,
        **more,
    )


def check_accelerator(settings: TrainerSettings) -> str:
    """The accelerator, cpu or gpu.

    Raises:
        GfmError: GPUs are asked for and there are none, or too few.
    """
    found = torch.cuda.device_count()
    if settings.accelerator == "gpu" and not found:
        raise GfmError("trainer.accelerator=gpu: torch finds no CUDA device here; use trainer.accelerator=cpu or auto")
    accelerator = "gpu" if settings.accelerator != "cpu" and found else "cpu"
    if accelerator == "gpu" and found < settings.devices:
        raise GfmError(f"trainer.devices={settings.devices}: torch finds {found} CUDA devices; ask for at most as many")
    if accelerator == "cpu" and settings.precision == "16-mixed":
        raise GfmError("trainer.precision=16-mixed: expected a GPU, found none; use bf16-mixed or 32-true")
    return accelerator


def check_resume(path: Path, settings: TrainSettings) -> None:
    """Refuse a checkpoint of another run before anything is built.

    Raises:
        GfmError: No such file, not a checkpoint of train.py, or its settings are not those of this run.
    """
    if not path.is_file():
        raise GfmError(
            f"resume: expected a checkpoint at {path}, found no such file; a run keeps its own as last.ckpt in its "
            "folder outputs/DATE/TIME"
        )
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)["hyper_parameters"]
    except Exception as error:  # torch raises nearly anything for bytes that are no checkpoint
        raise GfmError(f"resume: expected a last.ckpt of train.py at {path}, found: {error}") from error
    expected = dict(new_module(settings).hparams)
    differing = sorted(key for key in expected if found.get(key) != expected[key])
    if differing:
        key = differing[0]
        raise GfmError(
            f"resume: {path} is of a run with other settings; {key} was {found.get(key)}, now {expected[key]}. Give "
            "the settings of that run again, or leave out resume= to start anew"
        )


def export(folder: Path, settings: TrainSettings, best: Best, loaded: Sequence[LoadedSet]) -> None:
    """Write the best weights, and a config that tells how they were made and names no path of the machine."""
    model = GraphRetrieverModel(settings.model)
    model.load_state_dict(best.weights)
    calibration = calibrate(model, [question for s in loaded for question in s.validation])
    data = settings.data
    sets = [
        {
            "name": s.name,
            "split": wanted.split,
            "weight": wanted.weight,
            "limit": wanted.limit,
            "one_hop": wanted.one_hop,
            "made": wanted.made,
            "answers": wanted.answers is not None,
            "candidates": wanted.candidates,
            "train": len(s.train),
            "validation": len(s.validation),
            "encoder": s.encoder,
            "extractor": wanted.extractor or data.extractor,
            "triples": wanted.triples is not None,
            "index": s.generation,
        }
        for wanted, s in zip(data.sets, loaded, strict=True)
    ]
    how = {k: getattr(data, k) for k in ("val_share", "split_seed", "batch_size")}
    save_model(
        model,
        folder,
        candidates=asdict(settings.candidates),
        training={
            **how,
            "seed": settings.seed,
            "leave_out": settings.leave_out,
            "optimizer": asdict(settings.optimizer),
            "augment": asdict(settings.augment),
            "trainer": {**asdict(settings.trainer), "threads": settings.trainer.threads or torch.get_num_threads()},
        },
        data=sets,
        validation={"monitor": best.score, "step": best.step, "sets": best.figures, "calibration": calibration},
        versions={"gfm": __version__, **{p: importlib.metadata.version(p) for p in _PACKAGES}},
    )


def _logger(name: str, output: Path) -> Logger:
    # A run that is resumed in its own folder must not write over the log of its first part.
    folder = next(f for i in itertools.count(1) if not (output / (f := f"log-{i}" if i > 1 else "log")).exists())
    if name == "csv":
        return CSVLogger(output, name="", version=folder)
    try:
        return TensorBoardLogger(output, name="", version=folder)
    except ModuleNotFoundError as error:
        raise GfmError(
            "trainer.logger=tensorboard: it is not installed; pip install tensorboard, or use csv"
        ) from error
