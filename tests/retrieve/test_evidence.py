from __future__ import annotations

from collections.abc import Callable

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.bm25 import BM25Retriever
from gfm.retrieve.dense import DenseRetriever
from gfm.retrieve.evidence import at_least, evidence


@pytest.fixture
def index(placed_index: Callable[..., GraphIndex]) -> GraphIndex:
    """Two passages whose cosines with any question are known."""
    return placed_index({"a": "Tarn Mill.", "b": "Quince jam."}, cosine={"Tarn Mill.": 0.6, "Quince jam.": 0.1})


def test_evidence_is_the_cosine_of_the_best_passage_whoever_found_it(index: GraphIndex) -> None:
    assert evidence(index, DenseRetriever(index).retrieve("Mill?", 2)) == pytest.approx(0.6, abs=1e-6)
    assert evidence(index, BM25Retriever(index).retrieve("jam", 1)) == pytest.approx(0.1, abs=1e-6)
    assert evidence(index, BM25Retriever(index).retrieve("xyz", 1)) == 0.0


def test_below_the_least_nothing_is_left_and_the_trace_says_why(index: GraphIndex) -> None:
    found = DenseRetriever(index).retrieve("Mill?", 2)
    whole = at_least(index, found, 0.5)
    assert [hit.item.document_id for hit in whole.passages] == ["a", "b"]  # all of it, the second passage too
    empty = at_least(index, found, 0.7)
    assert (empty.passages, empty.entities, empty.triples, empty.paths) == ([], [], [], {})
    assert empty.trace["evidence"] == pytest.approx(0.6, abs=1e-6)
    assert empty.trace["least_evidence"] == 0.7
