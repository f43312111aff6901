from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest

import gfm.index.vectors as vectors_module
from gfm.index.spliced import Spliced
from gfm.index.vectors import Vectors, make_hnsw, read_hnsw, write_hnsw
from gfm.types import GfmError


def unit_rows(n: int, dim: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


SQUARE = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)


def test_by_hand() -> None:
    ids, scores = Vectors(SQUARE).search(np.array([[0.6, 0.8], [-1, 0]], dtype=np.float32), 3)
    assert ids.tolist() == [[1, 0, 2], [2, 1, 3]]
    assert scores.tolist() == [[np.float32(0.8), np.float32(0.6), np.float32(-0.6)], [1.0, 0.0, 0.0]]
    assert (ids.dtype, scores.dtype) == (np.int64, np.float32)


def test_more_asked_for_than_there_is() -> None:
    """D02."""
    ids, scores = Vectors(SQUARE[:3]).search(SQUARE[:1], 10)
    assert ids.tolist() == [[0, 1, 2]]
    assert scores.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize(("rows", "k"), [(SQUARE, 0), (SQUARE, -1), (SQUARE[:0], 10), (SQUARE[:0], 0)])
def test_nothing_to_find(rows: np.ndarray, k: int) -> None:
    """D02."""
    ids, scores = Vectors(rows).search(SQUARE[:2], k)
    assert ids.shape == scores.shape == (2, 0)
    assert (ids.dtype, scores.dtype) == (np.int64, np.float32)


def test_no_queries() -> None:
    ids, scores = Vectors(SQUARE).search(SQUARE[:0], 2)
    assert ids.shape == scores.shape == (0, 2)


@pytest.mark.parametrize("query", [np.ones((1, 3)), np.ones(2), np.array([[np.nan, 0.0]]), np.array([[np.inf, 0.0]])])
def test_queries_that_do_not_fit(query: np.ndarray) -> None:
    with pytest.raises(GfmError, match=r"shape \(m, 2\) as in the index"):
        Vectors(SQUARE).search(query, 2)


def test_no_score_above_one() -> None:
    """D03."""
    rows = unit_rows(20_000, 16)
    norms = np.einsum("nd,nd->n", rows, rows)
    assert norms.max() > 1.0  # or the test could not fail
    parts = [rows[i : i + 1000] for i in range(0, 20_000, 1000)]
    scores = np.concatenate([Vectors(part).search(part, 1)[1] for part in parts])
    assert scores.max() <= 1.0
    assert scores.min() > 0.999


def test_an_unnormalised_query_ranks_the_same() -> None:
    """D03."""
    found, query = Vectors(unit_rows(300, 16)), unit_rows(1, 16, seed=1)
    assert found.search(query, 20)[0].tolist() == found.search(query * 0.01, 20)[0].tolist()


def test_a_query_alone_and_in_a_batch() -> None:
    """D04, and sharper: the very same numbers, for rows that stand twice too."""
    rows = np.tile(unit_rows(500, 48), (2, 1))
    found, queries = Vectors(rows), unit_rows(64, 48, seed=1)
    ids, scores = found.search(queries, 12)
    for i in range(64):
        alone, score = found.search(queries[i : i + 1], 12)
        assert alone[0].tolist() == ids[i].tolist()
        assert score[0].tolist() == scores[i].tolist()
    assert (ids[:, 1::2] - ids[:, ::2] == 500).all()


def test_search_and_cosine_agree() -> None:
    found, query = Vectors(unit_rows(200, 48)), unit_rows(1, 48, seed=1)
    ids, scores = found.search(query, 30)
    assert found.cosine(ids[0], query[0]).tolist() == scores[0].tolist()
    assert found.cosine(ids[0][::-1][:7], query[0]).tolist() == scores[0][::-1][:7].tolist()
    assert found.cosine(np.zeros(0, dtype=np.int64), query[0]).shape == (0,)


def test_ties_by_row_number() -> None:
    ids, scores = Vectors(np.repeat(SQUARE, 5, axis=0)).search(SQUARE[1:2], 7)
    assert ids.tolist() == [[5, 6, 7, 8, 9, 0, 1]]
    assert scores.tolist() == [[1.0] * 5 + [0.0] * 2]


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_LIMIT", 100)


@pytest.mark.usefixtures("small_limit")
def test_hnsw_saved_and_read_again(tmp_path: Path) -> None:
    rows = unit_rows(3000, 32)
    graph = make_hnsw(Spliced.of(rows))
    path = tmp_path / "проект 名前 é.hnsw"
    write_hnsw(path, graph)
    near, exact = Vectors(rows, read_hnsw(path, rows)), Vectors(rows)
    assert (near.kind, exact.kind, len(near)) == ("hnsw", "exact", 3000)
    queries = unit_rows(100, 32, seed=1)
    ids, scores = near.search(queries, 10)
    best = exact.search(queries, 10)[0]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids.tolist(), best.tolist(), strict=True)])
    assert recall >= 0.95
    for row, query, score in zip(ids, queries, scores, strict=True):
        assert near.cosine(row, query).tolist() == score.tolist()


@pytest.mark.usefixtures("small_limit")
def test_hnsw_is_the_same_each_time(tmp_path: Path) -> None:
    rows, threads = unit_rows(600, 16), faiss.omp_get_max_threads()
    for name in ("a", "b"):
        write_hnsw(tmp_path / name, make_hnsw(Spliced.of(rows)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert faiss.omp_get_max_threads() == threads
    assert make_hnsw(Spliced.of(rows[:100])) is None


class ShortGraph:
    """A graph whose walk from one query met fewer rows than asked for."""

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        ids = np.tile(np.arange(k), (len(queries), 1))
        ids[1, 1:] = -1
        return np.zeros(ids.shape, dtype=np.float32), ids


def test_hnsw_never_gives_a_filler() -> None:
    """D02: where the walk found too few, all rows are compared."""
    rows = unit_rows(40, 8)
    ids, scores = Vectors(rows, ShortGraph()).search(rows[20:23], 5)
    best, score = Vectors(rows).search(rows[21:22], 5)
    assert ids[1].tolist() == best[0].tolist()
    assert scores[1].tolist() == score[0].tolist()
    assert sorted(ids[0].tolist()) != sorted(Vectors(rows).search(rows[20:21], 5)[0][0].tolist())


@pytest.mark.usefixtures("small_limit")
def test_a_graph_over_other_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "entity.hnsw"
    write_hnsw(path, make_hnsw(Spliced.of(unit_rows(200, 16))))
    with pytest.raises(GfmError, match=r"entity\.hnsw: expected a graph over \(199, 16\), found \(200, 16\)"):
        read_hnsw(path, unit_rows(199, 16))
    path.write_bytes(b"\x80\x04not an index")
    with pytest.raises(GfmError, match=r"entity\.hnsw: expected an HNSW graph"):
        read_hnsw(path, unit_rows(200, 16))
