from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, MIRROR
from gfm.index.index import GraphIndex
from gfm.retrieve.candidates import NO_HOP, CandidateBuilder, Candidates, top
from gfm.retrieve.signals import CandidateSettings

Stub = Callable[..., SimpleNamespace]
ONE_SEED = CandidateSettings(seeds=1, facts=0)
X = np.array([1, 0, 0, 0], dtype=np.float32)
AXES = np.eye(4, dtype=np.float32)


def find(index: Any, settings: CandidateSettings, text: str = "?", vector: np.ndarray = X) -> Candidates:
    builder = CandidateBuilder(index, settings)
    return builder.build(builder.signals(text, vector))


def hops(found: Candidates) -> dict[int, int]:
    return dict(zip(found.entities.tolist(), found.hop[: len(found.entities)].tolist(), strict=True))


# ---------------------------------------------------------------- hops


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, {0: 0, 1: 1, 2: 2}), (2, {0: 2, 1: 1, 2: 0}), (1, {0: 1, 1: 0, 2: 1})]
)
def test_a08_a_chain_is_walked_from_both_ends(stub_index: Stub, seed: int, expected: dict[int, int]) -> None:
    """A → B → C: facts are followed both ways."""
    vectors = np.tile(AXES[1], (3, 1))
    vectors[seed] = X
    found = find(stub_index(["A", "B", "C"], [(0, 1, ()), (1, 2, ())], entity_vectors=vectors), ONE_SEED)
    assert hops(found) == expected
    assert found.num_start == 1
    edges = list(zip(*found.edge_index.tolist(), found.edge_kind.tolist(), strict=True))
    assert edges == [(1, 0, INVERSE_FACT), (0, 1, FACT), (2, 1, INVERSE_FACT), (1, 2, FACT)]


def test_named_entities_are_started_from_first(stub_index: Stub) -> None:
    """The nearest name is C; the question names B, in a passage, and is given one place to start from."""
    vectors = np.tile(AXES[1], (3, 1))
    vectors[2] = X
    index = stub_index(["Ann", "Bo", "Cy"], passages=["Bo"], entity_vectors=vectors)
    none = replace(ONE_SEED, hops=0)
    assert hops(find(index, none, "Bo?")) == {2: 0}
    assert hops(find(index, replace(none, named=1, max_start=1), "Bo?")) == {1: 0}
    assert hops(find(index, replace(none, named=1, max_start=1), "Who?")) == {2: 0}


def test_a_walk_is_judged_as_a_whole(stub_index: Stub) -> None:
    """From A over a fact of cosine 1 to B, of 0.1 to H; B – X with 0.3, H – Y with 0.6, and H has nine more facts.

    The last step alone prefers Y (0.6 against 0.3, equal degrees); the way to X fits as a whole: 0.3 / √2 against
    0.1 · 0.6 / √11.
    """
    names = ["A", "B", "H", "X", "Y", *(f"n{i}" for i in range(9))]
    facts = [(0, 1, ()), (0, 2, ()), (1, 3, ()), (2, 4, ()), *((2, 5 + i, ()) for i in range(9))]
    cosine = np.array([1.0, 0.1, 0.3, 0.6, *[0.0] * 9])
    rows = np.stack([cosine, np.sqrt(1 - cosine**2), 0 * cosine, 0 * cosine], axis=1)
    entities = np.stack([X, *[AXES[1]] * (len(names) - 1)])
    index = stub_index(names, facts, entity_vectors=entities, fact_vectors=rows)
    narrow = replace(ONE_SEED, max_entities=4)  # A, both its neighbours, and one more
    assert set(hops(find(index, narrow))) == {0, 1, 2, 4}
    assert set(hops(find(index, replace(narrow, walk=1)))) == {0, 1, 2, 3}


def test_a09_in_a_triangle_hops_are_distances(stub_index: Stub) -> None:
    """One hop from 0 brings the edge between 1 and 2 with it; that makes neither of them any farther."""
    vectors = np.stack([X, AXES[1], AXES[2]])
    index = stub_index(["0", "1", "2"], [(0, 1, ()), (1, 2, ()), (2, 0, ())], entity_vectors=vectors)
    found = find(index, replace(ONE_SEED, hops=1))
    assert hops(found) == {0: 0, 1: 1, 2: 1}
    assert found.edge_index.shape == (2, 6)
    assert {(1, 2), (2, 1)} <= set(zip(*found.edge_index.tolist(), strict=True))
    assert hops(find(index, replace(ONE_SEED, hops=2))) == {0: 0, 1: 1, 2: 1}


def test_no_hops_is_the_start_alone(stub_index: Stub) -> None:
    index = stub_index(["A", "B"], [(0, 1, ())], entity_vectors=AXES[:2])
    assert hops(find(index, replace(ONE_SEED, hops=0))) == {0: 0}


def test_synonyms_are_steps_too(stub_index: Stub) -> None:
    index = stub_index(["A", "B", "C"], [(1, 2, ())], synonyms=[(0, 1, 0.9)], entity_vectors=AXES[:3])
    assert hops(find(index, ONE_SEED)) == {0: 0, 1: 1, 2: 2}


def test_mentions_are_no_steps(stub_index: Stub) -> None:
    """Two entities that only share a passage are no neighbours; the passage is found all the same."""
    index = stub_index(["A", "B"], passages=["a b"], mentions=[(0, 0), (0, 1)], entity_vectors=AXES[:2])
    found = find(index, ONE_SEED)
    assert hops(found) == {0: 0}
    assert found.passages.tolist() == [0]
    assert found.hop.tolist() == [0, NO_HOP]
    assert found.edge_index.shape == (2, 2)


def test_both_ends_of_the_nearest_facts_are_starts(stub_index: Stub) -> None:
    index = stub_index(
        ["A", "B", "C", "D"],
        [(0, 1, ()), (2, 3, ())],
        entity_vectors=np.stack([AXES[1], AXES[1], AXES[1], X]),
        fact_vectors=np.stack([X, AXES[1]]),
    )
    found = find(index, CandidateSettings(seeds=1, facts=1, hops=0))
    assert hops(found) == {0: 0, 1: 0, 3: 0}
    assert hops(find(index, CandidateSettings(seeds=1, facts=1, hops=0, max_start=2))) == {0: 0, 3: 0}  # by rank


def test_the_beam_keeps_the_neighbours_of_the_best_facts(stub_index: Stub) -> None:
    """Worth = fact similarity / log(2 + degree): of equal facts, the neighbour with fewer edges goes first."""
    near, far = X + 0.1 * AXES[1], X + 3.0 * AXES[1]
    facts = [(0, 1, ()), (0, 2, ()), (0, 3, ()), (2, 4, ()), (2, 5, ())]
    index = stub_index(
        ["seed", "far", "near, busy", "near", "x", "y"],
        facts,
        entity_vectors=np.stack([X, *[AXES[2]] * 5]),
        fact_vectors=np.stack([far, near, near, far, far]),
    )
    assert set(hops(find(index, replace(ONE_SEED, hops=1, beam=1)))) == {0, 3}
    assert set(hops(find(index, replace(ONE_SEED, hops=1, beam=2)))) == {0, 2, 3}
    assert set(hops(find(index, replace(ONE_SEED, hops=1, beam=0)))) == {0}


# ---------------------------------------------------------------- passages


def passages_index(stub_index: Stub) -> SimpleNamespace:
    """One entity in passage 0, a word in passage 1, a near vector in passage 2, nothing in passage 3."""
    return stub_index(
        ["seed"],
        passages=["plain", "zephyr", "other", "thing"],
        mentions=[(0, 0)],
        entity_vectors=X,
        passage_vectors=np.stack([AXES[1], AXES[1], X, AXES[1]]),
    )


def test_passages_come_by_cosine_words_and_mentions(stub_index: Stub) -> None:
    index = passages_index(stub_index)
    alone = CandidateSettings(pagerank_passages=0, bm25_passages=0, dense_passages=1)
    assert find(index, alone, "zephyr").passages.tolist() == [0, 2]
    assert find(index, replace(alone, bm25_passages=2), "zephyr").passages.tolist() == [0, 1, 2]
    assert find(index, replace(alone, bm25_passages=4), "?").passages.tolist() == [0, 2]  # no word, no passage
    assert find(index, replace(alone, max_passages=1), "zephyr").passages.tolist() == [2]  # the union goes first


def test_passages_by_pagerank_are_those_of_the_nearest_facts(stub_index: Stub) -> None:
    texts = ["p0", "p1", "p2", "p3"]
    index = stub_index(
        ["A", "B", "C"],
        [(0, 1, (3,)), (1, 2, (0,))],
        passages=texts,
        mentions=[(3, 0), (3, 1), (0, 1), (0, 2)],
        entity_vectors=np.tile(AXES[3], (3, 1)),
        fact_vectors=np.stack([X, AXES[1]]),
        passage_vectors=np.tile(AXES[3], (4, 1)),
    )
    chosen = CandidateSettings(pagerank_facts=1, pagerank_passages=1, bm25_passages=0, dense_passages=0, max_passages=1)
    assert find(index, chosen).passages.tolist() == [3]


def test_the_rest_is_filled_by_the_prior(stub_index: Stub) -> None:
    """Prior by hand: passages 0 and 1 share the entity; 1 also holds the near fact (+ 0.5)."""
    index = stub_index(
        ["A", "B"],
        [(0, 1, (1,))],
        passages=["p0", "p1", "p2"],
        mentions=[(0, 0), (1, 0)],
        entity_vectors=AXES[:2],
        fact_vectors=X,
        passage_vectors=np.stack([X + AXES[1], X + 2 * AXES[1], AXES[2]]),
    )
    builder = CandidateBuilder(index, CandidateSettings(pagerank_passages=0, bm25_passages=0, dense_passages=0))
    signals = builder.signals("?", X)
    passages, prior = builder._prior(np.array([0, 1]), signals)
    support = 0.3 * np.log1p(1 / np.log(2 + 3))  # entity 0 has three edges: a fact and two mentions
    assert passages.tolist() == [0, 1]
    assert prior.tolist() == pytest.approx([0.5**0.5 + support, 0.2**0.5 + 0.5 + support], rel=1e-5)
    assert builder.build(signals).passages.tolist() == [0, 1]
    one = CandidateBuilder(index, replace(builder.settings, max_passages=1))
    assert one.build(signals).passages.tolist() == [1]


# ---------------------------------------------------------------- induced edges


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_entities=st.integers(0, 14),
    num_passages=st.integers(0, 7),
    num_links=st.integers(0, 60),
    fanout=st.integers(1, 12),
    chosen=st.builds(
        CandidateSettings,
        seeds=st.integers(1, 4),
        facts=st.integers(0, 3),
        near_facts=st.integers(1, 6),
        max_start=st.integers(1, 5),
        hops=st.integers(0, 3),
        beam=st.integers(0, 5),
        max_entities=st.integers(1, 14),
        max_passages=st.integers(1, 6),
        pagerank_passages=st.integers(0, 3),
        bm25_passages=st.integers(0, 3),
        dense_passages=st.integers(0, 3),
    ),
)
def test_every_subgraph_holds_together(
    random_index: Stub,
    seed: int,
    num_entities: int,
    num_passages: int,
    num_links: int,
    fanout: int,
    chosen: CandidateSettings,
) -> None:
    index = random_index(seed, num_entities, num_passages, num_links)
    graph, chosen = index.graph, replace(chosen, max_fanout=fanout)
    vector = np.random.default_rng(seed).normal(size=4).astype(np.float32)
    found = find(index, chosen, "mill by the sea", vector / np.linalg.norm(vector))
    n_e, n_p = len(found.entities), len(found.passages)

    # Nodes: in the graph, distinct, sorted, within the caps.
    assert (np.diff(found.entities) > 0).all()
    assert (np.diff(found.passages) > 0).all()
    assert all(0 <= e < num_entities for e in found.entities)
    assert all(0 <= p < num_passages for p in found.passages)
    assert found.num_start <= min(chosen.max_start, chosen.max_entities)
    assert n_e <= chosen.max_entities
    assert n_p <= chosen.max_passages
    assert n_e <= found.num_start + chosen.hops * chosen.beam

    # Hops: the starts have 0, each later one has a neighbour one step nearer, passages have none.
    assert (found.hop[:n_e] == 0).sum() == found.num_start
    assert (found.hop[n_e:] == NO_HOP).all()
    assert set(found.hop[:n_e].tolist()) <= set(range(chosen.hops + 1))
    hop = hops(found)
    for entity, step in hop.items():
        row = graph.edge_index[1, graph.node_ptr[entity] : graph.node_ptr[entity + 1]].tolist()
        assert step == 0 or any(hop.get(neighbour) == step - 1 for neighbour in row)

    # Edges: exactly those among the chosen, each with its mirror, whatever is a hub; only hub to hub may be missing.
    nodes = np.concatenate([found.entities, found.passages + num_entities])
    source, target = nodes[found.edge_index].tolist() if found.edge_index.size else ([], [])
    got = Counter(zip(source, target, found.edge_kind.tolist(), graph.edge_triple[found.edge].tolist(), strict=True))
    inside = set(nodes.tolist())
    degree = np.diff(graph.node_ptr)
    rows = zip(*graph.edge_index.tolist(), graph.edge_kind.tolist(), graph.edge_triple.tolist(), strict=True)
    wanted = Counter(row for row in rows if row[0] in inside and row[1] in inside)
    assert not got - wanted
    assert all(degree[s] > fanout and degree[t] > fanout for s, t, _, _ in wanted - got)
    assert Counter((t, s, int(MIRROR[k]), f) for s, t, k, f in got.elements()) == got
    assert (np.diff(found.edge_index[1]) >= 0).all()
    assert found.edge.shape == found.edge_kind.shape == (found.edge_index.shape[1],)


def test_the_same_question_gives_the_same_subgraph(random_index: Stub) -> None:
    index = random_index(3, 14, 6, 50)
    one, two = (find(index, replace(ONE_SEED, max_fanout=5), "sea", X) for _ in range(2))
    for field in fields(Candidates):
        assert np.array_equal(getattr(one, field.name), getattr(two, field.name))


def test_edges_between_two_hubs_are_found(stub_index: Stub) -> None:
    """Both have more edges than are looked at, and stand in the subgraph side by side."""
    facts = [(0, 1, ()), *((0, i, ()) for i in range(2, 6)), *((1, i, ()) for i in range(6, 10))]
    names = [str(i) for i in range(10)]
    index = stub_index(names, facts, entity_vectors=np.stack([X, X, *[AXES[1]] * 8]))
    found = find(index, CandidateSettings(seeds=2, facts=0, hops=0, max_fanout=3))
    assert found.entities.tolist() == [0, 1]
    assert list(zip(*found.edge_index.tolist(), found.edge_kind.tolist(), strict=True)) == [
        (1, 0, INVERSE_FACT),
        (0, 1, FACT),
    ]


# ---------------------------------------------------------------- hubs


def test_of_a_hub_the_near_facts_are_seen_first(stub_index: Stub) -> None:
    """Thirty neighbours, three looked at: the first by number, and the one of the near fact."""
    facts = [(0, i, ()) for i in range(1, 31)]
    vectors = np.tile(AXES[1], (30, 1))
    vectors[24] = X  # the fact with entity 25
    index = stub_index(
        [str(i) for i in range(31)], facts, entity_vectors=np.stack([X, *[AXES[1]] * 30]), fact_vectors=vectors
    )
    found = find(index, replace(ONE_SEED, hops=1, near_facts=1, max_fanout=3, beam=30))
    assert set(hops(found)) == {0, 1, 2, 3, 25}
    assert found.hubs == 1
    assert found.edge_index.shape == (2, 8)  # all four facts, both ways
    everyone = find(index, replace(ONE_SEED, hops=1, max_fanout=30, beam=30))
    assert (len(everyone.entities), everyone.hubs) == (31, 0)


@pytest.fixture(scope="module")
def bench(repository: Path) -> Any:
    """scripts/bench_hub.py, which builds the star and takes the times."""
    spec = importlib.util.spec_from_file_location("bench_hub", repository / "scripts" / "bench_hub.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a13_a_hub_of_50000_edges_is_fast_and_its_answer_is_found(
    bench: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hub → leaf → answer, the leaf among the last of 50,000, and only the hub is a seed."""
    star = bench.star(50_000)
    assert np.diff(star.index.graph.node_ptr)[star.hub] >= 50_000
    seconds, _ = bench.seconds_by_stage(star, runs=5)
    _, found = bench.seconds_by_stage(star, bench.WALK, runs=0)
    with capsys.disabled():
        print(f" [hub of 50,000 edges: {1000 * seconds['total']:.1f} ms]", end="")
    assert [hops(found)[node] for node in (star.hub, star.leaf, star.answer)] == [0, 1, 2]
    assert star.passage in found.passages
    assert found.hubs >= 1
    hub_edges = (found.edge_index == np.searchsorted(found.entities, star.hub)).any(axis=0).sum()
    assert hub_edges <= 4 * (len(found.hop) - 1)  # by fact and mention, both ways
    assert len(found.hop) < 1000
    assert seconds["total"] < 0.5  # under 50 ms on a quiet machine, says the script; this one may be busy


# ---------------------------------------------------------------- odd indexes


def test_a01_no_entities(stub_index: Stub) -> None:
    index = stub_index([], passages=["It was late.", "Then it stopped."], passage_vectors=AXES[:2])
    found = find(index, CandidateSettings(), "what stopped?")
    assert (found.entities.tolist(), found.passages.tolist()) == ([], [0, 1])
    assert found.edge_index.shape == (2, 0)
    assert found.hop.tolist() == [NO_HOP, NO_HOP]


def test_a02_no_edges(stub_index: Stub) -> None:
    index = stub_index(["A", "B", "C"], passages=["x"], entity_vectors=AXES[:3])
    found = find(index, CandidateSettings())
    assert hops(found) == {0: 0, 1: 0, 2: 0}
    assert found.passages.tolist() == [0]
    assert found.edge_index.shape == (2, 0)
    assert (found.edge.shape, found.edge_kind.shape) == ((0,), (0,))


def test_a07_the_last_entity_without_an_edge_is_a_seed(stub_index: Stub) -> None:
    vectors = np.stack([AXES[1]] * 3 + [X])
    index = stub_index(["0", "1", "2", "3"], [(0, 1, ()), (1, 2, ())], entity_vectors=vectors)
    found = find(index, ONE_SEED)
    assert hops(found) == {3: 0}
    assert found.edge_index.shape == (2, 0)


def test_one_passage(stub_index: Stub) -> None:
    found = find(stub_index([], passages=["x"], passage_vectors=X), CandidateSettings())
    assert found.passages.tolist() == [0]


def test_nothing_at_all(stub_index: Stub) -> None:
    found = find(stub_index([]), CandidateSettings())
    assert (len(found.entities), len(found.passages), found.edge_index.shape) == (0, 0, (2, 0))


def test_a06_isolated_entities_are_found_by_name(make_index: Callable[..., GraphIndex]) -> None:
    """Corpus Z with 20 entities more, each in a passage of its own and without any relation."""
    names = [f"Solo {i:02}" for i in range(20)]
    texts = {f"s{i:02}": f"{name} is here." for i, name in enumerate(names)}
    index = make_index(texts, [(name, "is", "here", f"s{i:02}") for i, name in enumerate(names)])
    for i, name in enumerate(names):
        found = find(index, CandidateSettings(seeds=1, facts=0, hops=0), name, index.encode([name])[0])
        assert [index.entity(int(e)).name for e in found.entities] == [name]
        assert i in found.passages


# ---------------------------------------------------------------- top


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(-1, 14))
def test_top_is_a_stable_sort(values: list[int], k: int) -> None:
    scores = np.array(values, dtype=np.float32)
    assert top(scores, k).tolist() == sorted(range(len(values)), key=lambda i: (-values[i], i))[: max(k, 0)]
