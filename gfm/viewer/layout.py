"""Places for the nodes of a candidate graph: rings by hop, each node near the angle of its neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

_HEART = 0.13  # radius that is left for the question in the middle
_LEAST = 0.11  # least share of the area that a ring gets
_SWEEPS = 40
_BEST = -0.55  # radians: where the first node of `first` goes, right of the middle and above it


class Layout(NamedTuple):
    """Places in the unit disc: ``xy`` float64[n, 2], y downwards, and the outer radius of each ring, from within."""

    xy: np.ndarray
    radii: list[float]


def layout(
    ring: np.ndarray, room: np.ndarray, source: np.ndarray, target: np.ndarray, weight: np.ndarray, first: int = -1
) -> Layout:
    """Give every node a place.

    The angles start from the second and third eigenvectors of the graph's normalised Laplacian and then move, ring by
    ring, to the mean direction of each node's neighbours (the barycentre heuristic of Sugiyama et al., 1981, on
    circles), spread so that every node has its room.

    Args:
        ring: int[n], 0 the innermost; every number up to the highest occurs.
        room: float[n], area that a node needs, relative to the others.
        source: int[m], one end of each link.
        target: int[m], the other.
        weight: float[m], how near its ends should be.
        first: Node that is turned to the right of the middle; none below 0.
    """
    n = len(ring)
    if not n:
        return Layout(np.zeros((0, 2)), [])
    rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
    near = csr_array((np.tile(weight, 2), (rows, columns)), shape=(n, n))  # (n, n)
    members = [np.flatnonzero(ring == k) for k in range(int(ring.max()) + 1)]
    angle = _spectral(near)
    order = [*range(len(members)), *reversed(range(len(members)))]
    for _ in range(_SWEEPS // 2):
        for k in order:
            angle[members[k]] = _spread(_wanted(near, angle, members[k]), room[members[k]])
    if first >= 0:
        angle += _BEST - angle[first]
    radii, radius = _radii(members, room, angle)
    return Layout(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), radii)


def _spectral(near: csr_array) -> np.ndarray:
    """Angles, float64[n], that put linked nodes together."""
    n = near.shape[0]
    if n < 3:
        return np.linspace(0.0, np.pi, n)
    dense = near.toarray() + 1e-3  # a little between all keeps the graph connected
    scale = 1.0 / np.sqrt(dense.sum(axis=1))
    vectors = np.linalg.eigh(dense * scale[:, None] * scale)[1][:, -3:-1]  # (n, 2)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])  # a vector's sign is arbitrary: fix it
    both = vectors * signs * scale[:, None]
    return np.asarray(np.arctan2(both[:, 0], both[:, 1]))


def _wanted(near: csr_array, angle: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Mean direction of each member's neighbours, float64[m]; its own angle where it has none."""
    pull = near[members] @ np.exp(1j * angle)
    return np.asarray(np.where(np.abs(pull) > 1e-9, np.angle(pull), angle[members]))


def _spread(wanted: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Angles in the order of those wanted, each with its share of the circle, turned to where they are wanted."""
    order = np.lexsort((np.arange(len(wanted)), np.mod(wanted, 2 * np.pi)))
    share = room[order] / room.sum()
    slot = np.empty(len(wanted))
    slot[order] = 2 * np.pi * (np.cumsum(share) - share / 2)
    return slot + float(np.angle(np.exp(1j * (wanted - slot)).sum()))


def _radii(members: list[np.ndarray], room: np.ndarray, angle: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Outer radius of each ring, by the area that it needs, and each node's radius: lanes that neighbours share out."""
    total = np.array([room[m].sum() for m in members])
    area = np.maximum(total / total.sum(), _LEAST)
    outer = np.sqrt(_HEART**2 + (1 - _HEART**2) * np.cumsum(area) / area.sum())
    radius = np.empty(len(room))
    inner = _HEART
    for m, end in zip(members, outer, strict=True):
        thick = end - inner
        lanes = max(1, round(thick / np.sqrt(np.pi * (end**2 - inner**2) / max(len(m), 1))))
        turn = np.argsort(angle[m], kind="stable")
        radius[m[turn]] = inner + thick * (np.arange(len(m)) % lanes + 0.5) / lanes
        inner = end
    return [float(x) for x in outer], radius
