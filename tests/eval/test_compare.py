"""Retrievers side by side, against one whose answers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from gfm.eval.beir import Dataset
from gfm.eval.compare import compare, type_counts
from gfm.eval.demo import table_rows
from gfm.index.index import GraphIndex
from gfm.types import GfmError, Hit, Query, Retrieval

QUERIES = [
    Query("q1", "who built it?", {"type": "one_hop"}),
    Query("q2", "which sea?", {"type": "bridge"}),
    Query("q3", "no gold", {"type": "bridge"}),
    Query("q4", "which winter?", {"type": "bridge"}),
]
QRELS = {"q1": {"p1": 1}, "q2": {"p2": 1, "p3": 1}, "q4": {"p4": 1, "p5": 1}}


class Fixed:
    """Always p1, p2, p3, p4, p5, in 3 + encode_ms milliseconds by its own account."""

    def __init__(self, index: GraphIndex, encode_ms: float = 0.0):
        self.index, self._encode = index, encode_ms / 1000
        self.asked: list[str] = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        assert isinstance(query, Query)
        self.asked.append(query.id)
        hits = [Hit(self.index.passage(i), 1.0 - 0.1 * i, i + 1) for i in range(min(top_k, 5))]
        seconds = {"search": 0.001, "rank": 0.002} | ({"encode": self._encode} if self._encode else {})
        return Retrieval(query, [], [], hits, "cosine", seconds=seconds)


@pytest.fixture
def dataset(z_files: Path) -> Dataset:
    return Dataset("z", z_files / "corpus.jsonl", QUERIES, QRELS)


def test_recall_is_strict_and_split_by_type(dataset: Dataset, z_index: Path) -> None:
    retriever = Fixed(GraphIndex.open(z_index), encode_ms=7)
    figures = compare(dataset, {"fixed": retriever})["fixed"]
    assert retriever.asked == ["q1", "q1", "q2", "q4"]  # the first twice: once to warm up
    assert figures.recall["one_hop"] == {"R@2": 1.0, "R@5": 1.0}
    assert figures.recall["bridge"] == {"R@2": 0.25, "R@5": 1.0}
    assert figures.recall["all"]["R@2"] == pytest.approx(0.5)
    assert figures.retrieval_ms == pytest.approx(3.0)
    assert figures.encode_ms == pytest.approx(7.0)
    assert type_counts(dataset) == {"all": 3, "one_hop": 1, "bridge": 2}


def test_the_table_shows_percent_by_type_and_the_times_apart(dataset: Dataset, z_index: Path) -> None:
    index = GraphIndex.open(z_index)
    figures = compare(dataset, {"a": Fixed(index, encode_ms=7), "b": Fixed(index)})
    rows = dict(table_rows(figures, type_counts(dataset))[:4])
    assert rows == {
        "strict recall@2, %": [],
        "  all (3)": ["50.0", "50.0"],
        "  one_hop (1)": ["100.0", "100.0"],
        "  bridge (2)": ["25.0", "25.0"],
    }
    assert table_rows(figures, type_counts(dataset))[-2:] == [
        ("  retrieval", ["3.0", "3.0"]),
        ("  query encoding", ["7.0", "-"]),
    ]


def test_a_set_without_gold_is_an_error(dataset: Dataset) -> None:
    with pytest.raises(GfmError, match="qrels"):
        compare(Dataset("z", dataset.corpus, QUERIES, {}), {})
