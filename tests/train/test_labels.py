from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.train.labels import gold_names, label

CORPUS = [
    {"_id": "d1", "title": "Tarn Mill", "text": "Tarn Mill was built by Orla Venn. " * 6},
    {"_id": "d2", "title": "Orla Venn", "text": "Orla Venn was born in Port Isk."},
    {"_id": "d3", "title": "", "text": "Quince jam keeps for a year."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    """Four passages: d1 makes two."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CORPUS), encoding="utf-8")
    triples = [
        {"head": "Tarn Mill", "relation": "built by", "tail": "Orla Venn", "passage_id": "d1"},
        {"head": "Orla Venn", "relation": "born in", "tail": "Port Isk", "passage_id": "d2"},
        {"head": "Quince", "relation": "makes", "tail": "Jam", "passage_id": "d3"},
    ]
    path: Path = folder / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in triples), encoding="utf-8")
    return GraphIndex.build(
        folder / "corpus.jsonl",
        folder / "index",
        encoder="hashing:32",
        extractor="none",
        triples=path,
        settings=BuildSettings(chunk_tokens=40),
    )


def everything(index: GraphIndex) -> Data:
    """The whole graph as a candidate subgraph: entities first, then passages."""
    graph = index.graph
    numbers = np.concatenate([np.arange(graph.num_entities), np.arange(graph.num_passages)])
    kind = (np.arange(len(numbers)) >= graph.num_entities).astype(np.int64)
    return Data(
        node_kind=torch.from_numpy(kind),
        node_number=torch.from_numpy(numbers),
        edge_index=torch.from_numpy(np.array(graph.edge_index, dtype=np.int64)),
        edge_triple=torch.from_numpy(np.array(graph.edge_triple, dtype=np.int64)),
        num_nodes=len(numbers),
    )


def entities(index: GraphIndex, data: Data, value: int) -> set[str]:
    """Keys of the entities with that label."""
    chosen = (data.node_kind == 0) & (data.y == value)
    return {index.entity_key(int(i)) for i in data.node_number[chosen]}


def test_names_of_answers_and_evidence() -> None:
    metadata = {"answer": ["Port Isk", 7, "yes"], "evidences": [["Tarn Mill", "built by", "Orla Venn"]]}
    assert gold_names(metadata) == {"port isk", "tarn mill", "orla venn"}
    assert gold_names({"answer": "No"}) == set()
    assert gold_names({}) == set()


def test_every_passage_of_a_gold_document_is_gold(index: GraphIndex) -> None:
    assert index.document_ids == ["d1", "d1", "d2", "d3"]
    data = label(everything(index), index, {"d1"}, {})
    passage = data.node_kind == 1
    assert data.y[passage].tolist() == [1, 1, 0, 0]
    assert data.document[passage].tolist() == [0, 0, 1, 2]
    assert set(data.document[~passage].tolist()) == {-1}


def test_gold_entities_are_the_subjects_and_the_answers(index: GraphIndex) -> None:
    data = label(everything(index), index, {"d1"}, {"answer": "Port Isk"})
    assert entities(index, data, 1) == {"tarn mill", "port isk"}
    assert entities(index, data, -1) == set()


def test_a_fact_is_gold_where_a_gold_passage_joins_two_gold_entities(index: GraphIndex) -> None:
    data = label(everything(index), index, {"d1", "d2"}, {"answer": "Port Isk"})
    gold = {index.triple(int(t)).tail for t in data.edge_triple[data.edge_y == 1]}
    assert gold == {"Orla Venn", "Port Isk"}
    wrong = {index.triple(int(t)).tail for t in data.edge_triple[data.edge_y == 0]}
    assert wrong == {"Jam"}
    assert set(data.edge_y[data.edge_triple < 0].tolist()) == {-1}


def test_a_kind_without_gold_is_unknown_not_wrong(index: GraphIndex) -> None:
    data = label(everything(index), index, {"d3"}, {})  # without a title, so without a subject
    assert set(data.y[data.node_kind == 0].tolist()) == {-1}
    assert set(data.edge_y.tolist()) == {-1}
    assert data.y[data.node_kind == 1].tolist() == [0, 0, 0, 1]
