"""The nearest other names of each name: what synonyms are chosen from, and what the next index can build upon."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import faiss
import numpy as np
import regex as re

from gfm.graph.knowledge_graph import pointers
from gfm.index.spliced import Spliced
from gfm.index.vectors import Vectors
from gfm.memory import without_collector
from gfm.progress import track

_DIGITS = re.compile(r"\d+")
_BLOCK = 1 << 24  # scores held at once
_ROUNDING = 1e-5  # by how much a matrix product may miss the cosine of two rows


@dataclass(frozen=True)
class Near:
    """For each of n rows the nearest other rows, best first, ties by number.

    Attributes:
        ptr: int64[n+1], CSR pointers into the other two.
        other: int32[·], row numbers.
        cosine: float32[·], descending for each row.
    """

    ptr: np.ndarray
    other: np.ndarray
    cosine: np.ndarray

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[S, 2], each pair once with the smaller row first, sorted; cosines float32[S]."""
        left = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))
        pairs = np.sort(np.stack([left, self.other.astype(np.int64)], axis=1), axis=1)  # (·, 2)
        first = _first_of_each(pairs)
        return pairs[first], self.cosine[first]


NOBODY = Near(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def nearest(
    rows: Spliced,
    neighbours: int,
    threshold: float,
    known: Near = NOBODY,
    moved: np.ndarray | None = None,
    graph: faiss.Index | None = None,
) -> Near:
    """For each row the ``neighbours`` nearest other rows with a cosine of at least ``threshold``.

    Args:
        rows: Unit vectors float32[n, D].
        neighbours: Most other rows for each row.
        threshold: Least cosine.
        known: The answer for other rows, for the same ``neighbours`` and ``threshold``.
        moved: int64[n'], for each row of ``known`` its number among ``rows``, ascending, or -1 where it is gone. Only
            rows that are new, and those whose list was full and lost a row, are compared with all.
        graph: HNSW over ``rows``; searched instead of comparing all, and then ``known`` is not looked at.
    """
    if graph is not None:
        left, right = _by_graph(rows.whole(), neighbours, graph)
        return _best(len(rows), neighbours, *_at_least(rows, left, right, threshold))
    moved = np.full(len(known.ptr) - 1, -1) if moved is None else moved
    owner = np.repeat(np.arange(len(moved)), np.diff(known.ptr))
    left, right = moved[owner], moved[known.other]
    open_rows = np.ones(len(rows), dtype=bool)
    full = np.diff(known.ptr) == neighbours
    lost = np.bincount(owner[right < 0], minlength=len(moved)) > 0
    open_rows[moved[(moved >= 0) & ~(full & lost)]] = False
    kept = (left >= 0) & (right >= 0)
    old = left[kept], right[kept], known.cosine[kept]
    new = _compare(rows, np.flatnonzero(open_rows), neighbours, threshold)
    return _best(len(rows), neighbours, *(np.concatenate(pair) for pair in zip(old, new, strict=True)))


def _best(num_rows: int, neighbours: int, left: np.ndarray, right: np.ndarray, cosine: np.ndarray) -> Near:
    """The best of directed pairs for each row; a pair that is given twice counts once."""
    order = np.lexsort((right, -cosine, left))
    left, right, cosine = left[order], right[order], cosine[order]
    once = np.ones(len(left), dtype=bool)
    once[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    left, right, cosine = left[once], right[once], cosine[once]
    ptr = pointers(left, num_rows)
    best = np.arange(len(left)) - ptr[left] < neighbours
    return Near(pointers(left[best], num_rows), right[best].astype(np.int32), cosine[best])


def _at_least(
    rows: Spliced, left: np.ndarray, right: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs whose own dot product, whatever block they were found in, reaches the threshold, with it."""
    cosine = np.empty(len(left), dtype=np.float32)
    for i in range(0, len(left), 4096):
        cosine[i : i + 4096] = _dots(rows[left[i : i + 4096]], rows[right[i : i + 4096]])
    kept = cosine >= threshold
    return left[kept], right[kept], cosine[kept]


def _dots(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cosine of each row with its own other, float32[n] in [-1, 1], whatever else is asked in the same call."""
    return np.asarray((rows[:, None, :] @ others[..., None])[:, 0, 0].clip(-1.0, 1.0))  # (n, 1, D) @ (n, D, 1)


def _by_graph(rows: np.ndarray, neighbours: int, graph: faiss.Index) -> tuple[np.ndarray, np.ndarray]:
    ids, _ = Vectors(rows, graph).search(rows, neighbours + 1)  # (n, neighbours + 1), each row itself among them
    left, right = np.repeat(np.arange(len(rows)), ids.shape[1]), ids.ravel()
    return left[left != right], right[left != right]


def _compare(
    rows: Spliced, chosen: np.ndarray, neighbours: int, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of the chosen rows with any other row, in both directions; where all are chosen, each is compared once."""
    every = rows.whole() if len(chosen) == len(rows) else None
    size = max(1, _BLOCK // max(len(rows), 1))
    limit = 4 * neighbours * len(rows)
    left, right, cosine = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    starts = range(0, len(chosen), size)
    for start in track(starts, len(starts), "near names"):
        part, first = chosen[start : start + size], 0 if every is None else start
        block = rows.scores(rows[part]) if every is None else every[part] @ every[first:].T  # (size, n - first)
        near = block >= threshold - _ROUNDING
        if np.count_nonzero(near) > limit:  # a crowd of names all alike, such as dates
            near &= _among_best(block, neighbours + 1)  # one more: a row is its own nearest
        a, b = np.divmod(np.flatnonzero(near), block.shape[1])
        a, b = part[a], b + first
        once = a != b if every is None else a < b
        a, b, found = _at_least(rows, a[once], b[once], threshold)
        left, right = np.concatenate([left, a, b]), np.concatenate([right, b, a])
        cosine = np.concatenate([cosine, found, found])
        if len(left) > limit:  # forget all but the nearest: bounded memory
            best = _best(len(rows), neighbours, left, right, cosine)
            left = np.repeat(np.arange(len(rows)), np.diff(best.ptr))
            right, cosine = best.other.astype(np.int64), best.cosine
    return left, right, cosine


def _among_best(block: np.ndarray, k: int) -> np.ndarray:
    """Whether each score is among the k best of its row or of its column (with ties), bool like ``block``."""
    out = np.zeros(block.shape, dtype=bool)
    for axis, length in enumerate(block.shape):
        at = max(length - k, 0)
        out |= block >= np.take(np.partition(block, at, axis=axis), [at], axis=axis) - _ROUNDING
    return out


@without_collector()
def synonyms(
    keys: Sequence[str],
    near: Near,
    aliases: Collection[tuple[int, int]],
    apart: Collection[tuple[int, ...]] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Edges between near-equal names, and between a name and its forms with a bracket (weight 1).

    Names whose numbers differ are never near-equal: "7 March 1901" is not "8 March 1901"; nor are two of one name that
    ids or types tell apart.

    Args:
        keys: Of the entities.
        near: Their nearest others.
        aliases: Pairs that are one name.
        apart: Groups that share a form and are different things.

    Returns:
        int64[S, 2] unique sorted pairs and float32[S] weights.
    """
    pairs, cosine = near.pairs()
    digits = {i: _DIGITS.findall(keys[i]) for i in np.unique(pairs).tolist() if _DIGITS.search(keys[i])}
    different = {pair for group in apart for pair in combinations(sorted(group), 2)}
    alike = [(a, b) not in different and digits.get(a) == digits.get(b) for a, b in pairs.tolist()]
    kept = np.array(alike, dtype=bool)
    one = np.sort(np.array(list(aliases), dtype=np.int64).reshape(-1, 2), axis=1)
    pairs = np.concatenate([one, pairs[kept]])  # an alias comes first, so that its weight counts
    weight = np.concatenate([np.ones(len(one), np.float32), cosine[kept]])
    first = _first_of_each(pairs)
    return pairs[first], weight[first]


def _first_of_each(pairs: np.ndarray) -> np.ndarray:
    """Where each pair of numbers, int64[·, 2], first stands; in the order of the pairs."""
    return np.unique(pairs[:, 0] * (pairs.max(initial=0) + 1) + pairs[:, 1], return_index=True)[1]
