"""The settings of a training run as plain dataclasses, and how a composed configuration becomes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from gfm.nn.model import ModelSettings
from gfm.resources import demo_folder
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS
from gfm.retrieve.signals import CandidateSettings
from gfm.train.augment import AugmentSettings
from gfm.train.inputs import parse_groups
from gfm.types import GfmError

S = TypeVar("S")
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")


@dataclass(frozen=True, slots=True)
class SetSettings:
    """One question set.

    Attributes:
        name: A name, or several with "/" between them; names the set in reports and its folder among the indexes.
        path: Folder in BEIR layout; may be left out where ``index`` and ``made`` are given.
        index: Folder of its index; inside the work folder, and rebuilt when the corpus changes, unless given.
        encoder: That of its index, in place of the run's.
        extractor: That of its index, in place of the run's.
        split: Name of the qrels file; may be left out where there is one.
        triples: A triples.jsonl of given triples, see `GraphIndex.build`.
        weight: How often a question of it is seen in one pass over the data; 0.5 is every second pass.
        limit: Most questions of it, training and validation together.
        candidates: Of this set, in place of the run's, where its graph wants others, see `CandidateSettings`.
        answers: Questions whose answers are entities, over the graph in ``index``, see `read_answer_questions`, but for
            those that `held_out` keeps for measuring. The gold is entities: of passages and facts nothing is known.
        made: Questions made from the index itself, see `gfm.train.questions`; where there is no ``path``, all of them.
        one_hop: Most one-hop questions derived from the annotations of its training questions, see `gfm.train.derive`.
    """

    name: str
    path: str | None = None
    index: str | None = None
    encoder: str | None = None
    extractor: str | None = None
    split: str | None = None
    triples: str | None = None
    weight: float = 1.0
    limit: int | None = None
    one_hop: int = 0
    made: int = 0
    candidates: dict[str, int] | None = None
    answers: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that lead out of the work folder, and numbers that cannot be meant."""
        parts = self.name.split("/")
        if any(part in {"", ".", ".."} for part in parts) or "\\" in self.name:
            raise GfmError(f"data.sets: expected a name such as 2wiki or worlds/first, found {self.name!r}")
        _expect(0 < self.weight < 1000, f"set {self.name!r}: weight", "a number above 0 and below 1000", self.weight)
        _expect(self.limit is None or self.limit > 1, f"set {self.name!r}: limit", "2 or more", self.limit)
        _expect(self.one_hop >= 0, f"set {self.name!r}: one_hop", "0 or more", self.one_hop)
        _expect(self.made >= 0, f"set {self.name!r}: made", "0 or more", self.made)
        if self.answers and (self.path or not self.index or self.one_hop or self.made):
            raise GfmError(
                f"set {self.name!r}: answers: expected an index beside it, and no path, one_hop or made: "
                f"data.sets=[{{name:{self.name},index:INDEX,answers:FILE}}]"
            )
        if self.path is None and not (self.index and (self.made or self.answers)):
            raise GfmError(
                f"set {self.name!r}: expected the folder that holds it (data.root=FOLDER), or an index and how many "
                f"questions to make of it: data.sets=[{{name:{self.name},index:INDEX,made:2000}}]"
            )


@dataclass(frozen=True, slots=True)
class DataSettings:
    """What to train on.

    Attributes:
        sets: At least one.
        work_dir: Folder for indexes, the cache of embeddings, and subgraphs; shared by runs.
        encoder: See `load_encoder`.
        extractor: See `GraphIndex.build`.
        val_share: Share of each set's questions that are kept for validation.
        split_seed: Chooses which; apart from the seed of a run, so that runs with several seeds compare.
        batch_size: Questions in a step.
    """

    sets: tuple[SetSettings, ...]
    work_dir: str = "runs"
    encoder: str = "all-MiniLM-L6-v2"
    extractor: str = "spacy"
    val_share: float = 0.15
    split_seed: int = 0
    batch_size: int = 8

    def __post_init__(self) -> None:
        """Refuse no sets, sets of one name, and a set whose index would lie inside another's."""
        _expect(len(self.sets) > 0, "data.sets", "at least one set, as in data.sets=[2wiki]", "none")
        _expect(0 < self.val_share < 1, "data.val_share", "a share between 0 and 1", self.val_share)
        _expect(self.split_seed >= 0, "data.split_seed", "0 or more", self.split_seed)
        _expect(self.batch_size > 0, "data.batch_size", "1 or more", self.batch_size)
        names = [PurePosixPath(s.name) for s in self.sets]
        for i, name in enumerate(names):
            for other in names[i + 1 :]:
                if name == other or name in other.parents or other in name.parents:
                    raise GfmError(
                        f"data.sets: expected names of which none is the start of another, found {str(name)!r} and "
                        f"{str(other)!r}; rename one: data.sets=[{{name:NAME,path:FOLDER}}, …]"
                    )


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """How the weights change.

    Attributes:
        lr: Peak learning rate of the one-cycle schedule (Smith & Topin, 2018).
        weight_decay: Of AdamW.
        clip: Most norm of the gradient.
        input_dropout: Share of input columns that are zeroed, drawn anew for each question and step.
        ema: Decay of the running mean of the weights that is validated and exported; 0 is no mean.
    """

    lr: float = 2e-3
    weight_decay: float = 0.01
    clip: float = 1.0
    input_dropout: float = 0.1
    ema: float = 0.99

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant."""
        _expect(self.lr > 0, "optimizer.lr", "a number above 0", self.lr)
        _expect(self.weight_decay >= 0, "optimizer.weight_decay", "0 or more", self.weight_decay)
        _expect(self.clip > 0, "optimizer.clip", "a number above 0", self.clip)
        _expect(0 <= self.input_dropout < 1, "optimizer.input_dropout", "0 or more, below 1", self.input_dropout)
        _expect(0 <= self.ema < 1, "optimizer.ema", "0 or more, below 1", self.ema)


@dataclass(frozen=True, slots=True)
class TrainerSettings:
    """The loop.

    Attributes:
        max_steps: Steps of the whole run.
        val_every: Steps between validations; the last step is validated in any case.
        log_every: Steps between lines of the log file.
        logger: ``csv`` or ``tensorboard``.
        accelerator: ``cpu``, ``gpu``, or ``auto``: the GPU where there is one.
        devices: Processes that share each batch (DDP), each on a GPU of its own, or by gloo on the CPU.
        precision: Of the arithmetic, by Lightning's names: 32-true, bf16-mixed, or 16-mixed on a GPU.
        threads: Threads of torch in each process; its own choice, divided by ``devices``, unless given. Equal seeds
            give equal weights at an equal number of threads on one machine; another number splits sums elsewhere, and
            the last bits differ.
    """

    max_steps: int = 600
    val_every: int = 100
    log_every: int = 10
    logger: str = "csv"
    accelerator: str = "cpu"
    devices: int = 1
    precision: str = "32-true"
    threads: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers and names that cannot be meant."""
        for name in ("max_steps", "val_every", "log_every", "devices"):
            _expect(getattr(self, name) > 0, f"trainer.{name}", "1 or more", getattr(self, name))
        _expect(self.threads is None or self.threads > 0, "trainer.threads", "1 or more, or null", self.threads)
        _expect(self.logger in {"csv", "tensorboard"}, "trainer.logger", "csv or tensorboard", self.logger)
        _expect(self.accelerator in {"cpu", "gpu", "auto"}, "trainer.accelerator", "cpu, gpu or auto", self.accelerator)
        _expect(self.precision in PRECISIONS, "trainer.precision", ", ".join(PRECISIONS), self.precision)


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """A run.

    Attributes:
        data: See `DataSettings`.
        output: Folder of the run: log, last.ckpt, and the exported checkpoint.
        model: See `ModelSettings`.
        candidates: See `CandidateSettings`.
        optimizer: See `OptimizerSettings`.
        augment: See `AugmentSettings`.
        trainer: See `TrainerSettings`.
        leave_out: Groups of inputs that the network is not to see, ``+`` between them, see `gfm.train.inputs`.
        seed: Of the first weights, the order of questions, and every dropout.
        resume: A last.ckpt to go on from.
        init_from: Folder of a checkpoint whose weights are the first ones, or ``shipped``; drawn anew unless given.
    """

    data: DataSettings
    output: str
    model: ModelSettings = field(default_factory=lambda: ModelSettings(NODE_INPUTS, EDGE_INPUTS))
    candidates: CandidateSettings = field(default_factory=CandidateSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    leave_out: str | None = None
    seed: int = 0
    resume: str | None = None
    init_from: str | None = None

    def __post_init__(self) -> None:
        """Refuse a seed that torch refuses, groups that are none, and processes that would get no question."""
        _expect(0 <= self.seed < 2**31, "seed", "0 or more, below 2147483648", self.seed)
        parse_groups(self.leave_out)
        most = self.data.batch_size
        _expect(
            self.trainer.devices <= most, "trainer.devices", f"at most data.batch_size, {most}", self.trainer.devices
        )

    @property
    def groups_left_out(self) -> tuple[str, ...]:
        """The groups of ``leave_out``."""
        return parse_groups(self.leave_out)


def from_config(config: Mapping[str, Any], output: str | Path) -> TrainSettings:
    """Settings of a composed configuration.

    Args:
        config: Of configs/train.yaml, as plain dicts and lists.
        output: Folder of the run.

    Raises:
        GfmError: A setting is missing, unknown, or of the wrong type; the message names it.
    """
    data = dict(config["data"])
    root, sets = data.pop("root", None), data.pop("sets")
    index, made = data.pop("index", None), data.pop("made", 0)
    if made:
        if index is None:
            raise GfmError("data=self: expected an index to make questions of, found none; name one: data.index=INDEX")
        sets = [{"name": "self", "index": str(index), "made": made}]
    if not isinstance(sets, Sequence) or isinstance(sets, str):
        raise GfmError(f"data.sets: expected a list, as in data.sets=[2wiki,musique], found {sets!r}")
    chosen = tuple(_set(row, root) for row in sets)
    model = {"node_inputs": NODE_INPUTS, "edge_inputs": EDGE_INPUTS, **config["model"]}
    return TrainSettings(
        data=build(DataSettings, {**data, **config["index"], "sets": chosen, "work_dir": config["work_dir"]}, "data"),
        output=str(output),
        model=build(ModelSettings, model, "model"),
        candidates=build(CandidateSettings, config["candidates"], "candidates"),
        optimizer=build(OptimizerSettings, config["optimizer"], "optimizer"),
        augment=build(AugmentSettings, config["augment"], "augment"),
        trainer=build(TrainerSettings, config["trainer"], "trainer"),
        **_checked(
            {k: config[k] for k in ("leave_out", "seed", "resume", "init_from")}, get_type_hints(TrainSettings), ""
        ),
    )


def build(cls: type[S], row: Mapping[str, Any], where: str) -> S:
    """A settings dataclass of a mapping, every type checked; a whole number may stand for a float.

    Raises:
        GfmError: Unknown, missing or mistyped settings.
    """
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    if unknown := sorted(set(row) - names):
        raise GfmError(f"{where}.{unknown[0]}: no such setting; expected some of {', '.join(sorted(names))}")
    try:
        return cls(**_checked(row, get_type_hints(cls), where))
    except TypeError as error:  # a setting without a default is missing; types are checked before
        raise GfmError(f"{where}: a setting is missing: {error}") from error


def _set(row: Any, root: str | None) -> SetSettings:
    row = {"name": row} if isinstance(row, str) else row
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
        raise GfmError(f"data.sets: expected a name, or {{name:NAME,path:FOLDER,weight:1}}, found {row!r}")
    path = row.get("path")
    if path is None and root is not None and not row.get("answers"):
        path = str(Path(root) / row["name"])
    elif path is None and row["name"] == "demo":
        path = str(demo_folder())
    return build(SetSettings, {**row, "path": path}, f"set {row['name']!r}")


def _checked(row: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {name: _typed(value, hints[name], f"{where}.{name}".lstrip(".")) for name, value in row.items()}


def _typed(value: Any, hint: Any, where: str) -> Any:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if value is None and NoneType in kinds:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and float in kinds:
        return float(value)
    plain = [k for k in kinds if k in (int, float, str, bool)]
    if plain and (type(value) not in plain):
        names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
        expected = " or ".join(names[k] for k in plain) + (" or null" if NoneType in kinds else "")
        raise GfmError(f"{where}: expected {expected}, found {value!r}")
    return value


def _expect(holds: bool, where: str, expected: str, found: object) -> None:
    if not holds:
        raise GfmError(f"{where}: expected {expected}, found {found}")
