"""Checkpoints: weights as safetensors, settings as JSON; nothing that needs unpickling."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gfm.nn.model import GraphRetrieverModel, ModelSettings
from gfm.types import GfmError

WEIGHTS, CONFIG = "model.safetensors", "config.json"
SHIPPED = Path(__file__).parent.parent / "checkpoints" / "base"


def save_model(model: GraphRetrieverModel, folder: Path, **extra: Any) -> None:
    """Write ``config.json`` (settings, and ``extra`` such as the training's own settings) and the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model": model.settings.as_json(), **extra}
    text = json.dumps(config, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8", newline="\n")
    save_file({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}, folder / WEIGHTS)


def load_model(folder: Path | None = None) -> tuple[GraphRetrieverModel, dict[str, Any]]:
    """Load a checkpoint, in evaluation mode, and its config.

    Args:
        folder: A folder with ``config.json`` and ``model.safetensors``; the shipped one unless given.

    Raises:
        GfmError: A file is missing, damaged, or of another design.
    """
    folder = folder or SHIPPED
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise GfmError(
                f"{folder}: expected a checkpoint with {CONFIG} and {WEIGHTS}, found no {name}; train one with train.py"
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        rows = {k: tuple(v) if isinstance(v, list) else v for k, v in dict(config["model"]).items()}
        model = GraphRetrieverModel(_settings(rows, folder / CONFIG))
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise GfmError(
            f"{folder}: expected a checkpoint that this version reads, found: {type(error).__name__}: {error}; "
            "copy it again, or train one with train.py"
        ) from error
    return model.eval(), config


def _settings(rows: dict[str, Any], path: Path) -> ModelSettings:
    if unknown := sorted(set(rows) - {f.name for f in fields(ModelSettings)}):
        raise GfmError(
            f"{path}: unknown model settings {unknown}: made by another version of gfm; use that one, or train another "
            "with train.py"
        )
    return ModelSettings(**rows)
