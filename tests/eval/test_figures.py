"""Figures of a report, from results written by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gfm.eval import figures
from gfm.eval.measure import Measured
from gfm.types import Query

QUERIES = [
    Query("a", "who?", {"type": "bridge", "hops": 2}),
    Query("b", "where?", {"type": "bridge"}),
    Query("c", "when?", {"type": ["odd"], "hops": True}),
]
GOLD = {"a": frozenset({"x"}), "b": frozenset({"x", "y", "z"}), "c": frozenset({"z"})}
RUN = {"a": {"x": 1.0, "y": 0.5}, "b": {"x": 0.9, "y": 0.8, "z": 0.7}, "c": {}}


def measured(**changes: object) -> Measured:
    row: dict[str, object] = {
        "run": RUN,
        "seconds": {"encode": [0.5, 0.5, 0.5], "search": [0.1, 0.2, 0.3]},
        "retrieval": [0.1, 0.2, 0.3],
        "context_seconds": [0.01] * 3,
        "tokens": [10, 20, 30],
        "in_context": [1.0, 0.5, 0.0],
        "uses_vectors": True,
    }
    return Measured(**{**row, **changes})  # type: ignore[arg-type]


def test_hops_are_those_of_the_metadata_or_the_number_of_gold_documents() -> None:
    assert [figures.hops(q, GOLD[q.id]) for q in QUERIES] == [(2, True), (3, False), (1, False)]
    assert figures.group(QUERIES, GOLD) == {"type": {"bridge": [0, 1]}, "hops": {"1": [2], "2": [0], "3": [1]}}


def test_groups_are_in_order_of_their_numbers() -> None:
    queries = [Query(str(n), "x", {"hops": n}) for n in (10, 9, 2)]
    found = figures.group(queries, {q.id: frozenset({"x"}) for q in queries})
    assert list(found["hops"]) == ["2", "9", "10"]
    assert found["type"] == {}


def test_values_by_question() -> None:
    found = figures.values(QUERIES, GOLD, measured(reached=[1.0, 1.0, 0.0]))
    assert found["R@2"].tolist() == pytest.approx([1.0, 2 / 3, 0.0])
    assert found["filtered_recall@2"].tolist() == [1.0, 1.0, 0.0]
    assert found[figures.CONTEXT].tolist() == [1.0, 0.5, 0.0]
    assert found[figures.CEILING].tolist() == [1.0, 1.0, 0.0]
    assert figures.CEILING not in figures.values(QUERIES, GOLD, measured())


def test_a_summary_is_of_all_questions_or_of_some() -> None:
    found = figures.values(QUERIES, GOLD, measured())
    assert figures.summary(found, None, 0)["R@5"]["mean"] == pytest.approx(2 / 3)
    of_two = figures.summary(found, [0, 2], 0)["R@5"]
    assert of_two == {"mean": 0.5, "low": 0.0, "high": 1.0}
    assert figures.summary(found, [1], 0)["R@5"] == {"mean": 1.0, "low": None, "high": None}


def test_the_best_rule_based_retriever_has_no_network_and_is_the_first_of_equals() -> None:
    high, low = {"R@5": np.array([1.0, 1.0])}, {"R@5": np.array([0.0, 1.0])}
    found = {"learnt": high, "weak": low, "first": high, "second": high}
    by = {label: measured(weights="x" if label == "learnt" else None) for label in found}
    assert figures.best_rule_based(found, by) == "first"
    assert figures.best_rule_based({"learnt": high}, by) is None


def test_times_leave_encoding_out_of_retrieval_and_count_it_in_questions_a_second() -> None:
    found = figures.times(measured())
    assert found["retrieval_ms"] == {"median": pytest.approx(200), "p95": pytest.approx(290)}
    assert found["stages_ms"]["search"]["median"] == pytest.approx(200)
    assert found["queries_per_second"] == pytest.approx(3 / (0.6 + 1.5))
    plain = measured(seconds={"search": [0.1, 0.2, 0.3]}, uses_vectors=False)
    assert figures.times(plain)["queries_per_second"] == pytest.approx(3 / 0.6)


def test_tests_are_of_each_metric() -> None:
    found = figures.values(QUERIES, GOLD, measured())
    nothing = figures.values(QUERIES, GOLD, measured(run={q.id: {} for q in QUERIES}))
    p = figures.against(found, nothing, seed=0)
    assert set(p) == set(figures.TESTED)
    assert p["R@5"] == pytest.approx(0.5)  # two differences up of three: 2 of 8 sign patterns on each side
    assert all(math.isfinite(value) for value in p.values())
