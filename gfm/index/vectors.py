"""Nearest-neighbour search over unit vectors by FAISS: exact up to 200,000 rows, HNSW above."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

from gfm.types import GfmError

EXACT_LIMIT = 200_000


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

        Args:
            queries: float32[m, D], unit norm.
            k: Cut to the number of rows, so that no result is ever a filler (-1).

        Returns:
            ids int64[m, k'] and cosines float32[m, k'] in [-1, 1].
        """
        k = min(k, len(self.rows))
        if k < 1:
            return np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32)
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if self._graph is None:
            scores, ids = faiss.knn(queries, self.rows, k, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            scores, ids = self._graph.search(queries, k)
        order = np.lexsort((ids, -scores), axis=1)
        ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
        return ids.astype(np.int64), np.clip(scores, -1.0, 1.0)

    def cosine(self, ids: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Cosine of the given rows with one query, float32[len(ids)] in [-1, 1]."""
        return np.clip(self.rows[ids] @ query, -1.0, 1.0)


def make_hnsw(rows: np.ndarray) -> faiss.Index | None:
    """An HNSW graph for more than `EXACT_LIMIT` rows, else None.

    Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using HNSW", 2018.
    """
    if len(rows) <= EXACT_LIMIT:
        return None
    index = faiss.IndexHNSWFlat(rows.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 200, 128
    index.add(np.ascontiguousarray(rows))
    return index


def write_hnsw(path: Path, index: faiss.Index) -> None:
    """Write through bytes, so that any folder name works on any system."""
    path.write_bytes(faiss.serialize_index(index).tobytes())


def read_hnsw(path: Path, rows: np.ndarray) -> faiss.Index:
    """Read a graph whose checksum was verified, and check that it is over these rows."""
    index = faiss.deserialize_index(np.frombuffer(path.read_bytes(), dtype=np.uint8))
    if (index.ntotal, index.d) != rows.shape:
        raise GfmError(f"{path}: expected a graph over {rows.shape}, found {(index.ntotal, index.d)}; build the index again")
    return index


def similar_pairs(rows: np.ndarray, neighbours: int, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows with a cosine of at least ``threshold`` among each other's nearest ``neighbours``.

    Returns:
        int64[S, 2], each pair once with the smaller row first, sorted; cosines float32[S].
    """
    vectors = Vectors(rows, make_hnsw(rows))
    ids, scores = vectors.search(rows, neighbours + 1)
    left = np.repeat(np.arange(len(rows)), ids.shape[1])
    right, score = ids.ravel(), scores.ravel()
    keep = (score >= threshold) & (left != right)
    pairs = np.sort(np.stack([left[keep], right[keep]], axis=1), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    return pairs, score[keep][first]
