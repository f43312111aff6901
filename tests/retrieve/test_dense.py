from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.dense import DenseRetriever
from gfm.types import Query


def test_passages_by_cosine(z: GraphIndex) -> None:
    question = "Where was Orla Venn born?"
    result = DenseRetriever(z).retrieve(question, top_k=5)
    cosine = z.passage_vectors.rows.astype(np.float64) @ z.encode([question])[0].astype(np.float64)
    order = sorted(range(5), key=lambda i: (-cosine[i], i))
    assert order[0] == 1
    assert [h.item.id for h in result.passages] == [f"p{i + 1}" for i in order]
    assert [h.score for h in result.passages] == pytest.approx(cosine[order].tolist(), abs=1e-6)
    assert [h.rank for h in result.passages] == [1, 2, 3, 4, 5]
    assert result.passages[0].item.text == "Orla Venn was born in Port Isk."
    assert (result.query, result.score_unit, result.trace) == (
        Query("query", question),
        "cosine",
        {"retriever": "dense"},
    )
    assert (result.entities, result.triples, result.paths) == ([], [], {})
    assert set(result.seconds) == {"encode", "search"}


def test_a03_a_passage_without_an_entity_is_found(z: GraphIndex) -> None:
    assert DenseRetriever(z).retrieve("how long does jam keep?", 1).passages[0].item.id == "p5"


def test_d02_more_asked_for_than_there_is(z: GraphIndex) -> None:
    ids = [h.item.id for h in DenseRetriever(z).retrieve("Orla Venn", top_k=1000).passages]
    assert sorted(ids) == ["p1", "p2", "p3", "p4", "p5"]


def test_d02_nothing_to_find(stub_index: Callable[..., SimpleNamespace]) -> None:
    index = stub_index([])
    index.encode = lambda texts: np.eye(1, 4, dtype=np.float32)
    index.passages = lambda numbers: [None] * len(numbers)
    assert DenseRetriever(index).retrieve("Orla Venn", top_k=10).passages == []


def test_equal_scores_are_in_order_of_ids(make_index: Callable[..., GraphIndex]) -> None:
    same = "Quince jam keeps for a year."
    index = make_index({"b": same, "c": "Snow.", "a": same, "d": same})
    result = DenseRetriever(index).retrieve("quince jam", top_k=3)
    assert [h.item.id for h in result.passages] == ["a", "b", "d"]
    assert len({h.score for h in result.passages}) == 1
