"""Places in rings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.viewer.layout import Layout, layout


def random_layout(seed: int, n: int, m: int, rings: int = 3, first: int = -1) -> tuple[np.ndarray, Layout]:
    rng = np.random.default_rng(seed)
    ring = np.concatenate([np.arange(rings), rng.integers(0, rings, max(0, n - rings))])
    ends = rng.integers(0, len(ring), (2, m))
    return ring, layout(ring, rng.uniform(1, 3, len(ring)), *ends, np.ones(m), first)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999), n=st.integers(3, 60), m=st.integers(0, 80))
def test_every_node_is_in_its_ring_and_none_on_another(seed: int, n: int, m: int) -> None:
    ring, found = random_layout(seed, n, m)
    radius = np.hypot(*found.xy.T)
    bounds = np.array([0.0, *found.radii])
    assert found.radii == sorted(found.radii)
    assert found.radii[-1] == pytest.approx(1.0)
    assert ((bounds[ring] < radius) & (radius < bounds[ring + 1])).all()
    apart = np.linalg.norm(found.xy[:, None] - found.xy, axis=2) + 9 * np.eye(len(ring))  # (n, n)
    assert apart.min() > 1e-3


def test_the_same_graph_gets_the_same_places() -> None:
    assert np.array_equal(random_layout(4, 80, 150)[1].xy, random_layout(4, 80, 150)[1].xy)


def test_what_is_linked_stands_together() -> None:
    """Ten entities and ten passages in pairs: each passage is nearer to its own entity than to most others."""
    rng = np.random.default_rng(0)
    own = rng.permutation(10)
    found = layout(np.repeat([0, 1], 10), np.ones(20), own, np.arange(10, 20), np.ones(10))
    angle = np.arctan2(found.xy[:, 1], found.xy[:, 0])
    away = np.abs(np.angle(np.exp(1j * (angle[own] - angle[10:]))))
    assert away.max() < 2 * np.pi / 10


def test_the_first_node_is_turned_to_the_right_and_up() -> None:
    x, y = random_layout(1, 30, 40, first=7)[1].xy[7]
    assert x > 0 > y


def test_a_graph_without_nodes_or_links() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert layout(none, none, none, none, none) == (pytest.approx(np.zeros((0, 2))), [])
    one = layout(np.array([0]), np.ones(1), none, none, none)
    assert np.isfinite(one.xy).all()
    assert one.radii == [1.0]
