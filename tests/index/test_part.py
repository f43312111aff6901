"""A part of an index: what the other documents say reaches nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gfm.index.index import GraphIndex
from gfm.index.lexical import make_lexical
from gfm.index.part import PartialIndex, where
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
