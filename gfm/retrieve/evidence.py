"""Whether anything was found that has to do with the question: a measure of one scale for all retrievers."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from gfm.index.index import GraphIndex
from gfm.types import Retrieval


def evidence(index: GraphIndex, found: Retrieval) -> float:
    """Cosine of the question and the best of the passages, whatever retriever found them; 0 without any."""
    if not found.passages:
        return 0.0
    numbers = np.array([bisect_left(index.passage_ids, hit.item.id) for hit in found.passages], dtype=np.int64)
    vector = index.encode([found.query.text])[0]  # (D,)
    return float(np.clip(index.passage_vectors.cosine(numbers, vector).max(), -1.0, 1.0))


def at_least(index: GraphIndex, found: Retrieval, least: float) -> Retrieval:
    """The result, or where its evidence is below ``least`` one without passages, entities and facts.

    All or nothing: the later passages of a question of several steps are near each other, not the question, and the
    scores of a retriever say which passage is better, not whether any is good.

    Args:
        index: Where it was found.
        found: The result.
        least: Least `evidence`; the trace tells both.
    """
    score = evidence(index, found)
    found = replace(found, trace={**found.trace, "evidence": score, "least_evidence": least})
    return found if score >= least else replace(found, passages=[], entities=[], triples=[], paths={})
