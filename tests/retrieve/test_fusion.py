from __future__ import annotations

from typing import Any

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.bm25 import BM25Retriever
from gfm.retrieve.dense import DenseRetriever
from gfm.retrieve.hybrid import HybridRetriever
from gfm.types import GfmError, Hit, Passage, Query, Retrieval


class Fixed:
    """A retriever that always finds the same passages."""

    def __init__(self, *ids: str):
        self.ids = ids
        self.asked: list[int] = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        self.asked.append(top_k)
        hits = [Hit(Passage(i, i, "", i, 0, 1), 1.0 / rank, rank) for rank, i in enumerate(self.ids, start=1)]
        return Retrieval(Query("q", "?"), [], [], hits[:top_k], "x", seconds={"search": 1.0})


def hybrid_of(z: GraphIndex, dense: Fixed, bm25: Fixed, **settings: Any) -> HybridRetriever:
    retriever = HybridRetriever(z, **settings)
    retriever._lists = {"dense": dense, "bm25": bm25}
    return retriever


def test_fusion_by_hand(z: GraphIndex) -> None:
    result = hybrid_of(z, Fixed("a", "b", "c"), Fixed("c", "a")).retrieve("?!", top_k=3)
    assert [(h.item.id, h.score, h.rank) for h in result.passages] == [
        ("a", pytest.approx(1 / 61 + 1 / 62), 1),
        ("c", pytest.approx(1 / 63 + 1 / 61), 2),
        ("b", pytest.approx(1 / 62), 3),
    ]
    assert (result.score_unit, result.trace["retriever"]) == ("reciprocal rank", "hybrid")


def test_weights_k_and_depth(z: GraphIndex) -> None:
    dense, bm25 = Fixed("a", "b"), Fixed("b", "a")
    settings = {"k": 1, "depth": 7, "weights": {"bm25": 3.0}}
    result = hybrid_of(z, dense, bm25, **settings).retrieve("?!", top_k=1)
    assert [(h.item.id, h.score) for h in result.passages] == [("b", pytest.approx(1 / 3 + 3 / 2))]
    assert (dense.asked, bm25.asked) == ([7], [7])
    hybrid_of(z, dense, bm25, **settings).retrieve("?!", top_k=20)
    assert (dense.asked, bm25.asked) == ([7, 20], [7, 20])


def test_equal_scores_are_in_order_of_ids(z: GraphIndex) -> None:
    result = hybrid_of(z, Fixed("b", "a"), Fixed("a", "b")).retrieve("?!")
    assert [h.item.id for h in result.passages] == ["a", "b"]


def test_over_a_real_index(z: GraphIndex) -> None:
    question = "Which sea does Port Isk lie on?"
    rank = {
        name: {h.item.id: h.rank for h in retriever.retrieve(question, 100).passages}
        for name, retriever in (("dense", DenseRetriever(z)), ("bm25", BM25Retriever(z)))
    }
    result = HybridRetriever(z).retrieve(question, top_k=1000)
    assert len(result.passages) == 5
    for hit in result.passages:
        expected = sum(1 / (60 + ranks[hit.item.id]) for ranks in rank.values() if hit.item.id in ranks)
        assert hit.score == pytest.approx(expected)
    assert result.passages[0].item.id == "p3"
    assert set(result.seconds) == {"encode", "dense search", "bm25 search", "fuse"}


def test_words_that_nothing_holds_leave_the_dense_order(z: GraphIndex) -> None:
    question = "Zemmer Pell"
    ids = [[h.item.id for h in r.retrieve(question, 5).passages] for r in (HybridRetriever(z), DenseRetriever(z))]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {"dence": 1.0}}, "hybrid weights: expected dense and bm25"),
        ({"weights": {"dense": -1.0}}, "hybrid weights"),
        ({"weights": {"dense": float("nan")}}, "hybrid weights"),
        ({"weights": {"bm25": float("inf")}}, "hybrid weights"),
        ({"weights": {"dense": 0.0, "bm25": 0.0}}, "hybrid weights"),
        ({"k": -1}, "hybrid k: expected 0 or more, found -1"),
        ({"depth": 0}, "hybrid depth: expected 1 or more, found 0"),
    ],
)
def test_settings_that_cannot_be_meant(z: GraphIndex, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GfmError, match=message):
        HybridRetriever(z, **settings)
