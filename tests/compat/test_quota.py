"""The arithmetic, case by case as a person works it out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.compat.quota import BANDS, QUOTA, band_quota, weight_score


@pytest.mark.parametrize(
    ("weight", "score"),
    [(0, 0), (1, 0.01), (50, 0.5), (100, 1.0), (150, 1.05), (1000, 1.9), (5000, 2.3), (10_000, 2.8), (1e6, 12.7)],
)
def test_weight_score(weight: float, score: float) -> None:
    assert float(weight_score(np.array(weight))) == pytest.approx(score, rel=1e-12)


def test_weight_score_of_many_and_of_negative_ones() -> None:
    scores = weight_score(np.array([[-1.0, -1e9], [1.0, 150.0]], dtype=np.float32))
    assert scores.dtype == np.float64
    assert scores.tolist() == [[0.0, 0.0], [pytest.approx(0.01), pytest.approx(1.05)]]


@given(st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=20))
def test_more_weight_is_never_worth_less(weights: list[float]) -> None:
    assert (np.diff(weight_score(np.sort(weights))) >= 0).all()


def test_the_bands_and_their_ratios() -> None:
    assert BANDS == ((0.0, 0.25, 1.0), (0.25, 0.35, 0.7), (0.35, 0.45, 0.2), (0.45, 0.55, 0.1))


# What each band asks for after 0, 1, … 9 were found in the hop; the first band is asked while nothing was.
@pytest.mark.parametrize(
    ("ratio", "passed", "asked"),
    [
        (1.0, 0.0, [10]),
        (0.7, 0.0, [7, 7, 7, 7, 6, 5, 4, 3, 2, 1]),
        (0.2, 0.7, [9, 8, 7, 6, 5, 4, 3, 2, 2, 1]),
        (0.1, 0.7 + 0.2, [9, 8, 7, 6, 5, 4, 3, 2, 1, 1]),
    ],
)
def test_band_quota(ratio: float, passed: float, asked: list[int]) -> None:
    assert [band_quota(ratio, passed, found) for found in range(len(asked))] == asked


def test_the_ratios_add_up_to_less_than_one() -> None:
    """In exact arithmetic the last band alone would be asked for 10."""
    assert (0.1 + (0.7 + 0.2)) * QUOTA == 9.999999999999998
    assert band_quota(0.1, 0.7 + 0.2, 0) == 9
