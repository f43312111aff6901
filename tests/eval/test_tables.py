"""Tables of a report written by hand."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from gfm.eval.figures import CEILING, CONTEXT
from gfm.eval.metrics import DEFINITIONS, FILTERED, METRICS
from gfm.eval.tables import as_markdown, as_rich, best_cells, group_tables, markdown, summary, tables

LABELS = ("gfm", "vector_graph", "graph_search", "band_quota", "dense", "bm25", "hybrid", "fusion", "gfm_entity")


def quality(mean: float, learnt: bool = False) -> dict[str, Any]:
    names = (*METRICS, *FILTERED, CONTEXT, *((CEILING,) if learnt else ()))
    return {name: {"mean": mean, "low": mean - 0.01, "high": min(1.0, mean + 0.01)} for name in names}


def retriever(mean: float, learnt: bool = False) -> dict[str, Any]:
    ms = {"median": 1234.5, "p95": 2345.6}
    return {
        "quality": quality(mean, learnt),
        "by": {
            "type": {"bridge_comparison": quality(mean), "inference": quality(mean)},
            "hops": {"2": quality(mean), "4": {**quality(mean), "R@5": {"mean": mean, "low": None, "high": None}}},
        },
        "p": {"R@5": 0.0004} if learnt else None,
        "context_tokens": 1999.0,
        "trace": {"nodes": 7.0} if learnt else {},
        "counts": {"repeated_passages": 0, "fallbacks": {}, "without_result": 0},
        "time": {
            "retrieval_ms": ms,
            "context_ms": ms,
            "stages_ms": {"encode": ms, "search": ms},
            "queries_per_second": 12.3,
        },
        "peak_memory_mb": 12345.6 if learnt else None,
    }


@pytest.fixture
def report() -> dict[str, Any]:
    of = {
        "data": {
            "questions": 3,
            "judged": 4,
            "without_gold": 0,
            "hops_told": 3,
            "gold": 5,
            "gold_outside_corpus": 0,
            "repeated_gold": 0,
        },
        "groups": {"type": {"bridge_comparison": 2, "inference": 1}, "hops": {"2": 2, "4": 1}},
        "encode_ms": {"alone": 16.0, "with_parts": 30.0, "batch": 2.0},
        "baseline": "dense",
        "retrievers": {label: retriever(1.0 if label == "gfm" else 0.5, label == "gfm") for label in LABELS},
    }
    return {
        "made": "2001-02-03",
        "command": "gfm bench a b",
        "settings": {"apart": True, "max_tokens": 2000, "seed": 7},
        "machine": {"threads": 2},
        "versions": {"numpy": "2"},
        "definitions": DEFINITIONS,
        "sets": {"dev-2wiki": of, "dev-musique": of, "dev-hotpotqa": of},
    }


def test_every_table_fits_80_columns_of_ascii(report: dict[str, Any]) -> None:
    for table in tables(report):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        console = Console(file=stream, width=80)
        console.print(as_rich(table))
        stream.seek(0)
        shown = stream.read()
        for row in table.rows:  # nothing is cut or broken within a row
            line = next(line for line in shown.split("\n") if line.startswith(row[0]))
            assert line.split() == [part for cell in row for part in cell.split()], table.title


def test_the_table_over_all_sets_has_a_row_a_retriever_and_stresses_the_best(report: dict[str, Any]) -> None:
    table = summary(report)
    assert table.header == ["R@2 / R@5, %", "dev-2wiki (3)", "dev-musique (3)", "dev-hotpotqa (3)"]
    assert table.rows[0] == ["gfm", *["100.0 / 100.0"] * 3]
    assert table.best == {(0, 1), (0, 2), (0, 3)}
    assert "| gfm | **100.0 / 100.0** |" in as_markdown(table)


def test_groups_of_many_retrievers_stand_in_several_tables(report: dict[str, Any]) -> None:
    first, second = group_tables("x", report["sets"]["dev-2wiki"], "hops")
    assert first.header == ["%", *(label.replace("_", " ") for label in LABELS[:8])]
    assert second.header == ["%", "gfm entity"]
    assert [row[0] for row in first.rows] == ["R@2 2 (2)", "R@2 4 (1)", "R@5 2 (2)", "R@5 4 (1)"]
    assert first.best == {(r, 1) for r in range(4)}
    assert second.best == set()


@pytest.mark.parametrize(
    ("told", "words"),
    [(3, "as its metadata tell."), (0, "its number of gold documents, for"), (2, "(2 questions), else")],
)
def test_where_hops_come_from_is_said(report: dict[str, Any], told: int, words: str) -> None:
    report["sets"]["dev-2wiki"]["data"]["hops_told"] = told
    table, *_ = group_tables("x", report["sets"]["dev-2wiki"], "hops")
    assert words in table.notes[0]


def test_the_highest_shown_figures_are_stressed() -> None:
    rows = [["a", "1.0", "2.0"], ["b", "3.0", "2.0"]]
    assert best_cells(rows, (1, 2)) == {(1, 1), (0, 2), (1, 2)}
    assert best_cells(rows[:1], (1, 2)) == set()


def test_markdown_tells_everything(report: dict[str, Any]) -> None:
    text = markdown(report, ["pictures/a.png"])
    for part in (
        "gfm bench a b",
        "numpy 2",
        "99.0-100.0",
        "<0.001",
        "filtered_recall@5",
        "12346",
        "the difference in R@5 to dense",
        "16.0 ms by itself (30.0 ms with its parts, as the network reads it), 2.0 ms in a batch",
        "gfm: search 1234.5 (2345.6), (context) 1234.5 (2345.6)",
        "gfm: nodes 7.0",
        "![pictures/a.png](pictures/a.png)",
        "Peak memory: of a process of its own",
        "Seed 7; 2 threads.",
        *DEFINITIONS.values(),
    ):
        assert part in text
