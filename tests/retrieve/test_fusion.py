from __future__ import annotations

from typing import Any

import pytest

from gfm.retrieve.fusion import FusionRetriever
from gfm.types import Entity, GfmError, Hit, Passage, PathStep, Query, Retrieval, Triple

STEP = PathStep("A", "mention", "", "b", "b")


def ranked(items: list[Any]) -> list[Hit[Any]]:
    return [Hit(item, 1.0 / rank, rank) for rank, item in enumerate(items, start=1)]


class Fixed:
    """A retriever that always finds the same."""

    def __init__(
        self, *ids: str, entities: str = "", triples: str = "", paths: dict[str, list[PathStep]] | None = None
    ):
        self.index: Any = "the index"
        self.found = (
            ranked([Entity(key, key.upper()) for key in entities]),
            ranked([Triple(text, "r", "t", text, 1.0, ("a",)) for text in triples]),
            ranked([Passage(i, i, "", i, 0, 1) for i in ids]),
        )
        self.paths = paths or {}
        self.asked: list[int] = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        self.asked.append(top_k)
        entities, triples, passages = self.found
        seconds = {"encode": 2.0, "search": 1.0}
        trace = {"retriever": "fixed"}
        return Retrieval(
            Query("q", "?"), entities, triples, passages[:top_k], "x", self.paths, trace=trace, seconds=seconds
        )


def test_by_hand() -> None:
    one, two = Fixed("a", "b", "c"), Fixed("c", "a")
    retriever = FusionRetriever({"one": one, "two": two})
    result = retriever.retrieve("?!", top_k=3)
    assert [(h.item.id, h.score, h.rank) for h in result.passages] == [
        ("a", pytest.approx(1 / 61 + 1 / 62), 1),
        ("c", pytest.approx(1 / 63 + 1 / 61), 2),
        ("b", pytest.approx(1 / 62), 3),
    ]
    assert result.score_unit == "reciprocal rank"
    assert result.trace == {"retriever": "fusion", "fused": {name: {"retriever": "fixed"} for name in ("one", "two")}}
    assert retriever.index == "the index"


def test_three_lists_and_one_that_found_nothing() -> None:
    """b is second twice, a first once: 2 / 62 > 1 / 61."""
    fused = FusionRetriever({"x": Fixed("a", "b"), "y": Fixed("c", "b"), "z": Fixed()})
    assert [h.item.id for h in fused.retrieve("?!").passages] == ["b", "a", "c"]


def test_weights_k_and_depth() -> None:
    one, two = Fixed("a", "b"), Fixed("b", "a")
    retriever = FusionRetriever({"one": one, "two": two}, k=1, depth=7, weights={"two": 3.0}, name="mine")
    result = retriever.retrieve("?!", top_k=1)
    assert [(h.item.id, h.score) for h in result.passages] == [("b", pytest.approx(1 / 3 + 3 / 2))]
    assert result.trace["retriever"] == "mine"
    retriever.retrieve("?!", top_k=20)
    assert (one.asked, two.asked) == ([7, 20], [7, 20])


def test_equal_scores_are_in_order_of_ids() -> None:
    result = FusionRetriever({"one": Fixed("b", "a"), "two": Fixed("a", "b")}).retrieve("?!")
    assert [h.item.id for h in result.passages] == ["a", "b"]


def test_evidence_is_fused_like_passages() -> None:
    one, two = Fixed("b", "a", entities="xy", triples="gf"), Fixed("a", entities="yz", triples="f")
    result = FusionRetriever({"one": one, "two": two}, k=0).retrieve("?!")
    assert [(h.item.key, h.score) for h in result.entities] == [("y", 1.5), ("x", 1.0), ("z", 0.5)]
    assert [(h.item.text, h.score) for h in result.triples] == [("f", 1.5), ("g", 1.0)]


def test_a_path_is_that_of_the_first_with_one_and_only_of_returned_passages() -> None:
    other = PathStep("B", "mention", "", "b", "b")
    one = Fixed("a", "b", paths={"b": [STEP], "c": [STEP]})
    two = Fixed("a", "b", paths={"a": [other], "b": [other]})
    found = FusionRetriever({"one": one, "two": two})
    assert found.retrieve("?!").paths == {"a": [other], "b": [STEP]}
    assert found.retrieve("?!", top_k=1).paths == {"a": [other]}


def test_seconds_of_each_and_all_encoding_in_one() -> None:
    seconds = FusionRetriever({"one": Fixed("a"), "two": Fixed("a")}).retrieve("?!").seconds
    assert seconds.pop("fuse") >= 0
    assert seconds == {"encode": 4.0, "one search": 1.0, "two search": 1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {"dence": 1.0}}, "fusion weights: expected one and two"),
        ({"weights": {"one": -1.0}}, "fusion weights"),
        ({"weights": {"one": float("nan")}}, "fusion weights"),
        ({"weights": {"two": float("inf")}}, "fusion weights"),
        ({"weights": {"one": 0.0, "two": 0.0}}, "fusion weights"),
        ({"k": -1}, "fusion k: expected 0 or more, found -1"),
        ({"depth": 0}, "fusion depth: expected 1 or more, found 0"),
        ({"retrievers": {"one": Fixed()}}, "fusion retrievers: expected two or more, found one"),
        ({"retrievers": {}}, "fusion retrievers: expected two or more, found none"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GfmError, match=message):
        FusionRetriever(**{"retrievers": {"one": Fixed(), "two": Fixed()}, **settings})
