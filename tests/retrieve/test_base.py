from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.base import (
    Stopwatch,
    as_query,
    check_whole,
    document_scores,
    passage_hits,
    query_vector,
    ranked,
)
from gfm.retrieve.dense import DenseRetriever
from gfm.retrievers import NAMES, TRAINED, load_retriever
from gfm.types import GfmError, Hit, Passage, Query, Retrieval


def test_a_text_becomes_a_query_and_a_query_stays_itself() -> None:
    assert as_query("Where?", 1) == Query("query", "Where?")
    given = Query("q7", " Where? ", {"type": "bridge"})
    assert as_query(given, 10) is given


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u3000", None, 7])
def test_a_blank_question_is_an_error_that_names_it(text: Any) -> None:
    with pytest.raises(GfmError, match="query 'q3': expected a question"):
        as_query(Query("q3", text), 5)


@pytest.mark.parametrize("query", [None, 7, b"Where?", ["Where?"]])
def test_what_is_no_question_is_an_error(query: Any) -> None:
    with pytest.raises(GfmError, match="expected a question"):
        as_query(query, 5)


@pytest.mark.parametrize("top_k", [0, -1, 2.5, "5", None, True])
def test_a_top_k_that_is_no_number_above_0_is_an_error(top_k: Any) -> None:
    with pytest.raises(GfmError, match=r"top_k: expected a whole number of 1 or more, found"):
        as_query("Where?", top_k)


def test_numpy_numbers_are_numbers() -> None:
    assert as_query("Where?", np.int64(3)).text == "Where?"


@pytest.mark.parametrize(("value", "least"), [(0, 1), (-1, 0), (1.0, 0), ("3", 0), (None, 0), (False, 0)])
def test_a_setting_that_is_no_whole_number_is_an_error(value: Any, least: int) -> None:
    with pytest.raises(GfmError, match=rf"beam: expected a whole number of {least} or more, found {value!r}"):
        check_whole("beam", value, least)
    check_whole("beam", np.int32(least), least)


def test_anything_with_a_number_can_be_ranked() -> None:
    def names(numbers: np.ndarray) -> list[str]:
        return [str(n) for n in numbers]

    hits = ranked(names, np.array([9, 3, 4, 1]), np.array([0.5, 0.5, 0.9, -1.0]))
    assert hits == [Hit("4", 0.9, 1), Hit("3", 0.5, 2), Hit("9", 0.5, 3), Hit("1", -1.0, 4)]
    assert ranked(names, np.array([9, 3, 4]), np.array([0.5, 0.5, 0.9]), top_k=2) == hits[:2]


def test_hits_are_in_total_order(z: GraphIndex) -> None:
    hits = passage_hits(z, np.array([4, 0, 2, 1]), np.array([0.5, 0.5, 0.9, -1.0]), 10)
    assert [(h.item.id, h.score, h.rank) for h in hits] == [
        ("p3", 0.9, 1),
        ("p1", 0.5, 2),
        ("p5", 0.5, 3),
        ("p2", -1.0, 4),
    ]
    assert [h.item.id for h in passage_hits(z, np.array([4, 0, 2]), np.array([0.5, 0.5, 0.9]), 2)] == ["p3", "p1"]
    assert passage_hits(z, np.zeros(0, dtype=np.int64), np.zeros(0), 3) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_names_its_passage(z: GraphIndex, bad: float) -> None:
    with pytest.raises(GfmError, match="passage 'p4': its score is not finite"):
        passage_hits(z, np.array([0, 3]), np.array([1.0, bad]), 1)


def test_documents_get_the_best_score_of_their_passages() -> None:
    rows = [("a#1", "a", 0.2), ("b", "b", 0.9), ("a#2", "a", 0.7), ("c", "c", -3.0)]
    hits = [Hit(Passage(p, d, "", "", 0, 0), s, i) for i, (p, d, s) in enumerate(rows, start=1)]
    assert document_scores(Retrieval(Query("q", "?"), [], [], hits, "cosine")) == {"a": 0.7, "b": 0.9, "c": -3.0}


def test_stopwatch_adds_up_and_counts_a_stage_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([1.0, 3.0, 10.0, 14.0, 20.0, 20.5])
    monkeypatch.setattr("gfm.retrieve.base.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    clock = Stopwatch()
    with clock.stage("search"):
        pass
    with clock.stage("search"):
        pass
    with pytest.raises(ZeroDivisionError), clock.stage("fuse"):
        _ = 1 / 0
    assert clock.seconds == {"search": 6.0, "fuse": 0.5}


def test_query_vector_is_the_encoders(z: GraphIndex) -> None:
    clock = Stopwatch()
    vector = query_vector(z, Query("q", "Orla Venn"), clock)
    assert vector.shape == (64,)
    assert vector.dtype == np.float32
    assert vector.tolist() == z.encode(["Orla Venn"])[0].tolist()
    assert set(clock.seconds) == {"encode"}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_gives_a_retriever(z: GraphIndex, untrained: Any, name: str) -> None:
    retriever = load_retriever(name, z, **({"path": untrained} if name in TRAINED else {}))
    result = retriever.retrieve("Where was Orla Venn born?", top_k=2)
    assert result.trace["retriever"] == name
    assert [h.rank for h in result.passages] == [1, 2]


def test_an_unknown_name_lists_the_known(z: GraphIndex) -> None:
    with pytest.raises(GfmError, match=r"retriever 'colbert': expected one of gfm, dense, bm25, hybrid"):
        load_retriever("colbert", z)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_is_an_error(z: GraphIndex, untrained: Any, name: str) -> None:
    with pytest.raises(GfmError, match=f"retriever '{name}'.*speed|candidates.*speed"):
        load_retriever(name, z, speed=3, **({"path": untrained} if name in TRAINED else {}))


def test_a_defect_inside_a_retriever_is_not_taken_for_a_wrong_setting(
    z: GraphIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, index: object) -> None:
        raise TypeError("a defect")

    monkeypatch.setattr(DenseRetriever, "__init__", broken)
    with pytest.raises(TypeError, match="a defect"):
        load_retriever("dense", z)
