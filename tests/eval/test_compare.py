"""Two reports of one comparison."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gfm.eval.compare import differences, read_report
from gfm.types import GfmError

REPORT: dict[str, Any] = {
    "made": "2001-02-03T04:05:06+00:00",
    "command": "gfm bench a",
    "settings": {"seed": 0, "data": ("a",), "out": "x"},
    "versions": {"numpy": "2"},
    "sets": {
        "a": {
            "data": {"questions": 2},
            "retrievers": {
                "gfm": {
                    "weights": "f00",
                    "quality": {"R@5": {"mean": 0.5, "low": None}},
                    "time": {"ms": 3.0},
                    "peak_memory_mb": 1.0,
                }
            },
        }
    },
}


def changed(path: str, value: object) -> dict[str, Any]:
    out = copy.deepcopy(REPORT)
    *names, last = path.split("/")
    inner = out
    for name in names:
        inner = inner[name]
    inner[last] = value
    return out


def test_equal_figures_are_told_with_the_time_of_the_other_run(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(REPORT), encoding="utf-8")
    before = read_report(path)
    assert before is not None
    assert differences(before, REPORT) == ["the same figures as the run of 2001-02-03T04:05:06+00:00"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("made", "later"),
        ("command", "other"),
        ("settings/out", "y"),
        ("sets/a/retrievers/gfm/time", {"ms": 9.0}),
        ("sets/a/retrievers/gfm/peak_memory_mb", None),
    ],
)
def test_times_and_places_are_no_figures(path: str, value: object) -> None:
    assert differences(REPORT, changed(path, value)) == ["the same figures as the run of 2001-02-03T04:05:06+00:00"]


def test_a_figure_that_differs_is_named_with_both_values() -> None:
    found = differences(REPORT, changed("sets/a/retrievers/gfm/quality/R@5/mean", 0.25))
    assert found == [
        "1 figures differ from those of the run of 2001-02-03T04:05:06+00:00:",
        "  sets a retrievers gfm quality R@5 mean: 0.25, was 0.5",
    ]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("settings/seed", 1, "  settings seed: 1, was 0"),
        ("versions/numpy", "3", "  versions numpy: 3, was 2"),
        ("sets/a/data/questions", 3, "  sets a data questions: 3, was 2"),
        ("sets/a/retrievers/gfm/weights", "ba", "  sets a retrievers gfm weights: ba, was f00"),
        ("settings/limit", 5, "  settings limit: 5, was (none)"),
    ],
)
def test_what_was_asked_otherwise_is_told_apart(path: str, value: object, line: str) -> None:
    found = differences(REPORT, changed(path, value))
    assert found[0].startswith("asked otherwise than in the run of ")
    assert found[1] == line
    assert found[-1].startswith("the figures that both have are the same")


def test_no_more_lines_than_anybody_reads() -> None:
    many = {f"m{i}": float(i) for i in range(20)}
    before = changed("sets/a/retrievers/gfm/quality", many)
    after = changed("sets/a/retrievers/gfm/quality", {name: value + 1 for name, value in many.items()})
    found = differences(before, after)
    assert found[0].startswith("20 figures differ")
    assert found[-1] == "  and 12 more"


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', "x"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bench.json"
    assert read_report(path) is None
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GfmError, match="give another --out"):
        read_report(path)
