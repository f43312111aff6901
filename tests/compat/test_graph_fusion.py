from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.compat.band_quota import BandQuotaRetriever
from gfm.compat.graph_fusion import fuse, relationship_text, retrieve_subquestions
from gfm.types import Entity, GfmError, Hit, Passage, PathStep, Query, Retrieval, Triple

World = Callable[..., SimpleNamespace]
Q = Query("q", "Who built Tarn Mill?")


def hits(*rows: tuple[Any, float]) -> list[Hit[Any]]:
    return [Hit(item, score, rank) for rank, (item, score) in enumerate(rows, 1)]


def passage(name: str, text: str = "x") -> Passage:
    return Passage(name, name, "", text, 0, 1)


def built(weight: float, text: str = "built", sources: tuple[str, ...] = ("p1",)) -> Triple:
    return Triple("Tarn Mill", "built by", "Orla Venn", text, weight, sources)


def found(
    entities: Any = (), triples: Any = (), passages: Any = (), unit: str = "inverse distance", **more: Any
) -> Retrieval:
    return Retrieval(Q, hits(*entities), hits(*triples), hits(*passages), unit, **more)


BORN = Triple("Orla Venn", "born in", "Port Isk", "born", 1.0, ("p2",))


def test_the_text_for_people() -> None:
    assert relationship_text(BORN) == "Orla Venn -> born in -> Port Isk"
    assert relationship_text(Triple("A", "", "B", "A met B.", 1.0, ())) == "A -> A met B. -> B"


def test_fusion_by_hand_and_the_inputs_stay_as_they_are() -> None:
    one = found(
        [(Entity("orla venn", "Orla Venn"), 3.0), (Entity("tarn mill", "Tarn Mill"), 1.0)],
        [(BORN, 3.0), (built(2.0, "first"), 1.0)],
        [(passage("p2"), 3.0), (passage("p1"), 1.0)],
        trace={"retriever": "band_quota", "n": 1},
        seconds={"encode": 1.0, "search": 2.0},
    )
    two = found(
        [(Entity("tarn mill", "TARN MILL"), 2.0), (Entity("isk", "Isk"), 2.0)],
        [(built(5.0, "second", ("p9", "p1")), 2.0)],
        [(passage("p1"), 2.0), (passage("p9"), 2.0)],
        trace={"retriever": "band_quota", "n": 2},
        seconds={"encode": 0.5},
    )
    before = copy.deepcopy((one, two))
    result = fuse(Q, [one, two], 2)
    assert result.entities == hits(
        (Entity("orla venn", "Orla Venn"), 3.0), (Entity("isk", "Isk"), 2.0), (Entity("tarn mill", "TARN MILL"), 2.0)
    )
    assert result.triples == hits((BORN, 3.0), (built(7.0, "second", ("p9", "p1")), 2.0))
    assert result.passages == hits((passage("p2"), 3.0), (passage("p1"), 2.0))
    assert (result.query, result.score_unit) == (Q, "inverse distance")
    assert result.trace == {"retriever": "band_quota", "fused": [one.trace, two.trace]}
    assert result.seconds["encode"] == 1.5
    assert set(result.seconds) == {"encode", "search", "fuse"}
    assert (one, two) == before


def test_relationships_without_words_are_told_apart_by_their_sentence() -> None:
    bare = [Triple("A", "", "B", text, 1.0, ()) for text in ("A met B.", "A left B.", "A met B.")]
    result = fuse(Q, [found(triples=[(t, 1.0)]) for t in bare], 5)
    assert [(h.item.text, h.item.weight) for h in result.triples] == [("A left B.", 1.0), ("A met B.", 2.0)]


def test_direction_counts() -> None:
    other = Triple("Orla Venn", "built by", "Tarn Mill", "x", 1.0, ())
    assert len(fuse(Q, [found(triples=[(built(1.0), 1.0), (other, 1.0)])], 5).triples) == 2


def test_two_passages_of_one_id() -> None:
    parts = [found(passages=[(passage("p1", text), 1.0)]) for text in ("one", "two")]
    with pytest.raises(GfmError, match="expected passage ids to be unique over all indexes, found two passages 'p1'"):
        fuse(Q, parts, 5)


def test_scores_of_several_units() -> None:
    with pytest.raises(GfmError, match=r"expected results with scores of one unit, found \['BM25', 'cosine'\]"):
        fuse(Q, [found(unit="cosine"), found(unit="BM25")], 5)
    with pytest.raises(GfmError, match=r"scores of one unit, found \[\]"):
        fuse(Q, [], 5)


def test_the_first_path_to_a_returned_passage_is_kept() -> None:
    steps = [[PathStep("A", "fact", text, "B", "p1")] for text in ("one", "two")]
    parts = [found(passages=[(passage("p1"), 1.0)], paths={"p1": path, "p7": path}) for path in steps]
    assert fuse(Q, parts, 5).paths == {"p1": steps[0]}


TRIPLES = st.builds(
    Triple,
    st.sampled_from("AB"),
    st.sampled_from(["", "r"]),
    st.sampled_from("CD"),
    st.sampled_from(["s", "t"]),
    st.integers(0, 9).map(float),
    st.just(("p",)),
)
LISTS = st.lists(st.tuples(TRIPLES, st.integers(0, 5).map(float)), max_size=5)


@given(st.lists(LISTS, min_size=2, max_size=4))
def test_no_weight_is_lost_and_fusing_in_steps_changes_nothing(lists: list[Any]) -> None:
    parts = [found(triples=sorted(rows, key=lambda r: -r[1])) for rows in lists]
    whole = fuse(Q, parts, 5)
    stepwise = fuse(Q, [fuse(Q, parts[:2], 5), *parts[2:]], 5)
    assert sum(h.item.weight for h in whole.triples) == sum(t.weight for rows in lists for t, _ in rows)
    key = [(relationship_text(h.item), h.item.weight, h.score, h.rank) for h in whole.triples]
    assert key == [(relationship_text(h.item), h.item.weight, h.score, h.rank) for h in stepwise.triples]


class Fixed:
    """A retriever that finds one relationship, named by the question."""

    index: Any = None

    def __init__(self, weight: float):
        self.weight = weight
        self.asked: list[str] = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        assert isinstance(query, Query)
        self.asked.append(query.text)
        triple = Triple("A", query.text, "B", "s", self.weight, ())
        return Retrieval(query, [], hits((triple, 1.0), (BORN, 0.5)), [], "x")


def test_sub_questions_are_searched_in_every_index_and_kept_apart() -> None:
    retrievers = [Fixed(1.0), Fixed(10.0)]
    result = retrieve_subquestions(retrievers, Q, ["who?", "where?"], 3)
    assert [r.asked for r in retrievers] == [["who?", "where?"]] * 2
    assert [part.query for part in result.parts] == [Query("q/1", "who?"), Query("q/2", "where?")]
    for part, relation in zip(result.parts, ("who?", "where?"), strict=True):
        # The fused result adds the weights once more; those of a part must not grow with it.
        assert [(h.item.relation, h.item.weight) for h in part.triples] == [(relation, 11.0), ("born in", 2.0)]
    assert result.fused.query is Q
    assert [(h.item.relation, h.item.weight) for h in result.fused.triples] == [
        ("where?", 11.0),
        ("who?", 11.0),
        ("born in", 4.0),
    ]


def test_without_sub_questions_the_question_itself_is_searched() -> None:
    result = retrieve_subquestions([Fixed(1.0)], Q)
    assert [part.query for part in result.parts] == [Q]
    assert [h.item.relation for h in result.fused.triples] == [Q.text, "born in"]


def test_bad_sub_questions() -> None:
    assert len(retrieve_subquestions([Fixed(1.0)], Q, ["?"] * 5).parts) == 5
    with pytest.raises(GfmError, match="sub-questions: expected at most 5, found 6"):
        retrieve_subquestions([Fixed(1.0)], Q, ["?"] * 6)
    with pytest.raises(GfmError, match="expected at least one retriever, found none"):
        retrieve_subquestions([], Q)
    with pytest.raises(GfmError, match="expected a question"):
        retrieve_subquestions([Fixed(1.0)], " ")


def test_a_blank_sub_question_is_named(world: World) -> None:
    with pytest.raises(GfmError, match="query 'q/2': expected a question"):
        retrieve_subquestions([BandQuotaRetriever(world(("A", "B", 0.1)))], Q, ["who?", " "])


def test_two_real_walks(world: World) -> None:
    """The same statement in two indexes; an index without relationships joins by the distance of its passages."""
    one, two = (BandQuotaRetriever(world(("A", "B", d), passages=[0.9])) for d in (0.5, 0.4))
    none = BandQuotaRetriever(world(passages=[0.9], near={"C": 0.8}))
    result = retrieve_subquestions([one, two, none], Q).fused
    assert [(h.item.weight, h.score) for h in result.triples] == [(2.0, pytest.approx(2.51))]
    assert [(h.item.id, h.score) for h in result.passages] == [("p0", pytest.approx(2.51))]
    assert [h.item.name for h in result.entities] == ["A", "B", "C"]
