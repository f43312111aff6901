"""Retrieval metrics through ir_measures (trec_eval underneath), on ranks made by one total order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import ir_measures

from gfm.types import GfmError

# Recall is strict: |top k ∩ relevant| / |relevant|, trec_eval's recall, not "any hit" (which is Success@k).
_LIBRARY = {
    "R@2": ir_measures.R @ 2,
    "R@5": ir_measures.R @ 5,
    "R@10": ir_measures.R @ 10,
    "R@20": ir_measures.R @ 20,
    "MRR@10": ir_measures.RR @ 10,
    "nDCG@10": ir_measures.nDCG @ 10,
}
METRICS = ("R@2", "R@5", "R@10", "R@20", "all@5", "MRR@10", "nDCG@10")
FILTERED = ("filtered_recall@2", "filtered_recall@5")
DEFINITIONS = {
    "R@k": "strict recall: gold documents among the first k, as a share of all gold documents of the question",
    "all@5": "share of questions with every gold document among the first 5",
    "MRR@10": "1 / rank of the first gold document, 0 where it is not among the first 10",
    "nDCG@10": "gain 1 of each gold document over log2(1 + rank), as a share of the best order's",
    "filtered_recall@k": "the measure of GFM-RAG: each gold document is ranked with the other gold ones removed, which "
    "flatters; never lower than R@k, and not to be compared with it",
}
_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Report:
    """Metrics of a run, each in 0 … 1.

    Attributes:
        per_query: {query id: {metric: value}} for every query with a relevant passage.
        mean: {metric: mean over those queries}; empty where no query has one.
        num_queries: How many those are.
        missing: Queries with a relevant passage that the run lacks; they score 0.
        without_gold: Queries of the run or of the qrels without a relevant passage; left out of everything else.
    """

    per_query: dict[str, dict[str, float]]
    mean: dict[str, float]
    num_queries: int
    missing: list[str]
    without_gold: list[str]


def evaluate(qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]) -> Report:
    """Score a run.

    Relevance is binary (score > 0), also in nDCG. Order is by score descending, then passage id ascending. ``all@5``
    is 1 where every relevant passage stands in the first five.

    Args:
        qrels: {query id: {passage id: score}}.
        run: {query id: {passage id: score}}.

    Raises:
        GfmError: A score of the run is not finite; the message names the query.
    """
    judged = {query: {p: 1 for p, score in row.items() if score > 0} for query, row in qrels.items()}
    gold = {query: row for query, row in judged.items() if row}
    ranked = {query: _by_rank(query, scores) for query, scores in run.items()}
    per_query: dict[str, dict[str, float]] = {query: dict.fromkeys(METRICS, 0.0) for query in gold}
    names = {measure: name for name, measure in _LIBRARY.items()}
    answered = {query: ranked[query] for query in gold if query in ranked}
    for metric in ir_measures.iter_calc(list(names), gold, answered):
        per_query[metric.query_id][names[metric.measure]] = float(metric.value)
    for row in per_query.values():
        row["all@5"] = float(row["R@5"] == 1.0)
    count = len(gold)
    return Report(
        per_query=per_query,
        mean={m: sum(row[m] for row in per_query.values()) / count for m in METRICS} if count else {},
        num_queries=count,
        missing=[query for query in gold if query not in run],
        without_gold=[query for query in dict.fromkeys([*qrels, *run]) if query not in gold],
    )


def filtered_recall(gold: Collection[str], ranked: Sequence[str], k: int) -> float:
    """Share of gold passages that stand among the first ``k`` once the other gold ones are taken out of the list.

    Args:
        gold: At least one.
        ranked: Best first; ``k - 1`` passages more than there are gold ones decide it.
        k: How far to look.

    Source: Luo et al., "GFM-RAG: Graph Foundation Model for Retrieval Augmented Generation", 2025, evaluation code.
    """
    found = [rank for rank, passage in enumerate(ranked, start=1) if passage in gold]
    return sum(rank - before <= k for before, rank in enumerate(found)) / len(gold)


def _by_rank(query: str, scores: Mapping[str, float]) -> dict[str, float]:
    """The first passages with scores that no library can tie or round: 20 for the best, then 19, and so on."""
    for passage, score in scores.items():
        if not math.isfinite(score):
            raise GfmError(
                f"query {query!r}: passage {passage!r} has the score {score}, expected a finite number; the retriever "
                "that wrote the run is broken for this query"
            )
    order = sorted(scores, key=lambda passage: (-scores[passage], passage))
    return {passage: float(_DEPTH - i) for i, passage in enumerate(order[:_DEPTH])}
