"""The command that trains: ``gfm train``; ``python train.py`` in a checkout is the same door."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from gfm.cli.options import AsJson
from gfm.doors import hydra_door, say, say_json

_EXAMPLES = (
    "\b\nExamples:\n  gfm train experiment=adapt data.index=my_index\n"
    "  gfm train data=multihop data.root=sets seed=1\n"
    "  gfm train --cfg job"
)


@hydra_door("train", plain=("resume", "init_from", "work_dir", "data.root", "data.index", "index.encoder"))
def train_door(config: Any) -> None:
    """Compose, call, report."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    # Here, not above: help and a mistyped override then answer at once, before torch is loaded.
    from gfm.train.run import train
    from gfm.train.sanity import sanity
    from gfm.train.settings import from_config

    composed: Any = OmegaConf.to_container(config, resolve=True)
    settings = from_config(composed, HydraConfig.get().runtime.output_dir)
    result = (sanity if config.sanity else train)(settings)
    if config.json:
        say_json({name: value if _plain(value) else str(value) for name, value in asdict(result).items()})
    else:
        say(result.text())


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | list | dict | None)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "train",
        short_help="Train the network, or adapt it to an index.",
        epilog=_EXAMPLES,
        context_settings={"ignore_unknown_options": True},  # Hydra has flags of its own
    )(train)


def train(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...", help="Settings to change, and Hydra's flags, such as -m or --cfg job."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train the network on question sets, or adapt the shipped one to an index; docs/training.md tells how.

    What a run makes goes below outputs/ in the folder that you are in. --cfg job only shows the settings.
    """
    train_door([*(overrides or ()), *(["json=true"] if as_json else ())])
