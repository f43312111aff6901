"""Intervals and tests, on samples small enough to be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.eval.statistics import intervals, p_values


def row(*values: float) -> np.ndarray:
    return np.array([values])


def test_every_sign_of_a_small_sample_is_tried() -> None:
    zeros = np.zeros((1, 5))
    # Of 32 sign patterns 4 leave all three differences up: one side is 4/32, both are twice that.
    assert p_values(row(1, 1, 1, 0, 0), zeros, seed=0) == pytest.approx([0.25])
    assert p_values(row(0, 0, -1, -1, -1), zeros, seed=0) == pytest.approx([0.25])
    # Of 16 patterns only the observed one is as large as 4: 2/16.
    assert p_values(row(1, 1, 1, 1), np.zeros((1, 4)), seed=0) == pytest.approx([0.125])
    assert p_values(row(0.3, 0.7), row(0.3, 0.7), seed=0) == pytest.approx([1.0])
    assert p_values(row(1.0), row(0.0), seed=0) == pytest.approx([1.0])


def test_the_test_is_paired() -> None:
    baseline = np.linspace(0, 1, 40)[None]
    assert p_values(baseline + 0.01, baseline, seed=3)[0] < 0.001  # small, but for each question
    shuffled = np.random.default_rng(0).permutation(baseline[0])[None] + 0.01
    assert p_values(shuffled, baseline, seed=3)[0] > 0.5


def test_draws_are_seeded_and_rows_apart() -> None:
    draw = np.random.default_rng(1)
    values, baseline = draw.random((2, 40)), draw.random((2, 40))
    together = p_values(values, baseline, seed=5)
    np.testing.assert_array_equal(together, p_values(values, baseline, seed=5))
    np.testing.assert_allclose(together[1:], p_values(values[1:], baseline[1:], seed=5))
    np.testing.assert_array_equal(intervals(values, 5), intervals(values, 5))
    assert not np.array_equal(intervals(values, 5), intervals(values, 6))


def test_an_interval_is_that_of_the_normal_approximation_where_that_holds() -> None:
    values = np.repeat([0.0, 1.0], [25, 75])[None]  # mean 0.75, standard error sqrt(0.75 * 0.25 / 100) = 0.0433
    low, high = intervals(values, seed=0)[0]
    assert (low, high) == pytest.approx((0.75 - 1.96 * 0.0433, 0.75 + 1.96 * 0.0433), abs=0.012)


def test_an_interval_of_two_questions_runs_from_one_to_the_other_and_of_one_there_is_none() -> None:
    assert intervals(row(0.0, 1.0), seed=0).tolist() == [[0.0, 1.0]]
    assert intervals(row(0.5, 0.5, 0.5), seed=0).tolist() == [[0.5, 0.5]]
    assert np.isnan(intervals(row(0.5), seed=0)).all()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=30))
def test_an_interval_stays_within_the_values(values: list[float]) -> None:
    low, high = intervals(row(*values), seed=0)[0]
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
