"""A part of an index: what the other documents say reaches nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gfm.compat.graph_search import Community, GraphSearchRetriever
from gfm.index.index import GraphIndex
from gfm.index.lexical import make_lexical
from gfm.index.part import PartialIndex, where
from gfm.retrieve.base import within
from gfm.retrievers import NAMES, load_retriever
from gfm.text.chunk import embedded_text
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError

TEXTS = {
    "mill": ("Tarn Mill", "Tarn Mill was built by Orla Venn. It grinds rye.", 1911),
    "venn": ("Orla Venn", "Orla Venn was born in Port Isk. Tarn Mill was built by Orla Venn.", 1880),
    "isk": ("Port Isk", "Port Isk lies on the Sound of Morn. Orla Venn was born in Port Isk.", 1700),
    "morn": ("Sound of Morn", "The Sound of Morn freezes in winter.", None),
    "quince": ("", "A jam of quinces keeps for years.", 1990),
}
TRIPLES = [
    ("Tarn Mill", "was built by", "Orla Venn", ["mill", "venn"]),
    ("Orla Venn", "was born in", "Port Isk", ["venn", "isk"]),
    ("Port Isk", "lies on", "Sound of Morn", ["isk"]),
]
QUESTION = "On which sound does the birthplace of the builder of Tarn Mill lie?"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    folder = tmp_path_factory.mktemp("part")
    rows = [
        {"_id": i, "title": title, "text": text, "metadata": {} if year is None else {"year": year}}
        for i, (title, text, year) in TEXTS.items()
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    triples = [{"head": h, "relation": r, "tail": t, "passage_ids": ids} for h, r, t, ids in TRIPLES]
    (folder / "triples.jsonl").write_text("".join(json.dumps(r) + "\n" for r in triples), encoding="utf-8")
    return GraphIndex.build(
        folder / "corpus.jsonl", folder / "index", encoder=HashingEncoder(64), triples=folder / "triples.jsonl"
    )


def part(whole: GraphIndex, *documents: str) -> PartialIndex:
    return PartialIndex(whole, np.array([d in documents for d in whole.document_ids]))


def test_a_part_that_is_the_whole_is_the_whole(whole: GraphIndex) -> None:
    found = part(whole, *TEXTS)
    for name, array in whole.graph.arrays().items():
        np.testing.assert_array_equal(getattr(found.graph, name), array, err_msg=name)
    for kind in ("entity_vectors", "fact_vectors", "passage_vectors"):
        np.testing.assert_array_equal(getattr(found, kind).rows, getattr(whole, kind).rows)
    for name, array in whole.lexical._arrays.items():
        np.testing.assert_array_equal(found.lexical._arrays[name], array, err_msg=name)
    assert found.lexical.vocabulary == whole.lexical.vocabulary
    assert found.document_metadata == whole.document_metadata
    assert found.passages(np.arange(5)) == whole.passages(np.arange(5))


def test_a_fact_keeps_the_sources_that_are_left_and_goes_with_the_last(whole: GraphIndex) -> None:
    found = part(whole, "venn", "quince")
    assert found.passage_ids == ["quince", "venn"]
    stated = {(t.head, t.tail): t.passage_ids for t in found.triples(np.arange(found.graph.num_triples))}
    assert stated == {("Tarn Mill", "Orla Venn"): ("venn",), ("Orla Venn", "Port Isk"): ("venn",)}
    assert "Sound of Morn" not in {e.name for e in found.entities(np.arange(found.graph.num_entities))}
    assert [found.entity(n).name if n >= 0 else None for n in found.subjects] == [None, "Orla Venn"]


@settings(max_examples=31, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.sets(st.sampled_from(sorted(TEXTS)), min_size=1))
def test_every_retriever_sees_the_part_alone(whole: GraphIndex, chosen: set[str]) -> None:
    found = part(whole, *chosen)
    for name in NAMES:
        rest: dict[str, Any] = {"retrievers": ["gfm", "bm25"]} if name == "fusion" else {}
        result = load_retriever(name, found, **rest).retrieve(QUESTION, 5)
        assert {hit.item.document_id for hit in result.passages} <= chosen, name
        assert {i for hit in result.triples for i in hit.item.passage_ids} <= chosen, name
        assert {step.passage_id for path in result.paths.values() for step in path} <= chosen | {""}, name


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.sets(st.sampled_from(sorted(TEXTS)), min_size=1))
def test_words_count_as_if_there_were_no_other_documents(whole: GraphIndex, chosen: set[str]) -> None:
    found = part(whole, *chosen)
    texts = [embedded_text(p.title, p.text) for p in found.passages(np.arange(len(chosen)))]
    names = [e.name for e in found.entities(np.arange(found.graph.num_entities))]
    vocabulary, arrays = make_lexical(texts, names)
    assert found.lexical.vocabulary == vocabulary
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.lexical._arrays[name], array, err_msg=name)


SETTINGS: dict[str, dict[str, Any]] = {
    "gfm": {"keep": 0.5, "least_kept": 2, "beam": 3},
    "gfm_entity": {"best_entities": 2},
    "fusion": {"retrievers": ["bm25", "ppr"], "k": 3, "depth": 2, "weights": {"bm25": 2.0}},
    "ppr": {"facts": 2, "phrases": 1, "passage_weight": 0.2, "damping": 0.6},
    "ppr_entity": {"damping": 0.7},
    "vector_graph": {"near_entities": 2, "above_cosine": 0.2, "near_relations": 1, "degree": 2, "picked": 2},
    "graph_search": {"limit": 2, "limits": {"entities": 1}},
    "band_quota": {"depth": 1, "with_degree": True, "alpha": 2.0, "oversample_visited": True},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_retriever_over_a_part_keeps_its_settings(whole: GraphIndex, name: str) -> None:
    filters, settings_ = {"document_id": {"$in": ["mill", "venn", "isk"]}}, SETTINGS.get(name, {})
    everywhere = load_retriever(name, whole, **settings_)
    found = within(everywhere, filters).retrieve(QUESTION, 3)
    expected = load_retriever(name, where(whole, filters), **settings_).retrieve(QUESTION, 3)
    assert replace(found, seconds={}) == replace(expected, seconds={})
    assert within(everywhere, None) is everywhere


def test_communities_with_a_passage_outside_do_not_come_along(whole: GraphIndex) -> None:
    communities = [
        Community("a", "mills", "Mills grind.", entity_keys=("tarn mill",)),
        Community("b", "sounds", "Sounds freeze.", entity_keys=("sound of morn",)),
    ]
    search = GraphSearchRetriever(whole, communities=communities)
    part_ = search.over(where(whole, {"document_id": {"$in": ["mill", "venn"]}}))
    assert [c.id for c in part_.communities] == ["a"]


def test_threads_may_share_an_index(whole: GraphIndex) -> None:
    def one(year: int) -> list[str]:
        return where(whole, {"metadata.year": {"$gt": year}}).document_ids

    with ThreadPoolExecutor(8) as pool:
        assert all("quince" in found for found in pool.map(one, range(1600, 1680)))
    assert len(whole.parts) <= 8


def test_where(whole: GraphIndex) -> None:
    found = where(whole, {"metadata.year": {"$gt": 1800}})
    assert found.document_ids == ["mill", "quince", "venn"]
    assert found is where(whole, {"metadata.year": {"$gt": 1800}})
    assert where(found, {"document_id": "mill"}).passage_ids == ["mill"]
    assert where(whole, {"document_id": {"$in": ["isk", "morn"]}}).graph.num_passages == 2


def test_only_the_last_fewparts_are_kept(whole: GraphIndex) -> None:
    first = where(whole, {"metadata.year": 1911})
    for year in range(1700, 1720):
        where(whole, {"metadata.year": {"$gt": year - 30}})
    assert len(whole.parts) == 8
    assert where(whole, {"metadata.year": 1911}) is not first


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"metadata.year": {"$gt": 3000}}, "expected some document with"),
        ({"metadata.colour": "red"}, "expected some of .*metadata.year"),
        ({}, "expected fields with conditions"),
    ],
)
def test_what_cannot_be_meant_or_fits_nothing_is_an_error(
    whole: GraphIndex, filters: dict[str, Any], message: str
) -> None:
    with pytest.raises(GfmError, match=message):
        where(whole, filters)


def test_a_part_outlives_the_generation_it_was_made_of(tmp_path: Path) -> None:
    """It reads nothing from the folder, where another generation may stand by now."""
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "Ore."}\n{"_id": "b", "text": "Tar."}\n', "utf-8")
    index = GraphIndex.build(
        tmp_path / "corpus.jsonl", tmp_path / "index", encoder=HashingEncoder(16), extractor="none"
    )
    index.update([Document("c", "", "Salt.")], delete_missing=True)
    assert where(index, {"document_id": "b"}).passages(np.array([0]))[0].text == "Tar."
