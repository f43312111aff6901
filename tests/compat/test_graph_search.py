from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from gfm.compat.graph_search import AggregateSearchResult, Community, GraphSearchRetriever
from gfm.extract.extraction import Extraction
from gfm.index.index import GraphIndex
from gfm.types import Document, GfmError, Hit, Passage, Retrieval

MakeIndex = Callable[..., GraphIndex]

TEXTS = {"p1": "one", "p2": "two", "p3": "three", "p4": "four", "p5": "five"}
TRIPLES = [
    ("Ann", "knows", "Bob", "p1"),
    ("Ann", "knows", "Bob", "p2"),
    ("Bob", "knows", "Cid", "p3"),
    ("Cid", "knows", "Dan", "p4"),
]
COSINE = {
    "Ann knows Bob": 1.0,  # at distance 0
    "Bob knows Cid": 0.5,
    "Cid knows Dan": 0.75,
    "Ann": 0.25,
    "Dan": 0.5,
    "five": 0.9,
    "four": 0.1,
    "three": 0.2,
    "two": 0.4,
    "one": 0.3,
    "Friends. They meet.": 0.6,
    "They sail.": 0.7,
}
YEARS = {"p1": {"year": 1901}, "p2": {"year": 1902}, "p3": {"year": 1903}, "p4": {"year": 1904}, "p5": {"tag": "x"}}
FRIENDS = Community("c2", "Friends", "They meet.", ("ann", "bob"))
SAILORS = Community("c1", "", "They sail.", ("dan",))


@pytest.fixture(scope="module")
def index(placed_index: MakeIndex) -> GraphIndex:
    return placed_index(TEXTS, TRIPLES, COSINE, metadata=YEARS)


@pytest.fixture(scope="module")
def retriever(index: GraphIndex) -> GraphSearchRetriever:
    return GraphSearchRetriever(index, communities=[FRIENDS, SAILORS])


def seen(hits: Sequence[Hit[Any]]) -> list[tuple[str, float]]:
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.item.id, round(hit.score, 6)) for hit in hits]


def sources(hits: Sequence[Hit[Any]]) -> dict[str, tuple[str, ...]]:
    return {hit.item.id: hit.item.passage_ids for hit in hits}


def ids(result: Retrieval) -> list[str]:
    return [hit.item.id for hit in result.passages]


def test_sources_lie_side_by_side_with_real_scores_and_their_own_ids(
    index: GraphIndex, retriever: GraphSearchRetriever
) -> None:
    found = retriever.search("Who?")
    fact = {text: str(i) for i, text in enumerate(index.fact_texts)}
    relationships = [("Ann knows Bob", 1.0), ("Cid knows Dan", 0.75), ("Bob knows Cid", 0.5)]
    assert seen(found.relationships) == [(fact[text], cosine) for text, cosine in relationships]
    assert [hit.item.content.description for hit in found.relationships] == [text for text, _ in relationships]
    assert seen(found.entities) == [("dan", 0.5), ("ann", 0.25), ("bob", 0.0), ("cid", 0.0)]
    assert [hit.item.content.name for hit in found.entities] == ["Dan", "Ann", "Bob", "Cid"]
    assert seen(found.communities) == [("c1", 0.7), ("c2", 0.6)]
    assert [hit.item.content for hit in found.communities] == [SAILORS, FRIENDS]
    assert seen(found.passages) == [("p5", 0.9), ("p2", 0.4), ("p1", 0.3), ("p3", 0.2), ("p4", 0.1)]
    assert {hit.item.kind for hit in found.relationships} == {"relationship"}
    assert set(found.seconds) == {"encode", "search", "results"}


def test_every_result_names_its_source_passages_the_nearest_first(
    index: GraphIndex, retriever: GraphSearchRetriever
) -> None:
    found = retriever.search("Who?")
    named = {index.fact_texts[int(number)]: passages for number, passages in sources(found.relationships).items()}
    assert named == {"Ann knows Bob": ("p2", "p1"), "Bob knows Cid": ("p3",), "Cid knows Dan": ("p4",)}
    assert sources(found.entities) == {
        "ann": ("p2", "p1"),
        "bob": ("p2", "p1", "p3"),
        "cid": ("p3", "p4"),
        "dan": ("p4",),
    }
    assert sources(found.communities) == {"c1": ("p4",), "c2": ("p2", "p1", "p3")}
    (triple,) = found.relationships[0].item.content.triples
    assert (triple.head, triple.relation, triple.tail, triple.passage_ids) == ("Ann", "knows", "Bob", ("p2", "p1"))


def test_the_graph_results_have_one_total_order(retriever: GraphSearchRetriever) -> None:
    hits = retriever.search("Who?").graph_results()
    assert [(hit.item.kind, round(hit.score, 6), hit.rank) for hit in hits] == [
        ("relationship", 1.0, 1),
        ("relationship", 0.75, 2),
        ("community", 0.7, 3),
        ("community", 0.6, 4),
        ("entity", 0.5, 5),  # before the relationship of the same score
        ("relationship", 0.5, 6),
        ("entity", 0.25, 7),
        ("entity", 0.0, 8),
        ("entity", 0.0, 9),
    ]


def counts(found: AggregateSearchResult) -> tuple[int, int, int, int]:
    return len(found.entities), len(found.relationships), len(found.communities), len(found.passages)


@pytest.mark.parametrize(
    ("limit", "limits", "expected"),
    [
        (10, None, (4, 3, 2, 5)),
        (1, None, (1, 1, 1, 1)),
        (2, {"relationships": 3}, (2, 3, 2, 2)),
        (2, {"entities": 0, "communities": 1, "relationships": None}, (0, 2, 1, 2)),
    ],
)
def test_a_limit_by_kind_defaults_to_the_common_one(
    retriever: GraphSearchRetriever, limit: int, limits: Any, expected: tuple[int, ...]
) -> None:
    assert counts(retriever.search("Who?", limit, limits)) == expected


@pytest.mark.parametrize(
    ("limit", "limits", "message"),
    [
        (10, {"chunks": 3}, "limits: expected some of entities, relationships, communities, found 'chunks'"),
        (10, {"entities": -1}, r"limits\.entities: expected a whole number of 0 or more, found -1"),
        (10, {"communities": True}, r"limits\.communities: expected a whole number of 0 or more, found True"),
        (10, [3], r"limits: expected numbers by kind \(entities, relationships, communities\), found \[3\]"),
        (0, None, "limit: expected a whole number of 1 or more, found 0"),
        ("3", None, "limit: expected a whole number of 1 or more, found '3'"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_an_error(
    index: GraphIndex, retriever: GraphSearchRetriever, limit: Any, limits: Any, message: str
) -> None:
    with pytest.raises(GfmError, match=message):
        retriever.search("Who?", limit, limits)
    with pytest.raises(GfmError, match=message):
        GraphSearchRetriever(index, limit, limits)


def test_the_question_is_encoded_once(index: GraphIndex, retriever: GraphSearchRetriever) -> None:
    encoder: Any = index.encoder
    before = encoder.calls
    retriever.search("Who?")
    assert encoder.calls == before + 1
    retriever.retrieve("Who?")
    assert encoder.calls == before + 2


def test_filters_apply_to_every_kind_and_to_its_sources(index: GraphIndex, retriever: GraphSearchRetriever) -> None:
    found = retriever.search("Who?", filters={"metadata.year": {"$in": [1901, 1904]}})
    assert seen(found.passages) == [("p1", 0.3), ("p4", 0.1)]
    assert sources(found.entities) == {"dan": ("p4",), "ann": ("p1",), "bob": ("p1",), "cid": ("p4",)}
    facts = [(hit.item.content.description, hit.item.passage_ids) for hit in found.relationships]
    assert facts == [("Ann knows Bob", ("p1",)), ("Cid knows Dan", ("p4",))]
    assert [t.passage_ids for hit in found.relationships for t in hit.item.content.triples] == [("p1",), ("p4",)]
    assert sources(found.communities) == {"c1": ("p4",)}  # the other one tells of p2 and p3 too
    everything = retriever.search("Who?", filters={"document_id": {"$ne": "p5"}})
    assert [hit.item.id for hit in everything.communities] == ["c1", "c2"]


def test_e06_nothing_shows_of_documents_that_are_filtered_out(z_index: Path) -> None:
    retriever = GraphSearchRetriever(GraphIndex.open(z_index))
    found = retriever.search("Which sea is near Port Isk?", filters={"document_id": {"$in": ["p1", "p5"]}})
    assert counts(found) == (2, 1, 0, 2)
    assert "Isk" not in str({name: value for name, value in asdict(found).items() if name != "query"})
    assert "Isk" in str(asdict(retriever.search("Which sea is near Port Isk?")))


@settings(deadline=None, max_examples=40)
@given(allowed=st.sets(st.sampled_from(sorted(TEXTS)), min_size=1), limit=st.integers(1, 6))
def test_a_filtered_search_is_the_whole_search_without_the_others(
    retriever: GraphSearchRetriever, allowed: set[str], limit: int
) -> None:
    whole = retriever.search("Who?", 10)
    found = retriever.search("Who?", limit, filters={"document_id": {"$in": sorted(allowed)}})
    assert [h.item.id for h in found.passages] == [h.item.id for h in whole.passages if h.item.id in allowed][:limit]
    for kind in ("entities", "relationships"):
        expected = [h for h in getattr(whole, kind) if allowed & set(h.item.passage_ids)][:limit]
        assert seen(getattr(found, kind)) == seen([Hit(h.item, h.score, r) for r, h in enumerate(expected, start=1)])
        for hit, before in zip(getattr(found, kind), expected, strict=True):
            assert hit.item.passage_ids == tuple(p for p in before.item.passage_ids if p in allowed)
    communities = [h for h in whole.communities if set(h.item.passage_ids) <= allowed][:limit]
    assert [h.item for h in found.communities] == [h.item for h in communities]


def test_no_document_may_be_left_and_then_nothing_is_found(retriever: GraphSearchRetriever) -> None:
    assert counts(retriever.search("Who?", filters={"metadata.year": {"$gt": 2000}})) == (0, 0, 0, 0)


def test_filters_that_cannot_be_meant_are_errors(index: GraphIndex, retriever: GraphSearchRetriever) -> None:
    for filters, message in [
        (
            {"metadata.colour": "red"},
            "expected some of document_id, metadata.tag, metadata.year.*found 'metadata.colour'",
        ),
        ({}, "filters: expected fields with conditions"),
    ]:
        with pytest.raises(GfmError, match=message):
            retriever.search("Who?", filters=filters)
        with pytest.raises(GfmError, match=message):
            GraphSearchRetriever(index, filters=filters)


@pytest.mark.parametrize(
    ("communities", "message"),
    [
        ([Community("c", "", "x", ("ann", "zoe", "Bob"))], "community 'c': expected keys .*, found 'zoe', 'Bob'"),
        ([Community("c", "", "x", ())], "community 'c': expected keys of entities of the index, found none"),
        ([FRIENDS, SAILORS, Community("c2", "", "x", ("cid",))], "two communities have the id 'c2'"),
    ],
)
def test_communities_that_cannot_be_meant_are_errors(
    index: GraphIndex, communities: list[Community], message: str
) -> None:
    with pytest.raises(GfmError, match=message):
        GraphSearchRetriever(index, communities=communities)


def test_without_communities_none_is_found(index: GraphIndex) -> None:
    assert counts(GraphSearchRetriever(index).search("Who?")) == (4, 3, 0, 5)


def test_passages_are_sources_of_relationships_then_of_entities_then_the_nearest(index: GraphIndex) -> None:
    limits = {"relationships": 1, "entities": 1}
    result = GraphSearchRetriever(index, limits=limits, communities=[FRIENDS]).retrieve("Who?", top_k=10)
    assert ids(result) == ["p2", "p1", "p4", "p5", "p3"]
    assert [hit.score for hit in result.passages] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    assert result.score_unit == "reciprocal rank"
    assert [(hit.item.name, hit.score) for hit in result.entities] == [("Dan", pytest.approx(0.5))]
    assert [(hit.item.text, hit.score) for hit in result.triples] == [("Ann knows Bob", pytest.approx(1.0))]
    assert result.trace == {
        "retriever": "graph_search",
        "fallback": None,
        "limits": {"entities": 1, "relationships": 1, "communities": 10},
        "filters": None,
        "communities": ["c2"],
        "passages_from": {"relationships": 2, "entities": 1, "passages": 2},
        "padded": ["p5", "p3"],
    }
    first = GraphSearchRetriever(index, limits=limits).retrieve("Who?", top_k=3)
    assert (ids(first), first.trace["padded"]) == (["p2", "p1", "p4"], [])


def test_retrieve_keeps_to_its_filters(index: GraphIndex) -> None:
    filters = {"$or": [{"metadata.year": {"$gt": 1902}}, {"metadata.tag": "x"}]}
    result = GraphSearchRetriever(index, filters=filters).retrieve("Who?", top_k=10)
    assert ids(result) == ["p4", "p3", "p5"]
    assert {p for hit in result.triples for p in hit.item.passage_ids} == {"p3", "p4"}
    assert result.trace["filters"] == filters
    nothing = GraphSearchRetriever(index, filters={"metadata.year": {"$gt": 2000}}).retrieve("Who?")
    assert (nothing.passages, nothing.trace["fallback"]) == ([], None)


def test_a_graph_that_brings_nothing_is_named_a_fallback(
    placed_index: MakeIndex, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = GraphSearchRetriever(placed_index(TEXTS, cosine=COSINE)).retrieve("Who?", top_k=2)
    assert (ids(result), result.trace["fallback"]) == (["p5", "p2"], "dense")
    assert "query 'query': the graph brought no passage" in caplog.text


def test_results_of_equal_score_come_by_number(placed_index: MakeIndex) -> None:
    index = placed_index({"a": "x", "b": "y"}, [("Ned", "r", "Moe", "b"), ("Lou", "r", "Kim", "a")])
    found = GraphSearchRetriever(index).search("Who?")
    assert [hit.item.id for hit in found.entities] == ["kim", "lou", "moe", "ned"]
    assert [hit.item.id for hit in found.relationships] == ["0", "1"]
    assert [hit.item.id for hit in found.passages] == ["a", "b"]
    assert np.allclose([hit.score for hit in found.graph_results()], 0.0)


def test_the_configuration_states_the_defaults(repository: Path) -> None:
    stated = OmegaConf.to_container(OmegaConf.load(repository / "configs/retriever/graph_search.yaml"))
    parameters = signature(GraphSearchRetriever).parameters
    expected = {name: p.default for name, p in parameters.items() if name not in ("index", "communities")}
    kinds = {"entities": None, "relationships": None, "communities": None}
    assert stated == {"name": "graph_search", **expected, "limits": kinds}


def test_a_relationship_may_name_one_thing_alone(tmp_path: Path) -> None:
    """Text extractors make facts of sentences that join no two names: they are found, and state no triple."""

    class OneSentence:
        name, cached, settings, rows = "one sentence", False, "one sentence", ()

        def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
            return [Extraction(sentences=((0, len(p.text)),)) for p in passages]

    documents = [Document("a", "", "quince jam keeps for a year")]
    index = GraphIndex.build_from(documents, [OneSentence()], tmp_path / "index", "hashing:64")
    found = GraphSearchRetriever(index).search("how long?")
    assert [hit.item.content.triples for hit in found.relationships] == [()]
    assert found.relationships[0].item.passage_ids == ("a",)
