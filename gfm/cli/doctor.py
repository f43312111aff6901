"""The command that looks for troubles: doctor."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gfm.cli.options import AsJson
from gfm.doors import say, say_json

if TYPE_CHECKING:
    from gfm.doctor import Examination

_EXAMPLES = "\b\nExamples:\n  gfm doctor\n  gfm doctor my_index --json"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("doctor", short_help="Look for troubles, and say what mends them.", epilog=_EXAMPLES)
    def doctor(
        index_folder: Annotated[Path | None, typer.Argument(metavar="[INDEX]", help="Also look at this index.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Look at versions, devices, threads, encoders, extractors, the network, and an index, all offline.

        The exit status is 1 where something is wrong; each trouble comes with the command that mends it.
        """
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"  # read when the libraries load
        from gfm.doctor import examine

        found = examine(index_folder)
        if as_json:
            say_json(found.as_json())
        else:
            say("\n".join(_lines(found)))
        if found.wrong:
            raise typer.Exit(1)


def _lines(found: Examination) -> list[str]:
    lines = []
    for about, findings in groupby(found.findings, key=lambda finding: finding.about):
        lines.append(about)
        for finding in findings:
            lines.append(f"  {finding.state:<6}{finding.text}")
            if finding.mend:
                lines.append(f"        {finding.mend}")
    if found.card:
        lines.append("card")
        lines += [f"  {name.replace('_', ' ')}: {_value(value)}" for name, value in found.card.items()]
    wrong = found.wrong
    return [*lines, "", f"wrong: {wrong}" if wrong else "nothing is wrong"]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
