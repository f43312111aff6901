"""The scan over 8-bit codes: what it leaves out is proven to be no better than what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.index import vectors
from gfm.index.codes import Codes
from gfm.index.vectors import Vectors


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def drawn(n: int, dim: int, seed: int, spread: float = 1.0) -> np.ndarray:
    """Unit rows around one direction, the nearer the smaller ``spread``."""
    random = np.random.default_rng(seed)
    return unit(random.standard_normal(dim) + spread * random.standard_normal((n, dim)))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(300, 900),
    dim=st.sampled_from([3, 16, 50, 384]),
    spread=st.sampled_from([0.01, 0.3, 3.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_row_left_out_is_above_the_bound(n: int, dim: int, spread: float, seed: int) -> None:
    rows = drawn(n, dim, seed, spread)
    query = drawn(1, dim, seed + 1)[0]
    found, bound = Codes(rows).search(query, 10)
    assert (np.diff(found) > 0).all()
    rest = np.setdiff1d(np.arange(n), found)
    assert len(found) == min(n, 266)
    assert (rows[rest].astype(np.float64) @ query <= bound + 1e-6).all()


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1024, 3000), k=st.integers(1, 300), seed=st.integers(0, 2**32 - 1))
def test_a_search_finds_what_comparing_all_finds(n: int, k: int, seed: int) -> None:
    rows = drawn(n, 32, seed)
    rows[n // 2 :] = rows[: n - n // 2]  # every row twice: ties go by number
    query = drawn(1, 32, seed + 1)
    found, scores = Vectors(rows).search(query, k)
    every = Vectors(rows).cosine(np.arange(n), query[0])
    expected = np.lexsort((np.arange(n), -every))[:k]
    assert found[0].tolist() == expected.tolist()
    assert scores[0].tolist() == every[expected].tolist()


def test_where_the_codes_leave_a_doubt_all_rows_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows so near to each other that 8 bits do not tell them apart."""
    rows = drawn(2000, 24, 7, spread=1e-4)
    query = drawn(1, 24, 8)
    asked: list[int] = []
    cosines = Vectors.cosines

    def count(self: Vectors, ids: np.ndarray, queries: np.ndarray) -> np.ndarray:
        asked.append(len(ids))
        return cosines(self, ids, queries)

    monkeypatch.setattr(Vectors, "cosines", count)
    found, _ = Vectors(rows).search(query, 5)
    assert asked == [261, 2000]
    assert (
        found[0].tolist()
        == np.lexsort((np.arange(2000), -cosines(Vectors(rows), np.arange(2000), query)[:, 0]))[:5].tolist()
    )


def test_few_rows_need_no_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "Codes", None)
    assert Vectors(drawn(1023, 8, 1)).search(drawn(1, 8, 2), 3)[0].shape == (1, 3)


def test_rows_of_nothing_but_zeros() -> None:
    found, bound = Codes(np.zeros((400, 8), dtype=np.float32)).search(np.eye(8, dtype=np.float32)[0], 2)
    assert len(found) == 258
    assert bound >= 0.0
