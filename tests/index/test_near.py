from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gfm.index.near as near_module
import gfm.index.vectors as vectors_module
from gfm.index.near import Near, nearest, synonyms
from gfm.index.spliced import Spliced
from gfm.index.vectors import make_hnsw

SQUARE = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)


def unit_rows(n: int, dim: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def similar_pairs(rows: np.ndarray, neighbours: int, threshold: float, **known: Any) -> tuple[np.ndarray, np.ndarray]:
    return nearest(Spliced.of(rows), neighbours, threshold, **known).pairs()


def at(*degrees: float) -> np.ndarray:
    turn = np.radians(degrees)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)


def test_similar_pairs_by_hand() -> None:
    """Names at 0°, 10°, 25°, 180°: pairs within 30° (cosine 0.866)."""
    pairs, cosine = similar_pairs(at(0, 10, 25, 180), 8, 0.866)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert cosine == pytest.approx(np.cos(np.radians([10, 25, 15])), abs=1e-6)
    assert similar_pairs(at(0, 10, 25, 180), 8, 0.97)[0].tolist() == [[0, 1]]


def test_similar_pairs_of_the_nearest_only() -> None:
    """With one neighbour each: 0°→10°, 10°→0°, 25°→10°; 0°–25° is nobody's nearest."""
    assert similar_pairs(at(0, 10, 25, 180), 1, 0.866)[0].tolist() == [[0, 1], [1, 2]]


def test_similar_pairs_of_copies_take_the_first() -> None:
    """Each copy's nearest two are the first two others, by number; the row itself takes no place among them."""
    pairs, cosine = similar_pairs(np.repeat(SQUARE[:1], 5, axis=0), 2, 0.9)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]]
    assert cosine.tolist() == [1.0] * 7


@pytest.mark.parametrize("n", [0, 1])
def test_similar_pairs_of_nobody(n: int) -> None:
    pairs, cosine = similar_pairs(SQUARE[:n], 8, 0.8)
    assert pairs.shape == (0, 2)
    assert cosine.shape == (0,)


@pytest.mark.parametrize("block", [1, 1000, 1 << 24])
def test_similar_pairs_against_all_pairs(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """The size of a block plays no part, and the answer is that of the whole matrix sorted."""
    monkeypatch.setattr(near_module, "_BLOCK", block)
    rows = unit_rows(150, 4)
    cosine = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.fill_diagonal(cosine, -2)
    expected = set()
    for i, row in enumerate(cosine):
        near = np.lexsort((np.arange(150), -row))[:3]
        expected |= {(min(i, int(j)), max(i, int(j))) for j in near if row[j] >= 0.9}
    pairs, found = similar_pairs(rows, 3, 0.9)
    assert [tuple(p) for p in pairs.tolist()] == sorted(expected)
    assert found == pytest.approx(cosine[pairs[:, 0], pairs[:, 1]], abs=1e-6)


def test_similar_pairs_by_a_graph_are_nearly_those(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_LIMIT", 100)
    rows = unit_rows(400, 8)
    exact, near = similar_pairs(rows, 4, 0.8)[0], similar_pairs(rows, 4, 0.8, graph=make_hnsw(Spliced.of(rows)))[0]
    same = set(map(tuple, exact.tolist())) & set(map(tuple, near.tolist()))
    assert len(exact) > 100
    assert len(same) >= 0.95 * max(len(exact), len(near))


@pytest.mark.parametrize("block", [1000, 1 << 24])
def test_similar_pairs_of_a_crowd(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """All alike, as dates are: only the nearest are ever kept, and they are the right ones."""
    monkeypatch.setattr(near_module, "_BLOCK", block)
    thinned = []
    real = near_module._among_best

    def among_best(*args: Any) -> np.ndarray:
        found = real(*args)
        thinned.append(found.mean())
        return found

    monkeypatch.setattr(near_module, "_among_best", among_best)
    rows = unit_rows(200, 4) * 0.2 + SQUARE[0].repeat(2) * 0.7
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = rows.astype(np.float64) @ rows.T.astype(np.float64)
    assert cosine.min() > 0.8
    np.fill_diagonal(cosine, -2)
    best = np.argsort(-cosine, axis=1)[:, :2]
    expected = {(min(i, j), max(i, j)) for i, row in enumerate(best.tolist()) for j in row}
    assert [tuple(p) for p in similar_pairs(rows, 2, 0.8)[0].tolist()] == sorted(expected)
    assert block == 1000 or max(thinned) < 0.05


def lists(near: Near) -> list[list[tuple[int, float]]]:
    rows = [slice(a, b) for a, b in zip(near.ptr, near.ptr[1:], strict=False)]
    return [list(zip(near.other[r].tolist(), near.cosine[r].tolist(), strict=True)) for r in rows]


def test_the_nearest_come_first_and_ties_by_number() -> None:
    found = lists(nearest(Spliced.of(np.concatenate([at(10, 0, 25), at(0)])), 2, 0.866))
    assert [[other for other, _ in row] for row in found] == [[1, 3], [3, 0], [0, 1], [1, 0]]
    assert found[1][0][1] == 1.0


SOME = st.sets(st.integers(0, 23))


@given(st.lists(st.integers(0, 11), min_size=1, max_size=24), SOME, SOME)
def test_old_lists_carried_over_are_those_built_anew(turns: list[int], before: set[int], after: set[int]) -> None:
    """Directions in a crowd, many of them the same, so that lists are full, cut among equals and opened again."""
    every = at(*(3.0 * turn for turn in turns))
    old, new = (sorted(i for i in chosen if i < len(turns)) for chosen in (before, after))
    moved = np.array([new.index(i) if i in new else -1 for i in old], dtype=np.int64)
    known = nearest(Spliced.of(every[old]), 3, 0.98)
    added = [i for i in new if i not in old]
    place = np.array([old.index(i) if i in old else len(old) + added.index(i) for i in new], dtype=np.int64)
    carried = nearest(Spliced(every[old], every[added], place), 3, 0.98, known, moved)
    assert lists(carried) == lists(nearest(Spliced.of(every[new]), 3, 0.98))


def test_only_new_rows_and_open_lists_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, chosen = unit_rows(60, 4), []
    real = near_module._compare
    monkeypatch.setattr(near_module, "_compare", lambda r, c, *more: chosen.append(c.tolist()) or real(r, c, *more))
    known = nearest(Spliced.of(rows[:50]), 2, 0.5)
    nearest(Spliced.of(rows), 2, 0.5, known, np.arange(50))
    assert chosen[-1] == list(range(50, 60))
    moved = np.concatenate([[-1], np.arange(49)])
    nearest(Spliced.of(rows[1:50]), 2, 0.5, known, moved)
    lost = [i - 1 for i, row in enumerate(lists(known)) if 0 in [other for other, _ in row] and len(row) == 2]
    assert chosen[-1] == lost
    assert 0 < len(lost) < 10


# --- synonyms


def test_synonyms_by_hand() -> None:
    """Near names are linked, names whose numbers differ are not, a name and its bracketed form always are."""
    keys = ["1 march 1901", "2 march 1901", "mill", "mill (tarn)", "mills"]
    turn = np.radians([0, 1, 90, 180, 95])
    rows = np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)
    links, weight = synonyms(keys, nearest(Spliced.of(rows), 8, 0.8), [(3, 2)])
    assert links.tolist() == [[2, 3], [2, 4]]
    assert weight == pytest.approx([1.0, np.cos(np.radians(5))], abs=1e-6)
    assert (links.dtype, weight.dtype) == (np.int64, np.float32)


def test_an_alias_outweighs_the_cosine() -> None:
    rows = np.array([[1, 0], [0.96, 0.28]], dtype=np.float32)
    links, weight = synonyms(["mill", "mill (tarn)"], nearest(Spliced.of(rows), 8, 0.8), [(0, 1)])
    assert (links.tolist(), weight.tolist()) == ([[0, 1]], [1.0])


def test_no_names_no_synonyms() -> None:
    links, weight = synonyms([], nearest(Spliced.of(np.zeros((0, 8), dtype=np.float32)), 8, 0.8), [])
    assert (links.shape, weight.shape) == ((0, 2), (0,))
