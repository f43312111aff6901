"""Nearest-neighbour search over unit vectors by FAISS: exact up to 200,000 rows, HNSW above."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

from gfm.types import GfmError

EXACT_LIMIT = 200_000
_SPARE = 8  # rows looked at beyond the k-th, so that rounding inside FAISS cannot decide who is in


class Vectors:
    """Unit vectors float32[n, D] with inner-product (cosine) search.

    Args:
        rows: The vectors; may be memory-mapped.
        graph: An HNSW index over the same rows, where the search is approximate.
    """

    def __init__(self, rows: np.ndarray, graph: faiss.Index | None = None):
        self.rows = rows
        self._graph = graph

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def kind(self) -> str:
        """``exact`` or ``hnsw``."""
        return "exact" if self._graph is None else "hnsw"

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query, best first, ties by row number.

        A score depends on the row and the query alone, not on what else is searched for or found: it is `cosine`.

        Args:
            queries: float32[m, D], unit norm.
            k: Cut to the number of rows, so that no result is ever a filler (-1).

        Returns:
            ids int64[m, k'] and cosines float32[m, k'] in [-1, 1].

        Raises:
            GfmError: The queries have another dimension than the rows, or are not finite.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.rows.shape[1] or not np.isfinite(queries).all():
            raise GfmError(
                f"expected finite query vectors of shape (m, {self.rows.shape[1]}) as in the index, found "
                f"{queries.shape}; use the encoder that the index was built with"
            )
        k = min(k, len(self.rows))
        if k < 1 or not len(queries):
            return np.zeros((len(queries), max(k, 0)), np.int64), np.zeros((len(queries), max(k, 0)), np.float32)
        found = np.sort(self._nearest(queries, min(k + _SPARE, len(self.rows))), axis=1)  # (m, k + spare)
        scores = np.stack([self.cosine(row, query) for row, query in zip(found, queries, strict=True)])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # stable over ascending ids
        return np.take_along_axis(found, order, 1), np.take_along_axis(scores, order, 1)

    def _nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Row numbers int64[m, k] of the nearest rows, in no order."""
        if self._graph is None:
            return self._exact(queries, k)
        ids: np.ndarray = self._graph.search(queries, k)[1].astype(np.int64)
        short = (ids < 0).any(axis=1)  # the walk over the graph met fewer than k rows
        if short.any():
            ids[short] = self._exact(queries[short], k)
        return ids

    def _exact(self, queries: np.ndarray, k: int) -> np.ndarray:
        ids: np.ndarray = faiss.knn(queries, self.rows, k, metric=faiss.METRIC_INNER_PRODUCT)[1]
        return ids.astype(np.int64)

    def cosine(self, ids: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Cosine of the given rows with one query, float32[len(ids)] in [-1, 1]."""
        return row_dots(self.rows[ids], query)

    def cosines(self, ids: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Cosine of the given rows with each of m queries (m, D), float32[len(ids), m]; the rows are gathered once."""
        rows = self.rows[ids]
        return np.stack([row_dots(rows, query) for query in queries], axis=1)


def row_dots(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cosine of each row with its own other, or with the one other of all, float32[n] in [-1, 1].

    One dot product a row: a single matrix product rounds a row's score by where it stands among the rest.
    """
    scores = (rows[:, None, :] @ others[..., None])[:, 0, 0]  # (n, 1, D) @ ([n,] D, 1)
    return np.asarray(np.clip(scores, -1.0, 1.0))


def make_hnsw(rows: np.ndarray) -> faiss.Index | None:
    """An HNSW graph for more than `EXACT_LIMIT` rows, else None; the same rows make the same graph.

    Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using HNSW", 2018.
    """
    if len(rows) <= EXACT_LIMIT:
        return None
    index = faiss.IndexHNSWFlat(rows.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 200, 128
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # with several, the links depend on which row happens to come first
    try:
        index.add(np.ascontiguousarray(rows))
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def write_hnsw(path: Path, index: faiss.Index) -> None:
    """Write through bytes, so that any folder name works on any system."""
    path.write_bytes(faiss.serialize_index(index).tobytes())


def read_hnsw(path: Path, rows: np.ndarray) -> faiss.Index:
    """Read a graph whose checksum was verified, and check that it is over these rows.

    Raises:
        GfmError: It is not.
    """
    try:
        index = faiss.deserialize_index(np.frombuffer(path.read_bytes(), dtype=np.uint8))
    except (RuntimeError, OSError) as error:  # what FAISS raises for anything that is no index
        raise GfmError(f"{path}: expected an HNSW graph, found: {error}; build the index again") from error
    if (index.ntotal, index.d) != rows.shape:
        raise GfmError(
            f"{path}: expected a graph over {rows.shape}, found {(index.ntotal, index.d)}; build the index again"
        )
    return index
