from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gfm.graph.pagerank import transition
from gfm.index.index import GraphIndex
from gfm.index.vectors import Vectors
from gfm.retrieve.candidates import CandidateBuilder
from gfm.retrieve.signals import CandidateSettings, Signals, min_max, read_signals, restart
from gfm.types import GfmError

Stub = Callable[..., SimpleNamespace]
AXES = np.eye(4, dtype=np.float32)
X, Y, Z, _ = AXES
MAY_BE_ZERO = {"named", "walk", "hops", "pagerank_passages", "bm25_passages", "dense_passages", "facts", "beam"}


def read(index: Any, text: str = "?", vector: np.ndarray = X, **chosen: int) -> Signals:
    return read_signals(index, CandidateSettings(**chosen), transition(index.graph), text, vector)


def restart_of(
    index: Any, facts: list[int], fact_cosine: list[float], passages: list[int], cosine: list[float], **chosen: Any
) -> dict[int, float]:
    nodes, mass = restart(
        index,
        np.array(facts, dtype=np.int64),
        np.array(fact_cosine, dtype=np.float32),
        np.array(passages, dtype=np.int64),
        np.array(cosine, dtype=np.float32),
        **chosen,
    )
    assert len(set(nodes.tolist())) == len(nodes)  # `push` wants them distinct
    return dict(zip(nodes.tolist(), mass.tolist(), strict=True))


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("name", [f.name for f in fields(CandidateSettings)])
def test_settings_below_the_least_are_refused(name: str) -> None:
    with pytest.raises(
        GfmError, match=rf"candidates\.{name}: expected {int(name not in MAY_BE_ZERO)} or more, found -1"
    ):
        CandidateSettings(**{name: -1})


@pytest.mark.parametrize("name", [f.name for f in fields(CandidateSettings) if f.name not in MAY_BE_ZERO])
def test_nothing_to_start_from_or_to_hold_is_refused(name: str) -> None:
    with pytest.raises(GfmError, match=rf"candidates\.{name}: expected 1 or more, found 0"):
        CandidateSettings(**{name: 0})
    assert getattr(CandidateSettings(**{name: 1}), name) == 1


@pytest.mark.parametrize("name", sorted(MAY_BE_ZERO))
def test_what_can_be_done_without_may_be_none(name: str) -> None:
    assert getattr(CandidateSettings(**{name: 0}), name) == 0


@pytest.mark.parametrize("value", ["64", 1.5, None, True])
def test_settings_that_are_no_whole_number_are_refused(value: Any) -> None:
    with pytest.raises(GfmError, match=rf"candidates\.seeds: expected 1 or more, found {value!r}"):
        CandidateSettings(seeds=value)


# ---------------------------------------------------------------- restart distribution


@pytest.fixture(scope="module")
def restart_index(stub_index: Stub) -> SimpleNamespace:
    """A – B and C – A; A is named in two passages, B in one, C in none. Fact 2 has no triple. Passages: 3 to 5."""
    return stub_index(
        ["A", "B", "C"],
        [(0, 1, (0,)), (2, 0, (1,))],
        lone_facts=[(2,)],
        passages=["p0", "p1", "p2"],
        mentions=[(0, 0), (0, 1), (1, 0)],
    )


def test_restart_is_the_mean_over_facts_by_document_frequency_and_passages_weakly(
    restart_index: SimpleNamespace,
) -> None:
    """A: (0.8 + 0.4) / 2 facts / 2 passages; B: 0.8; C: 0.4. Passages: 0.05 · (0.9, 0.5, 0.1) scaled to [0, 1]."""
    found = restart_of(restart_index, [0, 1], [0.8, 0.4], [1, 0, 2], [0.9, 0.5, 0.1])
    assert found == pytest.approx({0: 0.3, 1: 0.8, 2: 0.4, 4: 0.05, 3: 0.025, 5: 0.0}, abs=1e-7)


def test_a_fact_against_the_question_weighs_nothing(restart_index: SimpleNamespace) -> None:
    """It still counts in the mean: A has (0.8 + 0) / 2 / 2."""
    found = restart_of(restart_index, [0, 1], [0.8, -0.6], [], [])
    assert found == pytest.approx({0: 0.2, 1: 0.8, 2: 0.0}, abs=1e-7)


def test_the_heaviest_phrases_are_kept_ties_by_number(restart_index: SimpleNamespace) -> None:
    """As above, A 0.3, B 0.8, C 0.4; and with cosines 0.8 and 0.8, B and C 0.8 each."""
    assert restart_of(restart_index, [0, 1], [0.8, 0.4], [], [], phrases=2) == pytest.approx({1: 0.8, 2: 0.4})
    assert restart_of(restart_index, [0, 1], [0.8, 0.8], [], [], phrases=1) == pytest.approx({1: 0.8})
    found = restart_of(restart_index, [0], [0.8], [2, 0], [0.5, 0.1], phrases=1, passage_weight=0.5)
    assert found == pytest.approx({1: 0.8, 5: 0.5, 3: 0.0}, abs=1e-7)


def test_scores_scaled_to_0_and_1() -> None:
    """A01: equal ones are all 1, not NaN."""
    assert min_max(np.array([-1.0, 3.0, 0.0])).tolist() == [0.0, 1.0, 0.25]
    assert min_max(np.array([0.5, 0.5], dtype=np.float32)).tolist() == [1.0, 1.0]
    assert min_max(np.zeros(0)).tolist() == []


def test_a_fact_without_a_second_entity_is_no_restart(restart_index: SimpleNamespace) -> None:
    """Its cosine falls to nobody, also where it comes between others: B has that of its own fact."""
    assert restart_of(restart_index, [2], [0.9], [], []) == {}
    assert restart_of(restart_index, [1, 2, 0], [0.2, 0.9, 0.7], [], []) == pytest.approx(
        {0: 0.45 / 2, 1: 0.7, 2: 0.2}, abs=1e-7
    )


def test_cosines_beyond_the_facts_taken_are_not_read(restart_index: SimpleNamespace) -> None:
    """The cosines of all near facts are given, the facts are cut."""
    assert restart_of(restart_index, [1], [0.2, 0.9, 0.7], [], []) == pytest.approx({0: 0.1, 2: 0.2}, abs=1e-7)


def test_passages_that_are_equally_near_weigh_the_same(restart_index: SimpleNamespace) -> None:
    assert restart_of(restart_index, [], [], [0, 2], [0.3, 0.3]) == pytest.approx({3: 0.05, 5: 0.05})
    assert restart_of(restart_index, [], [], [1], [-0.3]) == pytest.approx({4: 0.05})
    assert restart_of(restart_index, [], [], [], []) == {}


# ---------------------------------------------------------------- signals


@pytest.fixture(scope="module")
def harbour(stub_index: Stub) -> SimpleNamespace:
    """Two pairs of names, each joined by a fact; of three passages one is near the question X."""
    return stub_index(
        ["Tarn", "Venn", "Isk", "Orla"],
        [(0, 1, ()), (2, 3, ())],
        lone_facts=[(2,)],
        passages=["a mill", "the mill by the sea", "jam"],
        entity_vectors=np.stack([Y, 0.6 * X + 0.8 * Y, Z, X]),
        fact_vectors=np.stack([0.6 * X + 0.8 * Y, X, -X]),
        passage_vectors=np.stack([Y, 0.8 * X + 0.6 * Y, -X]),
    )


def test_neighbours_come_best_first_and_as_many_as_asked(harbour: SimpleNamespace) -> None:
    found = read(harbour, seeds=3)
    assert found.seeds.tolist() == [3, 1, 0]  # 0 before 2, which is as near
    assert found.near_facts.tolist() == [1, 0, 2]
    assert found.near_fact_cosine.tolist() == pytest.approx([1.0, 0.6, -1.0])
    assert found.near_passages.tolist() == [1, 0, 2]
    assert found.vector is X


@pytest.mark.parametrize(("near", "facts", "expected"), [(1, 0, [1]), (1, 2, [1, 0]), (2, 1, [1, 0])])
def test_near_facts_are_never_fewer_than_the_facts_to_start_from(
    harbour: SimpleNamespace, near: int, facts: int, expected: list[int]
) -> None:
    assert read(harbour, near_facts=near, facts=facts).near_facts.tolist() == expected


def test_passages_for_the_pagerank_are_64_or_more(stub_index: Stub) -> None:
    index = stub_index([], passages=["x"] * 80)
    assert len(read(index, dense_passages=0).near_passages) == 64
    assert len(read(index, dense_passages=70).near_passages) == 70


def test_words(harbour: SimpleNamespace) -> None:
    found = read(harbour, "SEA mill? zemmer")
    assert sorted(harbour.lexical.vocabulary[t] for t in ("mill", "sea")) == found.token_ids.tolist()
    assert found.bm25[1] > found.bm25[0] > found.bm25[2] == 0
    assert read(harbour, "zemmer").bm25.tolist() == [0, 0, 0]


def test_pagerank_between_two_ends_by_hand(stub_index: Stub) -> None:
    """Each end starts with half the mass; every round keeps a half of it and sends a half across: 6 rounds."""
    index = stub_index(["A", "B"], [(0, 1, ())], entity_vectors=np.stack([X, Y]), fact_vectors=X)
    assert read(index).pagerank.tolist() == pytest.approx([0.5 * (1 - 0.5**6)] * 2)


def test_pagerank_of_passages_alone_by_hand(stub_index: Stub) -> None:
    """Without an edge half of each passage's mass stays and the rest is lost; the farthest had none."""
    index = stub_index([], passages=["p", "q", "r"], passage_vectors=np.stack([X, -X, Y]))
    assert read(index).pagerank.tolist() == pytest.approx([0.5 * 2 / 3, 0, 0.5 / 3])


def test_only_the_nearest_facts_seed_the_pagerank(harbour: SimpleNamespace) -> None:
    one, two = (read(harbour, pagerank_facts=n).pagerank for n in (1, 2))
    assert one[:2].tolist() == [0, 0]
    assert (one[2:4] > 0).all()
    assert two[0] / two[2] == pytest.approx(0.6, rel=1e-5)  # as their facts' cosines


def test_the_near_facts_are_known_and_others_are_read_once(
    harbour: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read(harbour, near_facts=1, facts=0)
    assert np.isnan(found.known_fact_cosine).tolist() == [True, False, True]
    asked: list[list[int]] = []
    cosine = Vectors.cosine

    def spy(self: Vectors, ids: np.ndarray, query: np.ndarray) -> np.ndarray:
        asked.append(ids.tolist())
        return cosine(self, ids, query)

    monkeypatch.setattr(Vectors, "cosine", spy)
    assert found.fact_cosine(harbour, np.array([0, 1, 0])).tolist() == pytest.approx([0.6, 1.0, 0.6])
    assert found.fact_cosine(harbour, np.array([2, 0])).tolist() == pytest.approx([-1.0, 0.6])
    assert found.fact_cosine(harbour, np.zeros(0, dtype=np.int64)).tolist() == []
    assert asked == [[0], [2], []]


def test_nothing_at_all(stub_index: Stub) -> None:
    found = read(stub_index([]))
    for field in fields(Signals):
        if field.name != "vector":
            assert len(getattr(found, field.name)) == 0


def test_of_a_real_index(z: GraphIndex) -> None:
    """A fact's own text is nearest to itself, and the builder of candidates reads the same signals."""
    text = z.triple(0).text
    vector = z.encode([text])[0]
    found = read(z, text, vector)
    assert found.near_facts[0] == z.graph.triple_fact[0]
    assert found.near_fact_cosine[0] == pytest.approx(1.0, abs=1e-5)
    assert 0 < found.pagerank.sum() <= 1
    again = CandidateBuilder(z, CandidateSettings()).signals(text, vector)
    for field in fields(Signals):
        assert np.array_equal(getattr(found, field.name), getattr(again, field.name), equal_nan=True)
