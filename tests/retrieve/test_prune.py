from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, INVERSE_MENTION, MENTION
from gfm.retrieve.candidates import NO_HOP, CandidateBuilder, Candidates
from gfm.retrieve.prune import evidence_paths, prune
from gfm.retrieve.signals import CandidateSettings

Stub = Callable[..., SimpleNamespace]


def graph_of(hop: Sequence[int], num_passages: int, links: Sequence[tuple[int, int, int]]) -> Candidates:
    """A subgraph of ``hop`` entities, then passages; links (source, target, kind) in both directions."""
    back = {FACT: INVERSE_FACT, MENTION: INVERSE_MENTION}
    edges = sorted({*links, *((t, s, back[k]) for s, t, k in links)}, key=lambda e: (e[1], e[0], e[2]))
    source, target, kind = (
        (np.array(x, dtype=np.int64) for x in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
    )
    return Candidates(
        entities=np.arange(len(hop)),
        passages=np.arange(num_passages),
        hop=np.array([*hop, *[NO_HOP] * num_passages], dtype=np.int8),
        edge_index=np.stack([source, target]),
        edge=np.arange(len(edges)),
        edge_kind=kind.astype(np.int8),
        num_start=list(hop).count(0),
        hubs=0,
    )


# Entities 0 → 1 → 2, of which 0 is the start; passage 3 names 0, passage 4 names 2, passage 5 names nobody.
CHAIN = graph_of([0, 1, 2], 3, [(0, 1, FACT), (1, 2, FACT), (3, 0, MENTION), (4, 2, MENTION)])


def facts_of(found: Candidates) -> np.ndarray:
    return np.isin(found.edge_kind, (FACT, INVERSE_FACT))


def paths_of(
    found: Candidates, node: Sequence[float], overlap: Sequence[float], targets: Sequence[int], steps: int = 4
) -> dict[int, list[tuple[int, int]]]:
    edge = np.ones(found.edge_index.shape[1])
    paths = evidence_paths(
        found, np.array(node), edge, facts_of(found), np.array(overlap), np.array(targets, dtype=np.int64), steps
    )
    return {t: [tuple(found.edge_index[:, e].tolist()) for e in path] for t, path in paths.items()}


def test_the_path_of_a_chain() -> None:
    found = paths_of(CHAIN, [0.5] * 6, [1.0] * 6, [4, 3, 5])
    assert found == {4: [(0, 1), (1, 2), (2, 4)], 3: [(0, 3)]}  # nothing leads to 5


def test_the_path_is_as_long_as_allowed() -> None:
    assert paths_of(CHAIN, [0.5] * 6, [1.0] * 6, [4], steps=2) == {}
    assert paths_of(CHAIN, [0.5] * 6, [1.0] * 6, [4], steps=3) == {4: [(0, 1), (1, 2), (2, 4)]}


def test_a_start_that_is_itself_wanted_needs_no_step() -> None:
    assert paths_of(CHAIN, [0.5] * 6, [1.0] * 6, [0]) == {0: []}


def test_nothing_to_start_from_no_targets_and_no_edges() -> None:
    unseen = graph_of([1, 2], 1, [(0, 1, FACT), (2, 1, MENTION)])
    assert paths_of(unseen, [0.5] * 3, [1.0] * 3, [2]) == {}
    assert paths_of(CHAIN, [0.5] * 6, [1.0] * 6, []) == {}
    assert paths_of(graph_of([0], 1, []), [0.5] * 2, [1.0] * 2, [1]) == {}
    assert paths_of(graph_of([], 1, []), [0.5], [1.0], [0]) == {}


def test_the_path_goes_where_the_network_saw_evidence() -> None:
    """Two ways of two steps from 0 to passage 3, over entity 1 or 2."""
    fork = graph_of([0, 1, 1], 1, [(0, 1, FACT), (0, 2, FACT), (3, 1, MENTION), (3, 2, MENTION)])
    assert paths_of(fork, [0.9, 0.2, 0.8, 0.9], [1.0] * 4, [3]) == {3: [(0, 2), (2, 3)]}
    assert paths_of(fork, [0.9, 0.8, 0.2, 0.9], [1.0] * 4, [3]) == {3: [(0, 1), (1, 3)]}
    assert paths_of(fork, [0.9, 0.5, 0.5, 0.9], [1.0] * 4, [3]) == {3: [(0, 1), (1, 3)]}  # of equals, the first


def test_a_fact_of_low_probability_is_gone_round() -> None:
    fork = graph_of([0, 1, 1], 1, [(0, 1, FACT), (0, 2, FACT), (3, 1, MENTION), (3, 2, MENTION)])
    edge = np.ones(fork.edge_index.shape[1])
    edge[(fork.edge_index[0] == 0) & (fork.edge_index[1] == 1)] = 0.01
    path = evidence_paths(fork, np.full(4, 0.5), edge, facts_of(fork), np.ones(4), np.array([3]))[3]
    assert [fork.edge_index[:, e].tolist() for e in path] == [[0, 2], [2, 3]]


def test_a_start_that_the_question_names_goes_first() -> None:
    """Passage 4 names start 1, which the question does not; start 0, which it does, is two steps away."""
    found = graph_of([0, 0, 1], 2, [(0, 2, FACT), (4, 2, MENTION), (4, 1, MENTION)])
    assert paths_of(found, [0.9] * 5, [1.0, 0.0, 0.0, 0.0, 0.0], [4]) == {4: [(0, 2), (2, 4)]}
    assert paths_of(found, [0.9] * 5, [1.0, 1.0, 0.0, 0.0, 0.0], [4]) == {4: [(1, 4)]}


def test_a_step_has_its_price() -> None:
    """Start 0 (0.5) names the passage: -ln 0.5 + 0.7. Start 1 (0.9) does by way of 2 (1.0): -ln 0.9 + 1.4: more."""
    found = graph_of([0, 0, 1], 1, [(1, 2, FACT), (3, 0, MENTION), (3, 2, MENTION)])
    assert paths_of(found, [0.5, 0.9, 1.0, 0.9], [1.0] * 4, [3]) == {3: [(0, 3)]}
    assert paths_of(found, [0.4, 0.9, 1.0, 0.9], [1.0] * 4, [3]) == {3: [(1, 2), (2, 3)]}


def test_a09_in_a_triangle_the_short_way_is_the_path() -> None:
    """0 – 1 – 2 – 0: from 0 to 2 it is one step, and 0 → 1 → 2 is no path of one step."""
    triangle = graph_of([0, 1, 1], 0, [(0, 1, FACT), (1, 2, FACT), (2, 0, FACT)])
    assert paths_of(triangle, [0.9] * 3, [1.0] * 3, [2]) == {2: [(0, 2)]}


def test_probabilities_of_nothing_stay_finite() -> None:
    assert paths_of(CHAIN, [0.0] * 6, [0.0] * 6, [4]) == {4: [(0, 1), (1, 2), (2, 4)]}


def test_prune_by_hand() -> None:
    """A third of three entities, of three passages and of four fact edges; the mention of a kept pair stays."""
    node = np.array([0.9, 0.1, 0.2, 0.8, 0.1, 0.2])
    edge = np.where(CHAIN.edge_kind < 2, 0.1, 1.0)
    is_fact = CHAIN.edge_kind < 2
    kept = prune(CHAIN, node, edge, is_fact, 1 / 3, [])
    assert kept.node.tolist() == [True, False, False, True, False, False]
    assert {tuple(e) for e in CHAIN.edge_index[:, kept.edge].T.tolist()} == {(0, 3), (3, 0)}
    path = evidence_paths(CHAIN, node, edge, facts_of(CHAIN), np.ones(6), np.array([4]))[4]
    whole = prune(CHAIN, node, edge, is_fact, 1 / 3, path)
    assert whole.node.tolist() == [True, True, True, True, True, False]
    assert whole.edge[path].all()


def test_everything_is_kept_at_a_share_of_one() -> None:
    kept = prune(CHAIN, np.full(6, 0.5), np.full(8, 0.5), CHAIN.edge_kind < 2, 1.0, [])
    assert kept.node.all()
    assert kept.edge.all()


def test_prune_of_nothing() -> None:
    kept = prune(graph_of([], 0, []), np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), 0.3, [])
    assert (kept.node.shape, kept.edge.shape) == ((0,), (0,))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_links=st.integers(0, 40),
    keep=st.floats(0.01, 1.0),
    fanout=st.sampled_from([3, 1000]),
    data=st.data(),
)
def test_what_is_kept_holds_together(
    random_index: Stub, seed: int, num_links: int, keep: float, fanout: int, data: st.DataObject
) -> None:
    index = random_index(seed, 10, 6, num_links)
    builder = CandidateBuilder(index, CandidateSettings(seeds=2, facts=1, max_fanout=fanout))
    found = builder.build(builder.signals("mill", np.eye(1, 4, dtype=np.float32)[0]))
    n_e, n = len(found.entities), len(found.hop)
    rng = np.random.default_rng(seed)
    node, overlap = rng.random(n).round(1), rng.random(n).round(1)
    is_fact = index.graph.edge_triple[found.edge] >= 0
    edge = np.where(is_fact, rng.random(len(is_fact)).round(1), 1.0)
    targets = np.array(data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=4)), dtype=np.int64)
    paths = evidence_paths(found, node, edge, facts_of(found), overlap, targets)
    source, target = found.edge_index

    reached = {i for i in range(n_e) if found.hop[i] == 0}
    for _ in range(4):
        reached |= {int(t) for s, t in found.edge_index.T if int(s) in reached}
    assert set(paths) == {int(t) for t in targets} & reached
    for goal, path in paths.items():
        assert len(path) <= 4
        stops = [int(source[path[0]]) if path else goal, *(int(target[e]) for e in path)]
        assert stops[-1] == goal
        assert found.hop[stops[0]] == 0
        assert stops[0] < n_e
        assert all(target[a] == source[b] for a, b in pairwise(path))
        assert len(set(stops)) == len(stops)
    assert paths == evidence_paths(found, node, edge, facts_of(found), overlap, targets)

    whole = sorted({e for path in paths.values() for e in path})
    kept = prune(found, node, edge, is_fact, keep, whole)
    assert kept.node[source[kept.edge]].all()
    assert kept.node[target[kept.edge]].all()
    assert kept.edge[whole].all()
    spared = {int(x) for e in whole for x in (source[e], target[e])}
    assert kept.node[:n_e].sum() <= ceil(keep * n_e) + len(spared)
    assert kept.node[n_e:].sum() <= ceil(keep * (n - n_e)) + len(spared)
    assert (kept.edge & is_fact).sum() <= ceil(keep * is_fact.sum()) + len(whole)
    # No dropped node of a kind is better than a kept one, but for those on a path.
    for part in (range(n_e), range(n_e, n)):
        dropped = [node[i] for i in part if not kept.node[i]]
        stay = [node[i] for i in part if kept.node[i] and i not in spared]
        assert not dropped or not stay or max(dropped) <= min(stay)
    again = prune(found, node, edge, is_fact, keep, whole)
    assert np.array_equal(kept.node, again.node)
    assert np.array_equal(kept.edge, again.edge)


@pytest.mark.parametrize("keep", [0.01, 0.3, 1.0])
def test_the_best_is_always_kept(keep: float) -> None:
    node = np.array([0.1, 0.9, 0.2, 0.3, 0.1, 0.6])
    kept = prune(CHAIN, node, np.full(8, 0.5), CHAIN.edge_kind < 2, keep, [])
    assert kept.node[1]
    assert kept.node[5]


def test_a_small_subgraph_keeps_at_least_as_much_as_was_asked() -> None:
    """Of three entities, three passages and four facts a share of 0.1 is one each; with ``least`` 2 it is two each."""
    edge = np.linspace(0.1, 0.9, CHAIN.edge_index.shape[1])
    node = np.array([0.9, 0.8, 0.7, 0.9, 0.8, 0.7])
    alone = prune(CHAIN, node, edge, facts_of(CHAIN), 0.1, [])
    more = prune(CHAIN, node, edge, facts_of(CHAIN), 0.1, [], least=2)
    assert alone.node.tolist() == [True, False, False, True, False, False]
    assert more.node.tolist() == [True, True, False, True, True, False]
    everything = prune(CHAIN, node, edge, facts_of(CHAIN), 0.1, [], least=100)
    assert everything.node.all()
    assert everything.edge.all()
