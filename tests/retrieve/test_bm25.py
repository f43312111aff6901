from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.bm25 import BM25Retriever
from gfm.types import Query


def test_by_hand(z: GraphIndex) -> None:
    """Words: 9, 7, 7, 6, 6, so 7 on average; "winter" stands in p4 alone; "the" in p3 and p4."""
    result = BM25Retriever(z).retrieve(Query("q", "The WINTER?"), top_k=5)
    lengths = {"p3": 7, "p4": 6}
    rare, common = math.log(1 + 4.5 / 1.5), math.log(1 + 3.5 / 2.5)
    share = {p: 1 / (1 + 1.5 * (0.25 + 0.75 * n / 7)) for p, n in lengths.items()}
    expected = [("p4", (rare + common) * share["p4"], 1), ("p3", common * share["p3"], 2)]
    assert [(h.item.id, pytest.approx(h.score, rel=1e-5), h.rank) for h in result.passages] == expected
    assert (result.score_unit, result.trace) == ("BM25", {"retriever": "bm25"})
    assert set(result.seconds) == {"search"}


@pytest.mark.parametrize("question", ["Zemmer Pell?", "?", "关系", "a b c"])
def test_no_shared_word_is_no_result(z: GraphIndex, question: str) -> None:
    hits = BM25Retriever(z).retrieve(question, top_k=5).passages
    assert [h.item.id for h in hits] == (["p5"] if " a " in f" {question} " else [])  # "for a year"


def test_a_word_asked_twice_counts_once(z: GraphIndex) -> None:
    once, twice = (BM25Retriever(z).retrieve(q).passages for q in ("winter", "winter winter"))
    assert once == twice
    assert len(once) == 1


def test_more_asked_for_than_there_is_and_fewer(z: GraphIndex) -> None:
    assert len(BM25Retriever(z).retrieve("Port Isk", top_k=1000).passages) == 2
    assert len(BM25Retriever(z).retrieve("Port Isk", top_k=1).passages) == 1


def test_equal_scores_are_in_order_of_ids(make_index: Callable[..., GraphIndex]) -> None:
    index = make_index({"c": "jam jar", "a": "jam jar", "b": "jam jar", "d": "snow"})
    assert [h.item.id for h in BM25Retriever(index).retrieve("jam", top_k=2).passages] == ["a", "b"]
