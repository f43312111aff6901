from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gfm.eval.beir import load_dataset
from gfm.index.index import GraphIndex
from gfm.retrieve.signals import CandidateSettings
from gfm.train import dataset
from gfm.train.dataset import cached_subgraphs, load_subgraphs, make_subgraphs, reach, save_subgraphs
from gfm.types import GfmError, Query


@pytest.fixture(scope="module")
def index(mills: Path, tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    folder = tmp_path_factory.mktemp("index") / "mills"
    return GraphIndex.build(mills, folder, encoder="hashing:64", extractor="none", triples=mills / "triples.jsonl")


def test_one_subgraph_for_each_question_with_gold_in_order(index: GraphIndex, mills: Path) -> None:
    queries = load_dataset(mills).queries[:3]
    qrels = {queries[2].id: {"m02": 1, "elsewhere": 1, "m00": 0}, queries[0].id: {"m00": 1}}
    made = make_subgraphs(index, queries, qrels, CandidateSettings())
    assert [int(d.num_gold) for d in made] == [1, 2]
    gold = [index.passage_ids[int(i)] for d in made for i in d.node_number[(d.node_kind == 1) & (d.y == 1)]]
    assert gold == ["m00", "m02"]
    assert reach(made) == pytest.approx((1 + 0.5) / 2)  # one gold document is outside the index


def test_saved_and_loaded_again(index: GraphIndex, mills: Path, tmp_path: Path) -> None:
    found = load_dataset(mills)
    made = make_subgraphs(index, found.queries, found.qrels, CandidateSettings(max_passages=5))
    save_subgraphs(tmp_path / "s.safetensors", made)
    loaded = load_subgraphs(tmp_path / "s.safetensors")
    assert len(loaded) == len(made) == 12
    for a, b in zip(made, loaded, strict=True):
        assert a.num_nodes == b.num_nodes
        assert set(a.keys()) == set(b.keys())
        assert all(torch.equal(a[key], b[key]) for key in a.keys() if key != "num_nodes")  # noqa: SIM118
    assert [p.name for p in tmp_path.iterdir()] == ["s.safetensors"]


def test_the_cache_is_read_not_made_again(
    index: GraphIndex, mills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_dataset(mills)
    first = cached_subgraphs(tmp_path, index, found.queries, found.qrels, CandidateSettings())

    def never(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(dataset, "make_subgraphs", never)
    again = cached_subgraphs(tmp_path, index, found.queries, found.qrels, CandidateSettings())
    assert [d.num_nodes for d in again] == [d.num_nodes for d in first]
    with pytest.raises(AssertionError, match="made again"):
        cached_subgraphs(tmp_path, index, found.queries, found.qrels, CandidateSettings(max_passages=3))
    with pytest.raises(AssertionError, match="made again"):
        cached_subgraphs(tmp_path, index, found.queries[:-1], found.qrels, CandidateSettings())
    changed = {**found.qrels, found.queries[0].id: {"m03": 1}}
    with pytest.raises(AssertionError, match="made again"):
        cached_subgraphs(tmp_path, index, found.queries, changed, CandidateSettings())


def test_no_question_with_gold_is_an_error(index: GraphIndex, tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="mills: expected questions with gold passages"):
        cached_subgraphs(tmp_path, index, [Query("q", "Where?")], {}, CandidateSettings(), "mills")
    assert list(tmp_path.iterdir()) == []
