"""What a comparison of retrievers is made of, and how its YAML file becomes that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from gfm.resources import config_folder, demo_folder
from gfm.retrievers import NAMES
from gfm.text.encoder import DEFAULT_ENCODER
from gfm.types import GfmError

ALL, DEMO = "all", "demo"
_TABLES = Path("experiment") / "bench"  # below the configurations: one file a published table
_LABEL = re.compile(r"[\w .+=-]{1,60}")
_CHECKPOINT = "config.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A retriever of a comparison.

    Attributes:
        label: Its name in tables and files.
        settings: ``name`` and the settings of that retriever.
    """

    label: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """A comparison.

    Attributes:
        data: Folders in BEIR layout, at least one.
        retrievers: At least one; see `entries`.
        work: Folder of the indexes, which are built where they are missing, and of their cache.
        out: Folder of the results.
        split: Name of the qrels file of every set; may be left out where there is one.
        limit: Most questions of a set, drawn by ``seed``.
        seed: Of that draw, the intervals and the tests.
        encoder: See `load_encoder`.
        extractor: See `GraphIndex.build`.
        max_tokens: Budget of a context.
        pictures: Draw pictures too (needs matplotlib).
        apart: Measure each retriever in a process of its own, which tells its peak memory.
    """

    data: tuple[str, ...]
    retrievers: tuple[Entry, ...]
    work: str = "runs"
    out: str = "bench"
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    encoder: str = DEFAULT_ENCODER
    extractor: str = "spacy"
    max_tokens: int = 2000
    pictures: bool = True
    apart: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not self.data:
            raise GfmError("bench: expected folders with question sets, found none; name them: gfm bench FOLDER …")
        for name, least, optional in (("limit", 1, True), ("seed", 0, False), ("max_tokens", 1, False)):
            _number(name, getattr(self, name), least, optional)
        for name in ("work", "out", "encoder", "extractor", "split"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "split" and value is None):
                raise GfmError(f"bench: {name}: expected text, found {value!r}")
        for name in ("pictures", "apart"):
            if not isinstance(getattr(self, name), bool):
                raise GfmError(f"bench: {name}: expected true or false, found {getattr(self, name)!r}")


def bench_settings(given: Mapping[str, Any], config: str | Path | None = None) -> BenchSettings:
    """Settings from what was given, then a file, then the defaults.

    Args:
        given: By name; None counts as not given. Beside the attributes of `BenchSettings`: ``root``, a folder above the
            sets of ``data``, and ``checkpoint``, a network for the entry ``gfm``. The set ``demo`` is the demo data.
        config: A YAML file of the same names, or the name of one in configs/experiment/bench/.

    Raises:
        GfmError: No such file, an unknown name, or a value that cannot be meant.
    """
    row = dict(_read(_config_file(config)) if config is not None else {})
    row |= {name: value for name, value in given.items() if value is not None}
    known = {f.name for f in fields(BenchSettings)} | {"root", "checkpoint"}
    if unknown := sorted(set(row) - known):
        raise GfmError(f"{config}: {unknown[0]}: no such setting; expected some of {', '.join(sorted(known))}")
    root, checkpoint = row.pop("root", None), row.pop("checkpoint", None)
    data = row.pop("data", ())
    if isinstance(data, str) or not isinstance(data, Sequence):
        raise GfmError(f"bench: data: expected a list of folders, found {data!r}")
    chosen = entries(row.pop("retrievers", ALL), checkpoint)
    if root is not None:
        data = [Path(str(root)) / str(folder) for folder in data]
    folders = tuple(str(demo_folder() if folder == DEMO else folder) for folder in data)
    return BenchSettings(data=folders, retrievers=tuple(chosen), **row)


def entries(chosen: str | Sequence[Any], checkpoint: str | None = None) -> list[Entry]:
    """Retrievers by name.

    Args:
        chosen: ``all``; or names with commas between them; or a list. Each is one of `gfm.retrievers.NAMES`, with the
            settings of configs/retriever/NAME.yaml; or a YAML file of that form; or a folder with a trained network;
            or a mapping with ``name``, the settings to change, and a ``label`` of its own.
        checkpoint: Folder of a network for the one labelled ``gfm``.

    Raises:
        GfmError: None of these, none at all, or two of one label.
    """
    if isinstance(chosen, str):
        chosen = list(NAMES) if chosen == ALL else [part.strip() for part in chosen.split(",") if part.strip()]
    out = [_entry(item) for item in chosen]
    if not out:
        raise GfmError(f"bench: retrievers: expected some of {', '.join(NAMES)}, found none")
    for i, entry in enumerate(out):
        if any(file_name(entry.label) == file_name(other.label) for other in out[:i]):
            raise GfmError(f"bench: two retrievers are called {entry.label!r}; give one of them another label")
    return out if checkpoint is None else _with_checkpoint(out, checkpoint)


def file_name(label: str) -> str:
    """The label as part of a file's name, equal on file systems that do not tell capital letters from small ones."""
    return label.replace(" ", "_").casefold()


def _entry(item: Any) -> Entry:
    if isinstance(item, Mapping):
        row = dict(item)
        name = row.get("name")
        label = row.pop("label", name)
        settings = {**_defaults(str(name)), **row}
    else:
        label, settings = _named(str(item))
    if settings.get("name") not in NAMES:
        raise GfmError(
            f"bench: retriever {item!r}: expected one of {', '.join(NAMES)}, a YAML file with such a name, or a folder "
            "with a trained network"
        )
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise GfmError(f"bench: label {label!r}: expected up to 60 letters, digits, spaces and . + = _ -")
    return Entry(label, settings)


def _named(item: str) -> tuple[str, dict[str, Any]]:
    path = Path(item)
    if item not in NAMES and path.suffix in {".yaml", ".yml"}:
        return path.stem, _read(path)
    if item not in NAMES and (path / _CHECKPOINT).is_file():
        parts = path.absolute().parts
        label = parts[-2] if parts[-1] == "checkpoint" else parts[-1]
        return label, {**_defaults("gfm"), "path": item}
    return item, _defaults(item)


def _defaults(name: str) -> dict[str, Any]:
    """The settings of configs/retriever/NAME.yaml, or the name alone where there is no such file."""
    path = config_folder() / "retriever" / f"{name}.yaml"
    return _read(path) if name in NAMES and path.is_file() else {"name": name}


def _with_checkpoint(chosen: Sequence[Entry], checkpoint: str) -> list[Entry]:
    if not any(entry.label == "gfm" for entry in chosen):
        raise GfmError("bench: checkpoint: expected gfm among the retrievers, found none; add it or leave it out")
    return [Entry(e.label, {**e.settings, "path": checkpoint} if e.label == "gfm" else e.settings) for e in chosen]


def _config_file(config: str | Path) -> Path:
    path = Path(config)
    named = config_folder() / _TABLES / f"{config}.yaml"
    if path.is_file() or not named.is_file():
        return path
    return named


def _read(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping."""
    try:
        value = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except OSError as error:
        known = ", ".join(sorted(p.stem for p in (config_folder() / _TABLES).glob("*.yaml")))
        raise GfmError(
            f"{path}: expected a YAML file; {error.strerror}. These names are known to --config: {known}"
        ) from error
    except (YAMLError, OmegaConfBaseException) as error:
        raise GfmError(f"{path}: expected a YAML file of names and values, found: {error}") from error
    if not isinstance(value, dict):
        raise GfmError(f"{path}: expected a YAML file of names and values, found a list")
    return {str(name): item for name, item in value.items()}


def _number(name: str, value: Any, least: int, optional: bool) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise GfmError(f"bench: {name}: expected a whole number of {least} or more, found {value!r}")
