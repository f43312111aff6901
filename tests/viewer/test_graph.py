"""A scored subgraph as plain values, on Corpus Z: five entities and five passages in one chain."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gfm.index.index import GraphIndex
from gfm.report import as_json
from gfm.retrieve.gnn import GNNRetriever
from gfm.retrieve.signals import CandidateSettings
from gfm.retrievers import load_retriever
from gfm.viewer.graph import explanation

SEA = "Which sea is near the birthplace of the builder of Tarn Mill?"


@pytest.fixture(scope="module")
def z(z_index: Path) -> GraphIndex:
    return GraphIndex.open(z_index)


@pytest.fixture(scope="module")
def made(z: GraphIndex, untrained: Path) -> dict[str, Any]:
    return explanation(z, GNNRetriever.from_pretrained(z, untrained).explain(SEA, 5))


def test_every_node_is_there_with_its_hop_and_score(made: dict[str, Any]) -> None:
    nodes = made["graph"]["nodes"]
    assert [n["name"] for n in nodes] == [
        "Halder Sea",
        "Orla Venn",
        "Port Isk",
        "Tarn Mill",
        "winter",
        "p1",
        "p2",
        "p3",
        "p4",
        "p5",
    ]
    assert [n.get("hop") for n in nodes] == [0] * 5 + [None] * 5
    assert all(n["kept"] and 0 < n["score"] < 1 for n in nodes)
    scores = {n["id"]: n["score"] for n in nodes}
    assert [scores[hit["id"]] for hit in made["passages"]] == [hit["score"] for hit in made["passages"]]


def test_every_connection_is_there_once(made: dict[str, Any]) -> None:
    graph = made["graph"]
    names = [n["name"] for n in graph["nodes"]]
    assert Counter(link["kind"] for link in graph["links"]) == {"fact": 4, "mention": 8}
    facts = {(names[k["source"]], k["relation"], names[k["target"]]): k for k in graph["links"] if k["kind"] == "fact"}
    assert set(facts) == {
        ("Tarn Mill", "built by", "Orla Venn"),
        ("Orla Venn", "born in", "Port Isk"),
        ("Port Isk", "lies on", "Halder Sea"),
        ("Halder Sea", "freezes in", "winter"),
    }
    scores = {(row["head"], row["tail"]): row["score"] for row in made["facts"]}
    assert {(h, t): k["score"] for (h, _, t), k in facts.items()} == scores  # the better one of both directions
    assert all(k["kept"] for k in facts.values())


def test_a_fact_has_its_sentence_and_its_passages(made: dict[str, Any]) -> None:
    facts = made["graph"]["facts"]
    assert {f["text"]: f["passages"] for f in facts}["Tarn Mill built by Orla Venn"] == ["p1"]
    assert all(f["spans"] == {} for f in facts)  # the triples were given: no passage has their words


def test_a_sentence_of_a_text_is_found_in_its_passage(tmp_path: Path, untrained: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    text = "Some words first. It was built by Orla Venn in Paris."
    corpus.write_text(json.dumps({"_id": "a", "title": "Tarn Mill", "text": text}) + "\n", encoding="utf-8")
    row = {"head": "Tarn Mill", "relation": "built by", "tail": "Orla Venn", "passage_id": "a"}
    given = tmp_path / "triples.jsonl"
    given.write_text(json.dumps({**row, "text": f"Tarn Mill: {text[18:]}"}) + "\n", encoding="utf-8")
    index = GraphIndex.build(corpus, tmp_path / "i", encoder="hashing:64", triples=given)
    made = explanation(index, GNNRetriever.from_pretrained(index, untrained).explain("Who?", 1))
    (fact,) = made["graph"]["facts"]
    assert fact == {"text": f"Tarn Mill: {text[18:]}", "passages": ["a"], "spans": {"a": (18, len(text))}}


def test_a_mention_knows_where_the_name_stands(made: dict[str, Any]) -> None:
    graph = made["graph"]
    shown = set()
    for link in graph["links"]:
        if link["kind"] == "mention":
            passage, entity = graph["nodes"][link["source"]], graph["nodes"][link["target"]]
            text = graph["texts"][passage["id"]]["text"]
            assert [text[start:end] for start, end in link["spans"]] == [entity["name"]]
            shown.add((passage["id"], entity["name"]))
    assert ("p1", "Tarn Mill") in shown
    assert len(shown) == 8


def test_a_path_is_a_chain_of_links_with_directions(z: GraphIndex, untrained: Path) -> None:
    """One start, Tarn Mill, and all scores equal but for one, as in the retriever's own test of a longer path."""
    settings = CandidateSettings(seeds=1, facts=0, hops=2)
    retriever = GNNRetriever(z, GNNRetriever.from_pretrained(z, untrained).model, settings)
    made = explanation(z, retriever.explain("Tarn Mill", 5))
    graph, names = made["graph"], [n["name"] for n in made["graph"]["nodes"]]
    for passage, path in graph["paths"].items():
        ends = []
        for number, forward in path:
            link = graph["links"][number]
            pair = (names[link["source"]], names[link["target"]])
            ends.append(pair if forward else pair[::-1])
        assert ends == [(step["source"], step["target"]) for step in made["paths"][passage]]
    assert set(graph["paths"]) == set(made["paths"]) != set()
    assert {n["name"]: n["hop"] for n in graph["nodes"] if "hop" in n} == {
        "Tarn Mill": 0,
        "Orla Venn": 1,
        "Port Isk": 2,
    }


def test_what_was_cut_is_there_too(z: GraphIndex, untrained: Path) -> None:
    explained = GNNRetriever.from_pretrained(z, untrained, keep=0.01, least_kept=0).explain(SEA, 1)
    nodes = explanation(z, explained)["graph"]["nodes"]
    kept = sum(n["kept"] for n in nodes)
    assert len(nodes) == 10
    assert kept == explained.result.trace["kept_nodes"] < 10


def test_another_retriever_stands_beside(z: GraphIndex, untrained: Path) -> None:
    retriever = GNNRetriever.from_pretrained(z, untrained, max_passages=1)
    other = load_retriever("bm25", z).retrieve(SEA, 5)
    made = explanation(z, retriever.explain(SEA, 1), other)
    assert made["against"] == as_json(other)
    assert {hit.item.id for hit in other.passages} <= set(made["graph"]["texts"])


def test_a_fallback_has_its_passages_too(tmp_path: Path, untrained: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "a", "text": "It was late."}\n{"_id": "b", "text": "It stopped."}\n', encoding="utf-8")
    index = GraphIndex.build(corpus, tmp_path / "i", encoder="hashing:64", extractor="none")
    made = explanation(index, GNNRetriever.from_pretrained(index, untrained).explain("What stopped?", 2))
    assert made["trace"]["fallback"] == "dense"
    assert (made["graph"]["links"], made["graph"]["facts"], made["graph"]["paths"]) == ([], [], {})
    assert set(made["graph"]["texts"]) == {"a", "b"}


def test_it_is_ready_for_json_and_the_same_every_time(z: GraphIndex, untrained: Path, made: dict[str, Any]) -> None:
    again = explanation(z, GNNRetriever.from_pretrained(z, untrained).explain(SEA, 5))
    rows = [json.loads(json.dumps({**row, "seconds": None}, allow_nan=False)) for row in (made, again)]
    assert rows[0] == rows[1]
