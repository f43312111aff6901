"""How sure a mean over questions is: bootstrap intervals and paired randomisation tests, through SciPy."""

from __future__ import annotations

import numpy as np
from scipy import stats

RESAMPLES = 2000
PERMUTATIONS = 9999
LEVEL = 0.95
_BATCH = 200  # resamples held in memory at once


def intervals(values: np.ndarray, seed: int) -> np.ndarray:
    """Bootstrap intervals of means over questions (percentile method, 2,000 resamples of the questions, 95 %).

    The rows are resampled together: one draw of questions serves all of them.

    Args:
        values: float[M, n], one row a metric, one column a question.
        seed: Of the draws.

    Returns:
        float[M, 2], low and high ends; of a single question nothing can be said, and both are not a number.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13; `scipy.stats.bootstrap`.
    """
    if values.shape[1] < 2:
        return np.full((len(values), 2), np.nan)
    found = stats.bootstrap(
        (values,),
        np.mean,
        axis=-1,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return np.stack([found.low, found.high], axis=1)  # (M, 2)


def p_values(values: np.ndarray, baseline: np.ndarray, seed: int) -> np.ndarray:
    """Two-sided paired randomisation tests of the difference of means over the same questions.

    Under the null hypothesis the two systems are exchangeable question by question, so each difference may have either
    sign. All signs are tried where that is less than 9,999 draws, else 9,999 are drawn. The values are not corrected
    for the number of tests.

    Args:
        values: float[M, n].
        baseline: float[M, n], the same metrics and questions of the other system.
        seed: Of the draws.

    Returns:
        float[M] in (0, 1].

    Source: Smucker, Allan and Carterette, "A comparison of statistical significance tests for information retrieval
    evaluation", CIKM 2007; `scipy.stats.permutation_test`.
    """
    if values.shape[1] < 2:  # either sign of one difference is as far from 0
        return np.ones(len(values))
    found: np.ndarray = stats.permutation_test(
        (values - baseline,),
        np.mean,
        permutation_type="samples",
        axis=-1,
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=_BATCH,
        rng=np.random.default_rng(seed),
    ).pvalue
    return found
