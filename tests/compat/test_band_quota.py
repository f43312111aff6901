"""The walk on graphs whose distances are chosen by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gfm.compat.band_quota import BandQuotaRetriever
from gfm.index.index import GraphIndex
from gfm.retrievers import load_retriever
from gfm.types import GfmError, Retrieval

World = Callable[..., SimpleNamespace]

# Fills the first hop: ten relationships of score 1 / 0.05 + 0.01 from S to T0 … T9.
FIRST_HOP = [("S", f"T{i}", 0.05) for i in range(10)]


def search(index: Any, top_k: int = 10, **given: Any) -> Retrieval:
    return BandQuotaRetriever(index, **given).retrieve("?!", top_k)


def numbers(result: Retrieval) -> list[int]:
    """The triples found, best first; relation r7 is triple 7."""
    return [int(hit.item.relation[1:]) for hit in result.triples]


def beyond(result: Retrieval) -> list[int]:
    """The triples found beyond `FIRST_HOP`, by number."""
    return sorted(n - 10 for n in numbers(result) if n >= 10)


def hop(result: Retrieval, number: int) -> list[tuple[int, int]]:
    """(asked, found) of each search of a hop."""
    return [(s["asked"], s["found"]) for s in result.trace["hops"][number]]


def scores(result: Retrieval) -> dict[int, float]:
    return dict(zip(numbers(result), [hit.score for hit in result.triples], strict=True))


def test_the_first_hop_has_no_cut_off_and_keeps_scores(world: World) -> None:
    result = search(world(("A", "B", 1.6), ("C", "D", 0.5), ("E", "F", 1.0)))
    assert [(h.item.head, h.score, h.rank) for h in result.triples] == [
        ("C", pytest.approx(1 / 0.5 + 0.01), 1),
        ("E", pytest.approx(1 / 1.0 + 0.01), 2),
        ("A", pytest.approx(1 / 1.6 + 0.01), 3),
    ]
    assert result.trace["hops"][0] == [{"range": None, "asked": 10, "found": 3}]
    assert (result.trace["retriever"], result.score_unit) == ("band_quota", "inverse distance")


def test_ten_are_kept_by_score_not_by_distance(world: World) -> None:
    """1 / 0.5 + 2.3 beats 1 / 0.25 + 0.01, and so does 1 / 0.24 + 0."""
    facts = [*[("A", f"B{i:02}", 0.25) for i in range(10)], ("C", "D", 0.5), ("E", "F", 0.24)]
    result = search(world(*facts, weights=[*[1.0] * 10, 5000.0, 0.0]), depth=1)
    assert numbers(result) == [10, 11, *range(8)]
    assert scores(result)[10] == pytest.approx(4.3)
    assert scores(result)[11] == pytest.approx(1 / 0.24)


def test_no_more_than_are_asked_for_are_all_found(world: World) -> None:
    facts = [("A", f"B{i}", 0.9) for i in range(10)]
    assert numbers(search(world(*facts), depth=1)) == list(range(10))
    assert numbers(search(world(*facts, ("A", "C", 0.91)), depth=1)) == list(range(10))


@pytest.mark.parametrize("position", [100, 101])
def test_a_hundred_nearest_are_ranked(world: World, position: int) -> None:
    """A weight that beats all others counts only among the 100 nearest."""
    facts = [("A", f"B{i:03}", 0.3) for i in range(position - 1)]
    result = search(world(*facts, ("C", "D", 0.4), weights=[*[1.0] * (position - 1), 1e6]), depth=1)
    assert (numbers(result)[0] == position - 1) == (position == 100)


def test_negative_weights_are_passed_over_and_0_is_not(world: World) -> None:
    assert numbers(search(world(("A", "B", 0.1), ("C", "D", 0.2), weights=[-0.5, 0.0]))) == [1]


@pytest.mark.parametrize(
    ("distance", "band"),
    [
        (0.0, 0),
        (0.249999, 0),
        (0.25, 0),
        (0.250001, 1),
        (0.35, 1),
        (0.350001, 2),
        (0.45, 2),
        (0.450001, 3),
        (0.55, 3),
        (0.550001, None),
        (0.9, None),
    ],
)
def test_the_ends_of_the_bands_belong_to_them(world: World, distance: float, band: int | None) -> None:
    """In float32, the cosine of 0.35 alone is off by 2e-8; the end of a band must not depend on that."""
    weights = [*[1e9] * 10, 1.0]  # the first hop is full whatever the distance
    result = search(world(*FIRST_HOP, ("T3", "X", distance), weights=weights))
    assert [found for _, found in hop(result, 1)] == [int(i == band) for i in range(4)]
    assert beyond(result) == ([] if band is None else [0])


@pytest.mark.parametrize(
    ("distance", "count", "expected"),
    [(0.35, 9, [(10, 0), (7, 7), (2, 2), (1, 0)]), (0.45, 10, [(10, 0), (7, 0), (9, 9), (1, 1)])],
)
def test_what_is_left_at_the_far_end_of_a_band_is_the_near_end_of_the_next(
    world: World, distance: float, count: int, expected: list[tuple[int, int]]
) -> None:
    facts = [("T0", f"X{i:02}", distance) for i in range(count)]
    assert hop(search(world(*FIRST_HOP, *facts)), 1) == expected


def test_what_the_first_band_led_to_at_its_far_end_is_found_by_the_second(world: World) -> None:
    result = search(world(*FIRST_HOP, ("T0", "X", 0.25), ("X", "Y", 0.25)))
    assert hop(result, 1) == [(10, 1), (7, 1), (7, 0), (7, 0)]


def test_each_band_is_asked_for_its_quota(world: World) -> None:
    """Twelve relationships in one band only, and what the others are asked for."""
    asked_and_found = {
        0.2: [(10, 10)],
        0.3: [(10, 0), (7, 7), (2, 0), (2, 0)],
        0.4: [(10, 0), (7, 0), (9, 9), (1, 0)],
        0.5: [(10, 0), (7, 0), (9, 0), (9, 9)],
        0.6: [(10, 0), (7, 0), (9, 0), (9, 0)],
    }
    for distance, expected in asked_and_found.items():
        result = search(world(*FIRST_HOP, *[("T0", f"X{i:02}", distance) for i in range(12)]))
        assert hop(result, 1) == expected
        assert beyond(result) == list(range(sum(found for _, found in expected)))


def test_a_mixed_hop_by_hand(world: World) -> None:
    """After 3 and 2, the third band is asked for 9 - 5; after 9, the last for the one that is left."""
    sizes = {0.1: 3, 0.3: 2, 0.4: 9, 0.5: 9}
    facts = [("T0", f"X{d}-{i}", d) for d, size in sizes.items() for i in range(size)]
    assert hop(search(world(*FIRST_HOP, *facts)), 1) == [(10, 3), (7, 2), (4, 4), (1, 1)]


def test_only_outgoing_relationships_are_followed(world: World) -> None:
    assert beyond(search(world(*FIRST_HOP, ("X", "T0", 0.2), ("T0", "Y", 0.3), ("X", "Z", 0.1)))) == [1]


def test_bands_grow_from_what_earlier_bands_of_the_hop_found(world: World) -> None:
    assert beyond(search(world(*FIRST_HOP, ("T0", "X", 0.2), ("X", "Y", 0.3)))) == [0, 1]


def test_a_nearer_band_is_searched_again_only_in_the_next_hop(world: World) -> None:
    index = world(*FIRST_HOP, ("T0", "X", 0.3), ("X", "Y", 0.2))
    assert beyond(search(index)) == [0]
    assert beyond(search(index, depth=3)) == [0, 1]


def test_the_nearest_of_the_hop_are_taken_by_score(world: World) -> None:
    """Eight in band 2, asked for 7: the lightest stays out although it is the nearest."""
    facts = [("T0", "X0", 0.26), *[("T0", f"X{i}", 0.27) for i in range(1, 8)]]
    assert beyond(search(world(*FIRST_HOP, *facts, weights=[*[1.0] * 10, 0.0, *[100.0] * 7]))) == list(range(1, 8))


@pytest.mark.parametrize("depth", [0, 1])
def test_no_further_hop(world: World, depth: int) -> None:
    result = search(world(*FIRST_HOP, ("T0", "X", 0.2)), depth=depth)
    assert (beyond(result), len(result.trace["hops"])) == ([], 1)


def test_hops_go_on_where_one_found_nothing(world: World) -> None:
    result = search(world(*FIRST_HOP, ("T0", "X", 0.8)), depth=4)
    assert [len(searches) for searches in result.trace["hops"]] == [1, 4, 4, 4]
    assert (result.trace["visited_triples"], result.trace["visited_entities"]) == (10, 11)


@pytest.mark.parametrize("others", [989, 990])
def test_the_thousand_nearest_are_taken_before_anything_is_visited(world: World, others: int) -> None:
    """T0 → X is the 1,000th or the 1,001st nearest relationship of the graph."""
    index = world(*FIRST_HOP, ("T0", "X", 0.2), *[("Z", f"W{i:03}", 0.1) for i in range(others)])
    assert beyond(search(index)) == ([0] if others == 989 else [])
    assert beyond(search(index, oversample_visited=True)) == [0]


def test_the_thousand_nearest_also_where_one_fact_holds_most_of_them(world: World) -> None:
    """The nearest facts hold one relationship each, so that more facts are read than hold a thousand on average."""
    crowd = [("Z", f"W{i:04}") for i in range(20_000)]
    many = [("Y", f"V{i:03}", 0.1) for i in range(980)]
    index = world(*FIRST_HOP, ("T0", "X", 0.2), *many, (crowd, 0.3))
    result = search(index)
    assert beyond(result) == [0]
    retriever = BandQuotaRetriever(index)
    pool, _ = retriever._start(index.encode(["?"])[0]).pool
    assert pool.tolist() == [*range(10), *range(11, 991), 10, *range(991, 1000)]


def test_oversampling_changes_nothing_where_a_thousand_are_all(world: World) -> None:
    facts = [(f"E{i % 7}", f"E{(3 * i + 1) % 7}x", 0.02 * i) for i in range(40)]
    index = world(*facts, *[(f"E{i}x", f"E{i + 1}", 0.3) for i in range(6)])
    assert search(index, depth=3).triples == search(index, depth=3, oversample_visited=True).triples


def test_degrees_of_the_whole_graph(world: World) -> None:
    """A: 2 in; B: 3 out, so A → B gets (2 - 3) / 1000. B: 1 in; C: none out, so B → C gets (1 - 0) / 1000."""
    facts = [("A", "B", 0.5), ("B", "C", 0.5), ("B", "D", 0.5), ("B", "E", 0.5), ("F", "A", 0.5), ("G", "A", 0.5)]
    index = world(*facts)
    found = scores(search(index, with_degree=True, depth=1))
    assert found == {
        0: pytest.approx(2.01 - 0.001),
        1: pytest.approx(2.01 + 0.001),
        2: pytest.approx(2.01 + 0.001),
        3: pytest.approx(2.01 + 0.001),
        4: pytest.approx(2.01 - 0.001),  # nothing enters F, one leaves A
        5: pytest.approx(2.01 - 0.001),
    }
    assert list(scores(search(index, depth=1)).values()) == pytest.approx([2.01] * 6)


def test_degrees_decide_who_is_kept(world: World) -> None:
    """Eleven alike but for one whose tail has an outgoing relationship, of a weight that is never found."""
    index = world(*FIRST_HOP, ("S", "U", 0.05), ("T0", "V", 0.9), weights=[*[1.0] * 11, -1.0])
    assert numbers(search(index, depth=1)) == list(range(10))
    assert numbers(search(index, depth=1, with_degree=True)) == list(range(1, 11))


@pytest.mark.parametrize("distance", [0.0, -1e-7, 4e-7])
def test_a_perfect_match_is_no_division_by_zero(world: World, distance: float) -> None:
    result = search(world(("A", "B", 0.5), ("C", "D", distance), passages=[1.0], near={"E": distance}))
    assert [(h.item.head, h.score) for h in result.triples] == [
        ("C", pytest.approx(1e6 + 0.01)),
        ("A", pytest.approx(2.01)),
    ]
    assert result.passages[0].score == pytest.approx(1e6 + 0.01)
    assert {h.item.name: h.score for h in result.entities}["E"] == pytest.approx(1e6)


def test_equal_scores_are_in_order_of_numbers(world: World) -> None:
    """Triples of one fact tie; of twelve, the first ten are kept."""
    pairs = [("A", f"B{i:02}") for i in range(12)]
    result = search(world((pairs, 0.4)), depth=1)
    assert numbers(result) == list(range(10))
    assert [h.rank for h in result.triples] == list(range(1, 11))
    assert [h.item.name for h in result.entities] == ["A", *[f"B{i:02}" for i in range(10)]]


def test_rounding_noise_in_a_cosine_decides_nothing(world: World) -> None:
    """Eleven at distance 0.3, the last nearest by less than a millionth: the first ten are kept."""
    facts = [("A", f"B{i:02}", 0.3 + 4e-7 - 8e-8 * i) for i in range(11)]
    assert numbers(search(world(*facts), depth=1)) == list(range(10))


def test_alpha(world: World) -> None:
    assert scores(search(world(("A", "B", 0.5)), alpha=3.0)) == {0: pytest.approx(6.01)}


def test_synopsis_entities_are_the_two_nearest_however_far(world: World) -> None:
    index = world(("A", "B", 0.5), ("C", "D", 0.8), near={"C": 0.2, "E": 1.25, "F": 1.4})
    result = search(index)
    assert result.trace["synopsis"] == ["C", "E"]
    assert [(h.item.name, h.score, h.rank) for h in result.entities] == [
        ("C", pytest.approx(1 / 0.2), 1),  # better than its relationship, 1 / 0.8 + 0.01
        ("A", pytest.approx(2.01), 2),
        ("B", pytest.approx(2.01), 3),
        ("D", pytest.approx(1.26), 4),
        ("E", pytest.approx(1 / 1.25), 5),
    ]


def test_synopsis_entities_start_no_hop(world: World) -> None:
    assert beyond(search(world(*FIRST_HOP, ("E", "X", 0.2), near={"E": 0.01}))) == []


def test_passages_have_their_best_relationship_and_are_not_filled_up(world: World) -> None:
    facts = [("A", "B", 0.5, (3, 1)), ("C", "D", 0.4, (1,)), ("E", "F", 0.5, (0,))]
    index = world(*facts, passages=[0.1] * 5)
    result = search(index, top_k=10)
    assert [(h.item.id, h.score, h.rank) for h in result.passages] == [
        ("p1", pytest.approx(2.51), 1),
        ("p0", pytest.approx(2.01), 2),
        ("p3", pytest.approx(2.01), 3),
    ]
    assert [h.item.id for h in search(index, top_k=2).passages] == ["p1", "p0"]
    assert result.trace["fallback"] is None


def test_no_relationship_at_all_is_a_dense_search_by_name(world: World, caplog: pytest.LogCaptureFixture) -> None:
    index = world(("A", "B", 0.1), weights=[-1.0], passages=[0.5, 0.25, 1.0])
    with caplog.at_level(logging.WARNING):
        result = search(index, top_k=2)
    assert [(h.item.id, h.score) for h in result.passages] == [("p1", 4.0), ("p0", 2.0)]
    assert (result.trace["fallback"], result.triples) == ("dense", [])
    assert [h.item.name for h in result.entities] == ["A", "B"]
    assert "found no relationship" in caplog.text


EN, DE = {"lang": "en", "year": 1911}, {"lang": "de", "year": 1911}


def test_a_relationship_passes_if_one_of_its_documents_does(world: World) -> None:
    facts = [("A", "B", 0.2, (0,)), ("A", "C", 0.3, (0, 1)), ("A", "D", 0.4, (1,))]
    index = world(*facts, passages=[1.0] * 3, metadata=[EN, DE, DE])
    result = search(index, filters={"lang": "de", "year": 1911})
    assert numbers(result) == [1, 2]
    assert [h.item.id for h in result.passages] == ["p1"]  # p0 states A → C too, and does not pass
    assert numbers(search(index, filters={})) == [0, 1, 2]


def test_filters_hold_in_every_hop_and_with_oversampling(world: World) -> None:
    index = world(*FIRST_HOP, ("T0", "X", 0.2, (1,)), ("T0", "Y", 0.2), passages=[1.0] * 2, metadata=[EN, DE])
    for oversample in (False, True):
        assert beyond(search(index, filters={"lang": "en"}, oversample_visited=oversample)) == [1]


def test_filters_that_nothing_passes_find_nothing(world: World) -> None:
    result = search(world(("A", "B", 0.2), passages=[1.0] * 2, metadata=[EN, DE]), filters={"lang": "de"})
    assert (result.triples, result.passages, result.trace["fallback"]) == ([], [], None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": -1}, "band_quota depth: expected a whole number of 0 or more, found -1"),
        ({"depth": 1.5}, "band_quota depth"),
        ({"depth": True}, "band_quota depth"),
        ({"alpha": 0.0}, "band_quota alpha: expected a number above 0, found 0.0"),
        ({"alpha": float("nan")}, "band_quota alpha"),
        ({"alpha": float("inf")}, "band_quota alpha"),
        ({"filters": {"colour": "red"}}, "filters: expected some of"),
    ],
)
def test_settings_that_cannot_be_meant(world: World, given: dict[str, Any], message: str) -> None:
    with pytest.raises(GfmError, match=message):
        search(world(("A", "B", 0.1)), **given)


def test_over_a_real_index(z: GraphIndex) -> None:
    result = load_retriever("band_quota", z).retrieve("Which sea does Port Isk lie on?", top_k=3)
    best = result.triples[0]
    assert (best.item.head, best.item.relation, best.item.tail) == ("Port Isk", "lies on", "Halder Sea")
    cosine = float(z.fact_vectors.cosine([2], z.encode(["Which sea does Port Isk lie on?"])[0])[0])
    assert best.score == pytest.approx(1 / (1 - cosine) + 0.01, rel=1e-5)
    assert [h.rank for h in result.passages] == [1, 2, 3]
    assert (result.passages[0].item.id, result.passages[0].score) == ("p3", best.score)
    assert len(result.triples) == 4
    assert set(result.seconds) == {"encode", "search", "hops", "result"}
    again = load_retriever("band_quota", z).retrieve("Which sea does Port Isk lie on?", top_k=3)
    assert (again.triples, again.passages, again.entities) == (result.triples, result.passages, result.entities)
