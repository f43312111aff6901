"""From what retrievers did to the figures of a report: means with intervals, groups of questions, tests, times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gfm.eval.measure import Measured
from gfm.eval.metrics import FILTERED, METRICS, evaluate, filtered_recall
from gfm.eval.statistics import intervals, p_values
from gfm.types import Query

CONTEXT, CEILING = "context recall", "ceiling"
TESTED = ("R@2", "R@5", "all@5", "nDCG@10")
CHOSEN_BY = "R@5"  # names the best rule-based retriever
FILTERED_AT = (2, 5)

Values = dict[str, np.ndarray]  # float[n] by metric, one value a question
Groups = dict[str, dict[str, list[int]]]  # positions of questions, by group, by kind of group


def hops(query: Query, gold: frozenset[str]) -> tuple[int, bool]:
    """Hops of a question, and whether its metadata tells them; else they are its number of gold documents."""
    told = query.metadata.get("hops")
    if isinstance(told, int) and not isinstance(told, bool):
        return told, True
    return len(gold), False


def group(queries: Sequence[Query], gold: Mapping[str, frozenset[str]]) -> Groups:
    """Questions by ``metadata["type"]``, where it is a text, and by hops; types by name, hops by number."""
    types: dict[str, list[int]] = {}
    steps: dict[int, list[int]] = {}
    for position, query in enumerate(queries):
        if isinstance(kind := query.metadata.get("type"), str) and kind:
            types.setdefault(kind, []).append(position)
        steps.setdefault(hops(query, gold[query.id])[0], []).append(position)
    return {
        "type": {kind: types[kind] for kind in sorted(types)},
        "hops": {str(number): steps[number] for number in sorted(steps)},
    }


def values(queries: Sequence[Query], gold: Mapping[str, frozenset[str]], measured: Measured) -> Values:
    """Every metric of every question, each in 0 … 1.

    Raises:
        GfmError: A score is not finite.
    """
    rows = evaluate({q.id: dict.fromkeys(gold[q.id], 1) for q in queries}, measured.run).per_query
    out = {metric: np.array([rows[q.id][metric] for q in queries]) for metric in METRICS}
    for name, k in zip(FILTERED, FILTERED_AT, strict=True):
        out[name] = np.array([filtered_recall(gold[q.id], list(measured.run[q.id]), k) for q in queries])
    out[CONTEXT] = np.array(measured.in_context)
    if measured.reached is not None:
        out[CEILING] = np.array(measured.reached)
    return out


def summary(found: Values, positions: Sequence[int] | None, seed: int) -> dict[str, dict[str, float | None]]:
    """Mean, and low and high end of its interval, by metric, over all questions or some."""
    matrix = np.stack(list(found.values()))
    if positions is not None:
        matrix = matrix[:, positions]
    ends = intervals(matrix, seed)
    return {
        metric: {"mean": float(row.mean()), "low": _or_none(low), "high": _or_none(high)}
        for metric, row, (low, high) in zip(found, matrix, ends, strict=True)
    }


def best_rule_based(found: Mapping[str, Values], measured: Mapping[str, Measured]) -> str | None:
    """The retriever without a network that has the highest mean R@5, the first of equals; None where there is none."""
    ruled = [label for label in found if measured[label].weights is None]
    return max(ruled, key=lambda label: found[label][CHOSEN_BY].mean(), default=None)


def against(found: Values, baseline: Values, seed: int) -> dict[str, float]:
    """The p of the difference of each tested metric."""
    pair = [np.stack([side[metric] for metric in TESTED]) for side in (found, baseline)]
    return dict(zip(TESTED, map(float, p_values(pair[0], pair[1], seed)), strict=True))


def times(measured: Measured) -> dict[str, Any]:
    """Milliseconds a question, in all and by stage, and questions a second.

    ``retrieval`` leaves out encoding and the building of the context, ``queries_per_second`` only the latter.
    """
    encode = sum(measured.seconds.get("encode", [])) if measured.uses_vectors else 0.0
    return {
        "retrieval_ms": spread(measured.retrieval),
        "context_ms": spread(measured.context_seconds),
        "stages_ms": {stage: spread(seconds) for stage, seconds in measured.seconds.items()},
        "queries_per_second": len(measured.retrieval) / (sum(measured.retrieval) + encode),
    }


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    median, high = np.percentile(1000 * np.array(seconds), [50, 95])
    return {"median": float(median), "p95": float(high)}


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
