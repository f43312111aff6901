"""Fusion by name; what holds of every name is in retrieve/test_base.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.gnn import GNNRetriever
from gfm.retrievers import fusion, load_retriever
from gfm.types import GfmError

QUESTION = "Which sea does Port Isk lie on?"


@pytest.fixture
def z(z_index: Path) -> GraphIndex:
    return GraphIndex.open(z_index)


def ranks(z: GraphIndex, name: str, **settings: Any) -> dict[str, int]:
    return {h.item.id: h.rank for h in load_retriever(name, z, **settings).retrieve(QUESTION, 100).passages}


@pytest.mark.parametrize("names", [("dense", "bm25"), ("ppr", "dense", "bm25"), ("hybrid", "ppr_entity")])
def test_retrievers_are_fused_by_name(z: GraphIndex, names: tuple[str, ...]) -> None:
    lists = [ranks(z, name) for name in names]
    result = fusion(z, names).retrieve(QUESTION, top_k=1000)
    assert len(result.passages) == 5
    for hit in result.passages:
        assert hit.score == pytest.approx(sum(1 / (60 + row[hit.item.id]) for row in lists if hit.item.id in row))
    assert list(result.trace["fused"]) == list(names)


def test_hybrid_is_the_fusion_of_dense_and_bm25(z: GraphIndex) -> None:
    settings = {"k": 3, "depth": 4, "weights": {"bm25": 0.5}}
    ours = load_retriever("hybrid", z, **settings).retrieve(QUESTION)
    assert ours.passages == fusion(z, ["dense", "bm25"], **settings).retrieve(QUESTION).passages
    assert ours.passages[0].item.id == "p3"
    assert (ours.trace["retriever"], list(ours.trace["fused"])) == ("hybrid", ["dense", "bm25"])
    assert set(ours.seconds) == {"encode", "dense search", "bm25 search", "fuse"}
    with pytest.raises(GfmError, match="hybrid weights: expected dense and bm25"):
        load_retriever("hybrid", z, weights={"dence": 1.0})


def test_words_that_nothing_holds_leave_the_dense_order(z: GraphIndex) -> None:
    found = [load_retriever(name, z).retrieve("Zemmer Pell", 5).passages for name in ("hybrid", "dense")]
    assert [h.item.id for h in found[0]] == [h.item.id for h in found[1]]


def test_each_retriever_takes_its_own_settings(z: GraphIndex, untrained: Path) -> None:
    fused = fusion(z, ["gfm", "ppr"], settings={"gfm": {"path": untrained, "keep": 0.5}})
    assert isinstance(fused.retrievers["gfm"], GNNRetriever)
    assert fused.retrievers["gfm"].keep == 0.5
    result = fused.retrieve(QUESTION)
    assert result.paths
    assert result.triples


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retrievers": ["dense", "colbert"]}, r"fusion retrievers: expected distinct ones of gfm, dense, .*'colbert'"),
        ({"retrievers": ["dense", "fusion"]}, "fusion retrievers: expected distinct ones"),
        ({"retrievers": ["dense", "dense"]}, "fusion retrievers: expected distinct ones"),
        ({"retrievers": "dense"}, "fusion retrievers: expected distinct ones"),
        ({"retrievers": ["dense"]}, "fusion retrievers: expected two or more, found dense"),
        ({"weights": {"gfm": 1.0}}, "fusion weights: expected ppr and dense and bm25"),
        ({"settings": {"gfm": {}}}, "fusion settings: expected some of ppr, dense, bm25, found gfm"),
        ({"settings": {"dense": {"speed": 3}}}, "retriever 'dense'.*speed"),
    ],
)
def test_what_cannot_be_fused(z: GraphIndex, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GfmError, match=message):
        fusion(z, **settings)
