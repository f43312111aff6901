from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gfm.graph.pagerank as pagerank
from gfm.graph.knowledge_graph import KnowledgeGraph, build_graph, expand
from gfm.graph.pagerank import push, transition, walk_matrix


def graph_of(num_entities: int, synonyms: np.ndarray, weight: np.ndarray) -> KnowledgeGraph:
    """A graph whose only links are weighted and go both ways; one passage without a mention is the last node."""
    return build_graph(
        num_entities=num_entities,
        num_passages=1,
        triples=np.zeros((0, 3), dtype=np.int64),
        triple_weight=np.zeros(0),
        fact_passages=[],
        mentions=np.zeros((0, 2), dtype=np.int64),
        subjects=np.array([-1]),
        synonyms=synonyms,
        synonym_weight=weight,
    )


def random_graph(num_entities: int, num_links: int, seed: int) -> KnowledgeGraph:
    """A ring, so that no entity is without a link, and random chords."""
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(num_entities), np.roll(np.arange(num_entities), -1)], axis=1)
    chords = np.sort(rng.integers(0, num_entities, (num_links, 2)), axis=1)
    links = np.unique(np.sort(np.concatenate([ring, chords]), axis=1), axis=0)
    links = links[links[:, 0] != links[:, 1]]
    return graph_of(num_entities, links, rng.uniform(0.2, 1.0, len(links)))


@pytest.mark.parametrize("damping", [0.3, 0.5, 0.85])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
def test_against_networkx(damping: float, tolerance: float) -> None:
    graph = random_graph(40, 80, seed=3)
    seeds, mass = np.array([7, 2, 30]), np.array([1.0, 3.0, 0.5])
    theirs = nx.DiGraph()
    for s, t, w in zip(*graph.edge_index.tolist(), graph.edge_weight.tolist(), strict=True):
        theirs.add_edge(s, t, weight=w)
    share = dict(zip(seeds.tolist(), mass.tolist(), strict=True))
    expected = nx.pagerank(theirs, alpha=damping, personalization=share, weight="weight", tol=1e-14, max_iter=1000)
    ours = push(graph, transition(graph), seeds, mass, damping=damping, tolerance=tolerance, max_rounds=2000)
    error = np.array([expected[i] - ours[i] for i in range(40)])
    # What is left in the residuals is at most tolerance × degree each, and all of it is missing mass.
    assert error.min() > -1e-7  # float32 transition probabilities
    assert error.sum() <= tolerance * graph.num_edges + 1e-6
    assert ours[40] == 0.0


def test_two_rounds_by_hand() -> None:
    """A path 0–1–2 with weights 3 and 1: half the mass stays at 0, the rest walks to 1, and so on."""
    graph = graph_of(3, np.array([[0, 1], [1, 2]]), np.array([3.0, 1.0]))
    assert transition(graph).tolist() == [1.0, 0.75, 0.25, 1.0]
    rank = push(graph, transition(graph), np.array([0]), np.array([8.0]), max_rounds=2)
    assert rank.tolist() == [0.5, 0.25, 0.0, 0.0]
    rank = push(graph, transition(graph), np.array([0]), np.array([8.0]), max_rounds=3)
    assert rank.tolist() == [0.5 + 0.25 * 0.75 * 0.5, 0.25, 0.25 * 0.25 * 0.5, 0.0]


def test_no_seeds_no_mass_no_edges() -> None:
    """A07, A02."""
    graph = random_graph(5, 2, seed=0)
    nobody = np.zeros(0, dtype=np.int64)
    assert push(graph, transition(graph), nobody, np.zeros(0)).tolist() == [0.0] * 6
    assert push(graph, transition(graph), np.array([1, 2]), np.zeros(2)).tolist() == [0.0] * 6
    bare = graph_of(2, np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    assert transition(bare).shape == (0,)
    assert push(bare, transition(bare), np.array([1]), np.array([4.0])).tolist() == [0.0, 0.5, 0.0]


def test_equal_scores_stay_equal() -> None:
    """A01: on a ring with the same mass everywhere every node has the same rank, and none is NaN."""
    ring = np.stack([np.arange(8), np.roll(np.arange(8), -1)], axis=1)
    graph = graph_of(8, ring, np.ones(8))
    rank = push(graph, transition(graph), np.arange(8), np.full(8, 1 / 8), tolerance=1e-12, max_rounds=100)[:8]
    assert np.isfinite(rank).all()
    assert np.ptp(rank) < 1e-12
    assert rank.sum() == pytest.approx(1.0)


def test_a_hub_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A13: a star of 50,000 leaves. From a leaf the hub's share is too thin to walk; from the hub it walks once."""
    leaves = 50_000
    graph = graph_of(leaves + 1, np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)], 1), np.ones(leaves))
    probability = transition(graph)
    walked: list[int] = []

    def counted(ptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = expand(ptr, rows)
        walked.append(len(found[0]))
        return found

    monkeypatch.setattr(pagerank, "expand", counted)
    rank = push(graph, probability, np.array([17]), np.array([1.0]))
    assert walked == [1]
    assert (rank[17], rank[0], rank.sum()) == (0.5, 0.0, 0.5)
    walked.clear()
    rank = push(graph, probability, np.array([0]), np.array([1.0]), tolerance=1.5e-5)
    assert walked == [leaves]
    assert (rank[0], rank.sum()) == (0.5, 0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.95), st.integers(1, 30))
def test_mass_is_never_made(seed: int, damping: float, rounds: int) -> None:
    graph = random_graph(12, 10, seed)
    rng = np.random.default_rng(seed)
    nodes = rng.choice(13, size=4, replace=False)
    before = push(graph, transition(graph), nodes, rng.random(4), damping=damping, max_rounds=rounds)
    assert (before >= 0).all()
    assert before.sum() <= 1 + 1e-6


def test_the_order_of_the_seeds_plays_no_part() -> None:
    graph = random_graph(30, 40, seed=5)
    nodes, mass = np.array([4, 20, 11, 29]), np.array([0.5, 0.125, 0.25, 0.125])
    one = push(graph, transition(graph), nodes, mass)
    two = push(graph, transition(graph), nodes[::-1], mass[::-1])
    assert one.tolist() == two.tolist()


# ---------------------------------------------------------------- over the whole graph


def networkx_rank(graph: KnowledgeGraph, share: dict[int, float], damping: float) -> list[float]:
    """The same by networkx, which also starts anew at a node without edges."""
    theirs = nx.DiGraph()
    theirs.add_nodes_from(range(graph.num_nodes))
    for s, t, w in zip(*graph.edge_index.tolist(), graph.edge_weight.tolist(), strict=True):
        theirs.add_edge(s, t, weight=w)
    found = nx.pagerank(theirs, alpha=damping, personalization=share, tol=1e-15, max_iter=2000)
    return [found[i] for i in range(graph.num_nodes)]


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.85])
@pytest.mark.parametrize("share", [{7: 1.0, 2: 3.0, 30: 0.5}, {40: 1.0}, {40: 2.0, 3: 1.0}])
def test_whole_against_networkx(damping: float, share: dict[int, float]) -> None:
    """Also from the passage, which has no edge."""
    graph = random_graph(40, 80, seed=3)
    nodes, mass = np.array(list(share)), np.array(list(share.values()))
    rank = pagerank.pagerank(walk_matrix(graph), nodes, mass, damping=damping)
    assert rank == pytest.approx(networkx_rank(graph, share, damping), abs=1e-9)


def test_whole_by_hand() -> None:
    """A path 0–1–2 from its end: a = 1/2 + b/4, b = a/2 + c/2, c = b/4."""
    graph = graph_of(3, np.array([[0, 1], [1, 2]]), np.array([1.0, 1.0]))
    rank = pagerank.pagerank(walk_matrix(graph), np.array([0]), np.array([9.0]))
    assert rank == pytest.approx([7 / 12, 4 / 12, 1 / 12, 0.0], abs=1e-10)


def test_an_edge_of_weight_0_is_none() -> None:
    graph = graph_of(3, np.array([[0, 1], [1, 2]]), np.array([1.0, 1.0]))
    walk = walk_matrix(graph, np.where((graph.edge_index == 2).any(axis=0), 0.0, 1.0))
    assert walk.nnz == 2
    rank = pagerank.pagerank(walk, np.array([0]), np.array([1.0]))
    assert rank == pytest.approx([2 / 3, 1 / 3, 0.0, 0.0], abs=1e-10)


def test_links_between_the_same_two_add_up() -> None:
    """1 is thrice as near to 0 as 2 is: two links of 1 and 2 beside one of 1."""
    graph = graph_of(3, np.array([[0, 1], [0, 1], [0, 2]]), np.array([1.0, 2.0, 1.0]))
    rank = pagerank.pagerank(walk_matrix(graph), np.array([0]), np.array([1.0]))
    assert rank == pytest.approx([2 / 3, 1 / 4, 1 / 12, 0.0], abs=1e-10)


def test_whole_without_mass_or_edges() -> None:
    bare = graph_of(2, np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    walk = walk_matrix(bare)
    assert pagerank.pagerank(walk, np.array([1, 2]), np.array([1.0, 3.0])).tolist() == [0.0, 0.25, 0.75]
    assert pagerank.pagerank(walk, np.array([1]), np.zeros(1)).tolist() == [0.0] * 3
    assert pagerank.pagerank(walk, np.zeros(0, dtype=np.int64), np.zeros(0)).tolist() == [0.0] * 3


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.9))
def test_whole_sums_to_1_and_is_what_pushing_on_and_on_comes_to(seed: int, damping: float) -> None:
    graph = random_graph(12, 10, seed)
    rng = np.random.default_rng(seed)
    nodes, mass = rng.choice(12, size=4, replace=False), rng.random(4) + 0.01
    rank = pagerank.pagerank(walk_matrix(graph), nodes, mass, damping=damping)
    assert (rank >= 0).all()
    assert rank.sum() == pytest.approx(1.0)
    pushed = push(graph, transition(graph), nodes, mass, damping=damping, tolerance=1e-12, max_rounds=2000)
    assert rank == pytest.approx(pushed, abs=1e-6)
