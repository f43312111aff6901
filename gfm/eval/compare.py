"""Retrievers side by side on one set: strict recall by question type, and the time of a question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median

from gfm.eval.beir import Dataset
from gfm.eval.metrics import evaluate
from gfm.eval.run import best_documents, passages_for
from gfm.progress import track
from gfm.retrieve.base import Retriever
from gfm.types import GfmError, Retrieval

METRICS = ("R@2", "R@5")
ALL = "all"
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """What one retriever reached.

    Attributes:
        recall: {question type, or "all": {metric: mean in 0 … 1}}.
        retrieval_ms: Median milliseconds a question, its encoding left out.
        encode_ms: Median milliseconds to encode a question; 0 where it is not encoded.
        results: By query id.
    """

    recall: dict[str, dict[str, float]]
    retrieval_ms: float
    encode_ms: float
    results: dict[str, Retrieval]


def compare(dataset: Dataset, retrievers: Mapping[str, Retriever]) -> dict[str, Figures]:
    """Answer every judged question of a set with each retriever, one question at a time.

    Args:
        dataset: Questions with relevant documents; ``metadata["type"]`` groups them where it is there.
        retrievers: By name.

    Raises:
        GfmError: No question has a relevant document.
    """
    if not dataset.judged():
        raise GfmError(f"{dataset.corpus.parent}: expected questions with relevant documents (qrels), found none")
    return {name: _figures(dataset, name, retriever) for name, retriever in retrievers.items()}


def type_counts(dataset: Dataset) -> dict[str, int]:
    """Number of judged questions, in all and by type, in the order of their first question."""
    counts: dict[str, int] = {ALL: 0}
    for query in dataset.judged():
        counts[ALL] += 1
        if kind := _type(query.metadata):
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _figures(dataset: Dataset, name: str, retriever: Retriever) -> Figures:
    queries = dataset.judged()
    depth = passages_for(retriever.index, _DEPTH)
    retriever.retrieve(queries[0], depth)  # what is loaded on first use is no question's time
    results = {q.id: retriever.retrieve(q, depth) for q in track(queries, len(queries), name)}
    encode = [found.seconds.get("encode", 0.0) for found in results.values()]
    total = [sum(found.seconds.values()) for found in results.values()]
    return Figures(
        recall=_recall(dataset, results),
        retrieval_ms=1000 * median(t - e for t, e in zip(total, encode, strict=True)),
        encode_ms=1000 * median(encode),
        results=results,
    )


def _recall(dataset: Dataset, results: Mapping[str, Retrieval]) -> dict[str, dict[str, float]]:
    run = {query: best_documents(found, _DEPTH) for query, found in results.items()}
    scores = evaluate({query: dataset.qrels[query] for query in results}, run).per_query
    groups: dict[str, list[str]] = defaultdict(list)
    for query in dataset.judged():
        groups[ALL].append(query.id)
        if kind := _type(query.metadata):
            groups[kind].append(query.id)
    return {group: {m: fmean(scores[query][m] for query in ids) for m in METRICS} for group, ids in groups.items()}


def _type(metadata: Mapping[str, object]) -> str:
    kind = metadata.get("type")
    return kind if isinstance(kind, str) else ""
