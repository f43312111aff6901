"""The arithmetic of the band-quota retriever: its constants, what a weight is worth, and what a band may give.

Source: pingcap/autoflow at commit 7eb3e1c6f246, `backend/app/rag/indices/knowledge_graph/graph_store/`.
"""

from __future__ import annotations

from math import inf

import numpy as np

# (nearest, farthest, ratio): a band of distances, both ends inclusive, and its share of a hop's quota.
BANDS = ((0.0, 0.25, 1.0), (0.25, 0.35, 0.7), (0.35, 0.45, 0.2), (0.45, 0.55, 0.1))
ANY_DISTANCE = (0.0, 1.0)  # means no cut-off at all, although distances reach 2
QUOTA = 10  # relationships of a hop
FIRST_RANK_N = 10  # of the first hop
LIMIT = 100  # relationships that a search ranks
OVERSAMPLE = 10  # a search looks at the LIMIT * OVERSAMPLE nearest
DEGREE_COEFFICIENT = 0.001
SYNOPSIS_ENTITIES = 2

# (from, to, a point of weight between them adds this much)
_WEIGHT_STEPS = ((0.0, 100.0, 0.01), (100.0, 1e3, 1e-3), (1e3, 1e4, 1e-4), (1e4, inf, 1e-5))


def weight_score(weight: np.ndarray) -> np.ndarray:
    """What weights add to a score, float64 of the same shape: less and less a point; nothing below 0."""
    weight = np.asarray(weight, dtype=np.float64)
    score = np.zeros_like(weight)
    for low, high, worth in _WEIGHT_STEPS:
        score += np.clip(weight - low, 0.0, high - low) * worth
    return score


def band_quota(ratio: float, passed: float, found: int) -> int:
    """How many relationships the next band of a hop may give.

    The order of these float64 operations is part of the behaviour: the ratios of all four bands add up to
    0.9999999999999998, so a hop that only the last band feeds asks it for 9, not for 10.

    Args:
        ratio: Of the band.
        passed: Sum of the ratios, other than 1, of the bands before it.
        found: Relationships that this hop found so far.
    """
    unused = passed * QUOTA > found
    wanted = int((ratio + passed) * QUOTA - found) if unused else int(ratio * QUOTA)
    return min(wanted, QUOTA - found)
