"""Pictures of a report: what is drawn, and the same bytes for the same report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gfm.eval.pictures import _against_time, _by_hops, check_installed, draw


@pytest.fixture
def of() -> dict[str, Any]:
    def point(mean: float, low: float | None, high: float | None) -> dict[str, Any]:
        return {"R@5": {"mean": mean, "low": low, "high": high}}

    return {
        "groups": {"hops": {"1": 5, "2": 1}},
        "retrievers": {
            label: {
                "quality": point(mean, None, None),
                "by": {"hops": {"1": point(mean, mean - 0.1, mean + 0.1), "2": point(mean / 2, None, None)}},
                "time": {"retrieval_ms": {"median": 10.0 * mean}},
            }
            for label, mean in (("gfm", 0.75), ("bm25", 0.5))
        },
    }


def test_a_point_a_retriever_at_its_time(of: dict[str, Any]) -> None:
    (axes,) = _against_time("z", of).axes
    points = [tuple(c.get_offsets()[0]) for c in axes.collections]
    assert points == [pytest.approx((7.5, 75.0)), pytest.approx((5.0, 50.0))]
    assert axes.get_xscale() == "log"


def test_a_line_a_retriever_by_hops(of: dict[str, Any]) -> None:
    (axes,) = _by_hops("z", of).axes
    (line, *_) = axes.containers[0]
    assert list(line.get_ydata()) == pytest.approx([75.0, 37.5])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1\n(5 questions)", "2\n(1 questions)"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["gfm", "bm25"]


def test_the_same_report_gives_the_same_bytes(of: dict[str, Any], tmp_path: Path) -> None:
    check_installed()
    report = {"sets": {"z": of, "flat": {**of, "groups": {"hops": {"1": 6}}}}}
    first, second = draw(report, tmp_path / "a"), draw(report, tmp_path / "b")
    assert [path.name for path in first] == ["z-hops.png", "z-time.png", "flat-time.png"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
