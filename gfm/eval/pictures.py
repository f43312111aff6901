"""Pictures of a report: quality by hops, and quality against time. matplotlib is loaded when they are asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfm.eval.figures import CHOSEN_BY
from gfm.types import GfmError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vP*Xh<>d"
_DPI = 150


def check_installed() -> None:
    """Refuse to start where no picture can be drawn.

    Raises:
        GfmError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise GfmError(
            "pictures need the package matplotlib, which is not installed; install it with: pip install matplotlib, or "
            "leave the pictures out: --no-pictures"
        )


def draw(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write PNG pictures, two a set; one where all its questions have the same hops.

    Args:
        report: Of `gfm.eval.bench`.
        folder: Where to; made where it is missing.

    Returns:
        Their paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, of in report["sets"].items():
        if len(of["groups"]["hops"]) > 1:
            written.append(_save(_by_hops(name, of), folder / f"{name}-hops.png"))
        written.append(_save(_against_time(name, of), folder / f"{name}-time.png"))
    return written


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})  # the same report, the same bytes
    return path


def _axes(title: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_ylabel(f"{CHOSEN_BY}, %")
    axes.grid(alpha=0.3)
    return figure, axes


def _by_hops(name: str, of: Mapping[str, Any]) -> Figure:
    """One line a retriever, with the interval of each point."""
    counts = of["groups"]["hops"]
    figure, axes = _axes(f"{name}: {CHOSEN_BY} by hops")
    labels = list(of["retrievers"])
    for number, (label, row) in enumerate(of["retrievers"].items()):
        points = [row["by"]["hops"][hops][CHOSEN_BY] for hops in counts]
        mean = [100 * p["mean"] for p in points]
        # An interval of resampled means need not hold the mean itself, to the last bit.
        low = [max(0.0, 100 * (p["mean"] - (p["mean"] if p["low"] is None else p["low"]))) for p in points]
        high = [max(0.0, 100 * ((p["mean"] if p["high"] is None else p["high"]) - p["mean"])) for p in points]
        shift = 0.3 * ((number + 0.5) / len(labels) - 0.5)
        axes.errorbar(
            [i + shift for i in range(len(counts))],
            mean,
            yerr=[low, high],
            marker=_MARKERS[number % len(_MARKERS)],
            capsize=2,
            label=label,
        )
    axes.set_xticks(range(len(counts)), [f"{hops}\n({n} questions)" for hops, n in counts.items()])
    axes.set_xlabel("hops")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _against_time(name: str, of: Mapping[str, Any]) -> Figure:
    """One point a retriever, at its median time of a question."""
    figure, axes = _axes(f"{name}: {CHOSEN_BY} against the time of a question")
    for number, (label, row) in enumerate(of["retrievers"].items()):
        point = row["quality"][CHOSEN_BY]
        axes.scatter(
            row["time"]["retrieval_ms"]["median"],
            100 * point["mean"],
            marker=_MARKERS[number % len(_MARKERS)],
            s=50,
            label=label,
        )
    axes.set_xscale("log")
    axes.set_xlabel("median milliseconds of retrieval, the encoding of the question left out (log)")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
