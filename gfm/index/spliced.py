"""Vectors of an old index with new ones among them: one array that nobody copies together to search or to write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_BLOCK = 4096  # rows copied at once: few enough to stay in the processor's cache


@dataclass(frozen=True)
class Spliced:
    """Rows float32[n, D] from two arrays.

    Attributes:
        old: float32[n', D]; may be memory-mapped.
        new: float32[m, D].
        place: int64[n], for each row its number in ``old``, or n' and its number in ``new``.
    """

    old: np.ndarray
    new: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Spliced:
        """An array as it is."""
        return cls(rows[:0], rows, np.arange(len(rows)))

    def __len__(self) -> int:
        return len(self.place)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, D)."""
        return len(self.place), self.new.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Of both arrays."""
        return self.new.dtype

    @property
    def nbytes(self) -> int:
        """Of all rows."""
        return len(self.place) * int(self.new.shape[1]) * self.new.itemsize

    def whole(self) -> np.ndarray:
        """One array; no copy where all rows are new, as in a first build."""
        alone = not len(self.old) and np.array_equal(self.place, np.arange(len(self.new)))
        return self.new if alone else self[np.arange(len(self))]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Copies of the rows of these numbers, float32[len(rows), D]."""
        place = self.place[rows]
        if not len(self.old):
            return np.asarray(self.new[place])
        out: np.ndarray = np.take(self.old, place, axis=0, mode="clip")  # what is clipped is filled in below
        new = np.flatnonzero(place >= len(self.old))
        out[new] = self.new[place[new] - len(self.old)]
        return out

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, in order, some at a time."""
        yield from (self[np.arange(i, min(i + _BLOCK, len(self)))] for i in range(0, len(self), _BLOCK))

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Inner product of m queries (m, D) with every row, float32[m, n]."""
        return np.asarray(np.concatenate([queries @ self.old.T, queries @ self.new.T], axis=1)[:, self.place])  # (m, n)
