"""Exact nearest rows by a scan of 8-bit codes: a quarter of the bytes to read, with a bound on what rounding can do."""

from __future__ import annotations

import faiss
import numpy as np

_LEVELS = 127  # a coordinate becomes a whole number from -127 to 127
_MORE = 256  # rows taken by their codes beyond those wanted; the proof below then fails next to never
_BLOCK = 1 << 16


class Codes:
    """Vectors rounded to 8 bits a coordinate, and how far off the rounding is.

    Args:
        rows: Vectors float32[n, D].
    """

    def __init__(self, rows: np.ndarray):
        self._codes = faiss.IndexScalarQuantizer(
            rows.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        self._scale, self._error = _scale(rows), 0.0
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            whole = np.rint(block * self._scale)
            self._codes.add(whole)
            self._error = max(self._error, float(np.linalg.norm(block - whole / self._scale, axis=1).max()))

    def search(self, query: np.ndarray, k: int) -> tuple[np.ndarray, float]:
        """Rows among which the nearest are, and the most that the inner product of any other row can be.

        With x̂ and q̂ for what rounding leaves, ⟨x, q⟩ = ⟨x̂, q̂⟩ + ⟨x - x̂, q̂⟩ + ⟨x, q - q̂⟩, so by Cauchy and Schwarz a
        unit row's product is off by at most ‖x - x̂‖ ‖q̂‖ + ‖q - q̂‖.

        Args:
            query: float32[D].
            k: How many nearest are wanted; more are returned.

        Returns:
            int64[m], sorted, and the bound: where the k-th best of these is above it, the k best of all are among them.
        """
        scale = _scale(query)
        whole = np.rint(query * scale)
        scores, ids = self._codes.search(whole[None], min(k + _MORE, self._codes.ntotal))
        if ids.shape[1] == self._codes.ntotal:
            return np.sort(ids[0]), -np.inf
        off = self._error * float(np.linalg.norm(whole / scale)) + float(np.linalg.norm(query - whole / scale))
        return np.sort(ids[0]), float(scores[0, -1]) / (self._scale * scale) + off


def _scale(values: np.ndarray) -> float:
    return _LEVELS / max(float(values.max()), -float(values.min()), 1e-12)
