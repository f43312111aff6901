"""Nearest-neighbour search over unit vectors by FAISS: exact up to 200,000 rows, HNSW above."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import faiss
import numpy as np

from gfm.index.codes import Codes
from gfm.index.spliced import Spliced
from gfm.types import GfmError

EXACT_LIMIT = 200_000
_SPARE = 8  # rows that a walk looks at beyond the k-th, so that rounding inside FAISS cannot decide who is in
_CODED = 1024  # rows from which a search reads codes first


class Vectors:
    """Unit vectors float32[n, D] with inner-product (cosine) search.

    Args:
        rows: The vectors; may be memory-mapped.
        graph: An HNSW index over the same rows, where the search is approximate.
    """

    def __init__(self, rows: np.ndarray, graph: faiss.Index | None = None):
        self.rows = np.ascontiguousarray(rows, dtype=np.float32)
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
        near = self._by_graph(queries, k) if self._graph is not None else [self._exact(query, k) for query in queries]
        best = [np.argsort(-scores, kind="stable")[:k] for _, scores in near]  # stable over ascending rows
        return (
            np.stack([rows[order] for (rows, _), order in zip(near, best, strict=True)]),
            np.stack([scores[order] for (_, scores), order in zip(near, best, strict=True)]),
        )

    def _by_graph(self, queries: np.ndarray, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows among which the nearest of each query are, sorted, and their cosines; found by a walk over the graph."""
        assert self._graph is not None
        found = self._graph.search(queries, min(k + _SPARE, len(self.rows)))[1].astype(np.int64)  # (m, k + spare)
        # -1: the walk met fewer rows than were asked for.
        return [
            (rows := np.sort(ids), self.cosine(rows, query)) if ids.min() >= 0 else self._exact(query, k)
            for ids, query in zip(found, queries, strict=True)
        ]

    def _exact(self, query: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows among which the k nearest are, sorted, and their cosines; all rows where codes leave a doubt."""
        if len(self.rows) >= _CODED:
            rows, bound = self._codes.search(query, k)
            scores = self.cosine(rows, query)
            if np.count_nonzero(scores > bound) >= k:
                return rows, scores
        every = np.arange(len(self.rows))
        return every, self.cosine(every, query)

    @cached_property
    def _codes(self) -> Codes:
        return Codes(self.rows)

    def cosine(self, ids: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Cosine of the given rows with one query, float32[len(ids)] in [-1, 1]."""
        return self.cosines(ids, query[None])[:, 0]

    def cosines(self, ids: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Cosine of the given rows with each of m queries (m, D), float32[len(ids), m].

        One dot product a pair: a matrix product rounds a row's score by where it stands among the rest.
        """
        (m, dim), n = queries.shape, len(ids)
        out, queries = np.empty((m, n), dtype=np.float32), np.ascontiguousarray(queries, dtype=np.float32)
        wanted = np.ascontiguousarray(np.broadcast_to(ids, (m, n)), dtype=np.int64)
        pointers = (faiss.swig_ptr(array) for array in (out, queries, self.rows, wanted))
        faiss.fvec_inner_products_by_idx(*pointers, dim, m, n)  # type: ignore[attr-defined]
        return np.clip(out.T, -1.0, 1.0)


def make_hnsw(rows: Spliced) -> faiss.Index | None:
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
        index.add(np.ascontiguousarray(rows.whole()))
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
