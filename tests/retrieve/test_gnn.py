from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gfm.index.index import GraphIndex
from gfm.nn.attribution import edge_contributions
from gfm.nn.checkpoint import load_model
from gfm.nn.model import GraphRetrieverModel
from gfm.retrieve.dense import DenseRetriever
from gfm.retrieve.features import question_parts, subgraph
from gfm.retrieve.gnn import GNNRetriever
from gfm.retrieve.signals import CandidateSettings
from gfm.types import GfmError, Query, Retrieval

MakeIndex = Callable[..., GraphIndex]
SEA = "Which sea is near the birthplace of the builder of Tarn Mill?"


@pytest.fixture
def retriever(z: GraphIndex, untrained: Path) -> GNNRetriever:
    """Random weights over Corpus Z."""
    return GNNRetriever.from_pretrained(z, untrained)


@pytest.fixture
def model(untrained: Path) -> GraphRetrieverModel:
    """Random weights, a copy for each test."""
    return load_model(untrained)[0]


def comparable(result: Retrieval) -> dict[str, Any]:
    """Everything but the time, as JSON."""
    row = asdict(result)
    del row["seconds"]
    loaded: dict[str, Any] = json.loads(json.dumps(row, allow_nan=False))
    return loaded


def check_whole(index: GraphIndex, result: Retrieval, top_k: int) -> None:
    """What holds of any result."""
    for hits in (result.entities, result.triples, result.passages):
        assert [h.rank for h in hits] == list(range(1, len(hits) + 1))
        scores = [h.score for h in hits]
        assert np.isfinite(scores).all()
        assert scores == sorted(scores, reverse=True)
        low = -1 if result.trace["fallback"] else 0
        assert all(low <= s <= 1 for s in scores)
    ids = [h.item.id for h in result.passages]
    assert set(ids) <= set(index.passage_ids)
    assert len(set(ids)) == len(ids) <= top_k
    assert [h.item.id for h in sorted(result.passages, key=lambda h: (-h.score, h.item.id))] == ids
    names = {h.item.name for h in result.entities}
    assert all(h.item.head in names and h.item.tail in names for h in result.triples)  # no fact lost an end
    assert comparable(result)


@pytest.mark.parametrize("top_k", [1, 3, 5, 1000])
@pytest.mark.parametrize("question", [SEA, "Orla Venn", "how long does jam keep?"])
def test_a_result_holds_together(retriever: GNNRetriever, question: str, top_k: int) -> None:
    result = retriever.retrieve(question, top_k)
    check_whole(retriever.index, result, top_k)
    assert len(result.passages) == min(top_k, 5)
    assert (result.score_unit, result.trace["fallback"]) == ("relevance", None)
    assert set(result.seconds) == {"encode", "signals", "candidates", "inputs", "network", "prune"}
    assert all(s >= 0 for s in result.seconds.values())


def test_scores_are_the_networks(z: GraphIndex, model: GraphRetrieverModel) -> None:
    """Of a fact, the better of its two directions."""
    retriever = GNNRetriever(z, model, keep=1.0)
    result = retriever.retrieve(SEA, top_k=5)
    vector, *parts = z.encode([SEA, *question_parts(SEA)])
    signals = retriever.builder.signals(SEA, vector)
    data = subgraph(retriever.builder, signals, retriever.builder.build(signals), np.stack(parts))
    with torch.inference_mode():
        node, edge = (torch.sigmoid(x) for x in model(data))
    passages = {
        z.passage_ids[int(n)]: s for n, s, k in zip(data.node_number, node, data.node_kind, strict=True) if k == 1
    }
    assert {h.item.id: h.score for h in result.passages} == pytest.approx({i: float(s) for i, s in passages.items()})
    assert len(result.triples) == 4
    for hit in result.triples:
        number = next(i for i in range(4) if z.triple(i) == hit.item)
        both = edge[data.edge_triple == number]
        assert len(both) == 2
        assert hit.score == pytest.approx(float(both.max()))
        assert both[0] != both[1]


def test_paths_are_whole_and_lead_to_their_passage(retriever: GNNRetriever) -> None:
    result = retriever.retrieve(SEA, top_k=5)
    assert set(result.paths) == {"p1", "p2", "p3", "p4"}  # no entity names p5, so nothing leads there
    kept = {h.item.name for h in result.entities}
    facts = {h.item.text for h in result.triples}
    for passage, path in result.paths.items():
        assert path[-1].target == passage
        assert path[-1].kind in {"mention", "subject"}
        assert path[-1].passage_id == passage
        assert len(path) <= 4
        assert all(a.target == b.source for a, b in pairwise(path))
        for step in path[:-1]:
            assert step.kind in {"fact", "inverse fact", "synonym", "mention", "subject"}
            assert {step.source, step.target} <= kept | set(retriever.index.passage_ids)
            assert not step.kind.endswith("fact") or (
                step.text in facts and step.passage_id in retriever.index.passage_ids
            )


def test_a_longer_path_by_hand(z: GraphIndex, model: GraphRetrieverModel) -> None:
    """With one start, Tarn Mill, and all scores equal but for one, p3 is two facts and a mention away."""
    settings = CandidateSettings(seeds=1, facts=0, hops=2)
    result = GNNRetriever(z, model, settings).retrieve("Tarn Mill", top_k=5)
    assert result.trace["entities_by_hop"] == {"0": 1, "1": 1, "2": 1}
    steps = [(s.source, s.kind, s.text, s.target, s.passage_id) for s in result.paths["p3"]]
    assert steps == [
        ("Tarn Mill", "fact", "Tarn Mill built by Orla Venn", "Orla Venn", "p1"),
        ("Orla Venn", "fact", "Orla Venn born in Port Isk", "Port Isk", "p2"),
        ("Port Isk", "mention", "", "p3", "p3"),
    ]


def test_a08_a_path_against_the_facts(z: GraphIndex, model: GraphRetrieverModel) -> None:
    result = GNNRetriever(z, model, CandidateSettings(seeds=1, facts=0)).retrieve("winter", top_k=5)
    steps = [(s.source, s.kind, s.target) for s in result.paths["p3"]]
    assert steps == [("winter", "inverse fact", "Halder Sea"), ("Halder Sea", "mention", "p3")]


def test_the_same_question_gives_the_same_bytes(retriever: GNNRetriever, untrained: Path) -> None:
    one = comparable(retriever.retrieve(SEA))
    assert comparable(retriever.retrieve(SEA)) == one
    other = GNNRetriever.from_pretrained(GraphIndex.open(retriever.index.path), untrained)
    assert comparable(other.retrieve(SEA)) == one


def test_what_explains_a_result_is_the_subgraph_that_it_was_cut_from(retriever: GNNRetriever) -> None:
    explained = retriever.explain(SEA, top_k=3)
    assert comparable(explained.result) == comparable(retriever.retrieve(SEA, top_k=3))
    found, trace = explained.found, explained.result.trace
    assert (len(explained.node), len(explained.edge)) == (len(found.hop), len(found.edge))
    assert (explained.kept.node.sum(), explained.kept.edge.sum()) == (trace["kept_nodes"], trace["kept_edges"])
    number = {p: len(found.entities) + i for i, p in enumerate(found.passages.tolist())}
    for hit in explained.result.passages:
        node = number[retriever.index.passage_ids.index(hit.item.id)]
        assert explained.node[node] == hit.score
        assert len(explained.paths.get(node, [])) == len(explained.result.paths.get(hit.item.id, []))


def test_threads_do_not_disturb_each_other(retriever: GNNRetriever) -> None:
    questions = [SEA, "Orla Venn", "winter", "how long does jam keep?"] * 3
    expected = [comparable(retriever.retrieve(q)) for q in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda q: comparable(retriever.retrieve(q)), questions)) == expected


def test_the_trace_says_what_was_done(z: GraphIndex, untrained: Path) -> None:
    retriever = GNNRetriever.from_pretrained(z, untrained, least_kept=0)
    result = retriever.retrieve(Query("q1", SEA, {"type": "bridge"}))
    trace = result.trace
    assert result.query.metadata == {"type": "bridge"}
    assert trace["linked_entities"] == ["Tarn Mill"]
    assert sorted(trace["seeds"]) == ["Halder Sea", "Orla Venn", "Port Isk", "Tarn Mill", "winter"]
    assert (trace["retriever"], trace["fallback"], trace["hubs"]) == ("gfm", None, 0)
    assert (trace["start_entities"], trace["entities_by_hop"]) == (5, {"0": 5})
    assert trace["reach"] == "5 of 5 passages, 5 of 5 entities"
    assert trace["nodes"] == trace["kept_nodes"] + trace["pruned_nodes"] == 10
    assert trace["edges"] == trace["kept_edges"] + trace["pruned_edges"] == 2 * (4 + 8)
    assert trace["pruned_nodes"] > 0
    whole = GNNRetriever.from_pretrained(z, untrained).retrieve(SEA).trace
    assert (whole["kept_nodes"], whole["pruned_nodes"]) == (10, 0)  # so small a subgraph is kept whole


def test_a16_the_reach_names_what_is_left_out(z: GraphIndex, model: GraphRetrieverModel) -> None:
    settings = CandidateSettings(seeds=1, facts=0, hops=1, max_passages=2)
    trace = GNNRetriever(z, model, settings).retrieve("Tarn Mill").trace
    assert trace["reach"] == "2 of 5 passages, 2 of 5 entities"


@pytest.mark.parametrize("keep", [0.01, 0.3, 1.0])
def test_the_kept_share(z: GraphIndex, model: GraphRetrieverModel, keep: float) -> None:
    result = GNNRetriever(z, model, keep=keep, least_kept=0).retrieve(SEA, top_k=1)
    check_whole(z, result, 1)
    if keep == 1.0:
        assert (len(result.entities), len(result.triples), result.trace["pruned_edges"]) == (5, 4, 0)
    else:
        on_path = {name for step in next(iter(result.paths.values()), []) for name in (step.source, step.target)}
        assert len(result.entities) <= np.ceil(keep * 5) + len(on_path)


@pytest.mark.parametrize("keep", [0, -0.1, 1.01, float("nan")])
def test_a_share_that_keeps_nothing_or_too_much_is_refused(
    z: GraphIndex, model: GraphRetrieverModel, keep: float
) -> None:
    with pytest.raises(GfmError, match="keep: expected a share above 0 and up to 1"):
        GNNRetriever(z, model, keep=keep)


def test_settings_of_the_checkpoint_hold_unless_they_are_given(z: GraphIndex, model: Any, tmp_path: Path) -> None:
    from gfm.nn.checkpoint import save_model

    save_model(model, tmp_path, candidates={"seeds": 2, "hops": 1})
    settings = GNNRetriever.from_pretrained(z, tmp_path, hops=3).builder.settings
    assert (settings.seeds, settings.hops, settings.max_fanout) == (2, 3, CandidateSettings().max_fanout)
    save_model(model, tmp_path, candidates={"seed": 2})
    with pytest.raises(GfmError, match=r"candidates: unknown settings seed; expected some of named, seeds"):
        GNNRetriever.from_pretrained(z, tmp_path)


# ---------------------------------------------------------------- when the graph tells nothing


def check_dense(index: GraphIndex, result: Retrieval, question: str, top_k: int) -> None:
    """The result is the dense ranking and says so."""
    dense = DenseRetriever(index).retrieve(question, top_k)
    assert result.passages == dense.passages
    assert (result.trace["fallback"], result.score_unit, result.paths) == ("dense", "cosine", {})
    check_whole(index, result, top_k)


@pytest.fixture
def no_entities(make_index: MakeIndex) -> GraphIndex:
    """A01's three passages."""
    return make_index({"a": "It was late.", "b": "Some time passed.", "c": "Then it stopped."})


def test_a01_no_entity_at_all(no_entities: GraphIndex, model: GraphRetrieverModel, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, logger="gfm"):
        result = GNNRetriever(no_entities, model).retrieve(Query("q9", "what stopped?"), top_k=10)
    check_dense(no_entities, result, "what stopped?", 10)
    assert result.passages[0].item.id == "c"
    assert (result.entities, result.triples, result.trace["linked_entities"]) == ([], [], [])
    assert result.trace["reach"] == "3 of 3 passages, 0 of 0 entities"
    assert "'q9'" in caplog.text
    assert "dense" in caplog.text


def test_a_fallback_ranks_all_passages_not_only_the_candidates(
    make_index: MakeIndex, model: GraphRetrieverModel
) -> None:
    texts = {f"p{i:03}": f"Row {i} of the table, number {i * 7}." for i in range(150)}
    index = make_index(texts)
    result = GNNRetriever(index, model).retrieve("row 7", top_k=120)
    assert len(result.passages) == 120
    check_dense(index, result, "row 7", 120)


def test_one_passage(make_index: MakeIndex, model: GraphRetrieverModel) -> None:
    index = make_index({"only": "Orla Venn was born in Port Isk."}, [("Orla Venn", "born in", "Port Isk", "only")])
    result = GNNRetriever(index, model).retrieve("Where was Orla Venn born?", top_k=10)
    check_dense(index, result, "Where was Orla Venn born?", 10)  # nothing to tell apart
    assert {h.item.name for h in result.entities} <= {"Orla Venn", "Port Isk"}


@pytest.mark.parametrize("part", ["entity_head", "passage_head", "fact_head", "node_net", "rounds"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a05_weights_that_are_no_numbers(z: GraphIndex, model: GraphRetrieverModel, part: str, value: float) -> None:
    """Whatever breaks, only finite scores reach a result. (An infinite weight may still give numbers.)"""
    with torch.no_grad():
        for parameter in getattr(model, part).parameters():
            parameter.fill_(value)
    result = GNNRetriever(z, model).retrieve(SEA, top_k=5)
    if np.isnan(value):
        check_dense(z, result, SEA, 5)
        assert len(result.entities) > 0
    check_whole(z, result, 5)


def test_a05_a_network_that_says_the_same_of_all(z: GraphIndex, model: GraphRetrieverModel) -> None:
    with torch.no_grad():
        for parameter in model.passage_head.parameters():
            parameter.zero_()
    check_dense(z, GNNRetriever(z, model).retrieve(SEA, 5), SEA, 5)


def test_a05_unknown_names_do_not_all_get_one_answer(retriever: GNNRetriever) -> None:
    questions = ["Who lives on Brandle Quay?", "When was Ixo Pell born?", "What is a Zemmer?"]
    results = [retriever.retrieve(q, 5) for q in questions]
    assert all(r.trace["linked_entities"] == [] for r in results)
    best = {(r.passages[0].item.id, r.passages[0].score) for r in results if r.trace["fallback"] is None}
    assert len(best) == sum(r.trace["fallback"] is None for r in results)


# ---------------------------------------------------------------- questions


def test_a03_a_passage_without_an_entity_is_found_by_its_vector(z: GraphIndex, model: GraphRetrieverModel) -> None:
    """Room for one passage, which only the dense search may fill."""
    settings = CandidateSettings(pagerank_passages=0, bm25_passages=0, dense_passages=1, max_passages=1)
    result = GNNRetriever(z, model, settings).retrieve("how long does jam keep?", top_k=3)
    assert result.trace["linked_entities"] == []
    assert result.trace["reach"].startswith("1 of 5 passages")
    everything = GNNRetriever(z, model).retrieve("how long does jam keep?", top_k=5)
    assert "p5" in [h.item.id for h in everything.passages]
    assert result.passages[0].item.id == "p5"


@pytest.mark.parametrize("question", ["", "   ", "\n", "\u3000", "\x00", "\u200b", "\ud800"])
def test_a04_a_blank_question_is_an_error(retriever: GNNRetriever, question: str) -> None:
    with pytest.raises(GfmError, match="expected a question"):
        retriever.retrieve(question)


@pytest.mark.parametrize(
    "question",
    [
        "?",
        "a",
        "关系",
        "من بنى الطاحونة؟",
        "Кто построил мельницу?",
        "🚀",
        "mill \ud800",
        "mill\x00?",
        "Tarn\u200b Mill",
        "' OR 1=1 --",
        "which " * 20_000,
    ],
    ids=["mark", "letter", "chinese", "arabic", "russian", "emoji", "surrogate", "null", "zero width", "code", "long"],
)
def test_a04_odd_questions_get_a_ranking(retriever: GNNRetriever, question: str) -> None:
    result = retriever.retrieve(question, top_k=5)
    check_whole(retriever.index, result, 5)
    assert len(result.passages) == 5


@pytest.mark.parametrize("top_k", [0, -3])
def test_a_top_k_below_one_is_an_error(retriever: GNNRetriever, top_k: int) -> None:
    with pytest.raises(GfmError, match="top_k"):
        retriever.retrieve(SEA, top_k)


def test_the_network_is_never_in_training_mode(z: GraphIndex, model: GraphRetrieverModel) -> None:
    assert not GNNRetriever(z, model.train()).model.training


# --- contributions


def test_contributions_are_those_of_kept_links_best_first(retriever: GNNRetriever) -> None:
    """A link is both directions of an edge, so its score is the sum over both; every link is shown once."""
    explained = retriever.explain(SEA, 5)
    passage = explained.result.passages[0].item.id
    hits = retriever.contributions(explained, passage, 1000)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert any(scores)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    source, target = explained.found.edge_index[:, explained.kept.edge]
    assert len(hits) == int((source < target).sum())
    found = explained.found
    node = len(found.entities) + found.passages.tolist().index(retriever.index.passage_ids.index(passage))
    added = edge_contributions(retriever.model, explained.data, [node])[0].numpy()
    assert sum(scores) == pytest.approx(float(added[explained.kept.edge].sum()), abs=1e-5)
    assert retriever.contributions(explained, passage, 2) == hits[:2]
    assert {hit.item.kind for hit in hits} <= {"fact", "inverse fact", "mention", "synonym"}


def test_contributions_of_no_candidate(retriever: GNNRetriever) -> None:
    with pytest.raises(GfmError, match=r"passage 'p9': expected a candidate of the question, found none"):
        retriever.contributions(retriever.explain(SEA, 5), "p9")
