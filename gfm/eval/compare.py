"""Two reports of one comparison: the same figures, or which differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gfm.types import GfmError

_SHOWN = 8
# What may differ between two runs of one comparison: times, and settings that touch no figure.
_TIMES = {"made", "command", "machine", "time", "encode_ms", "peak_memory_mb", "definitions"}
_TIMES |= {"work", "out", "pictures", "apart"}
_CAUSES = ("settings", "versions", "data", "weights")


def read_report(path: Path) -> dict[str, Any] | None:
    """An earlier report; None where there is none.

    Raises:
        GfmError: The file is something else.
    """
    if not path.is_file():
        return None
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        _ = report["made"], report["sets"]
    except (ValueError, KeyError, TypeError) as error:
        raise GfmError(
            f"{path}: expected the report of an earlier gfm bench, found something else; give another --out"
        ) from error
    found: dict[str, Any] = report
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What an earlier report says to a new one, a line each: first what was asked otherwise, then figures that differ.

    Times, memory and the machine are not compared.
    """
    old, new = dict(_leaves(before)), dict(_leaves(after))
    differing = [path for path in dict.fromkeys([*old, *new]) if old.get(path, _MISSING) != new.get(path, _MISSING)]
    # Figures are floats; a set or a retriever that only one report has is told once, by its settings.
    causes = [path for path in differing if any(part in _CAUSES for part in path)]
    causes.sort(key=lambda path: "retrievers" in path)  # a list that changed tells least by its parts
    numbers = [path for path in differing if path not in causes and path in old and path in new]
    when = before["made"]
    if not differing:
        return [f"the same figures as the run of {when}"]
    lines = [f"asked otherwise than in the run of {when}:"] if causes else []
    lines += _told(causes, old, new)
    if numbers:
        lines += [f"{len(numbers)} figures differ from those of the run of {when}:", *_told(numbers, old, new)]
    else:
        lines.append(f"the figures that both have are the same as in the run of {when}")
    return lines


_MISSING = "(none)"


def _told(paths: list[tuple[str, ...]], old: dict[tuple[str, ...], Any], new: dict[tuple[str, ...], Any]) -> list[str]:
    lines = [f"  {' '.join(path)}: {new.get(path, _MISSING)}, was {old.get(path, _MISSING)}" for path in paths[:_SHOWN]]
    return lines + ([f"  and {len(paths) - _SHOWN} more"] if len(paths) > _SHOWN else [])


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value by the names that lead to it, times left out."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if name not in _TIMES:
                yield from _leaves(item, (*path, str(name)))
    elif isinstance(value, list | tuple) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, str(number)))
    else:
        yield path, list(value) if isinstance(value, tuple) else value
