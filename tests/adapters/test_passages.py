"""What adapters tell of a passage."""

from __future__ import annotations

import json

from gfm.adapters.passages import passage_metadata
from gfm.retrieve.bm25 import BM25Retriever
from gfm.retrieve.gnn import GNNRetriever

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


def test_it_tells_where_a_passage_stands_how_it_scored_and_how_it_was_reached(retriever: GNNRetriever) -> None:
    found = retriever.retrieve(QUESTION, 5)
    rows = passage_metadata(retriever.index, found)
    assert [(row["passage_id"], row["rank"], row["score"]) for row in rows] == [
        (hit.item.id, hit.rank, hit.score) for hit in found.passages
    ]
    port = next(row for row in rows if row["passage_id"] == "p3")
    assert (port["document_id"], port["title"], port["start"], port["end"]) == ("p3", "Port Isk", 0, 32)
    assert (port["score_unit"], port["fallback"]) == ("relevance", None)
    assert port["path"][-1]["target"] == "p3"
    assert set(port["path"][0]) == {"source", "kind", "text", "target", "passage_id"}


def test_free_fields_of_a_document_hide_none_of_ours(retriever: GNNRetriever) -> None:
    rows = passage_metadata(retriever.index, retriever.retrieve(QUESTION, 5))
    port = next(row for row in rows if row["passage_id"] == "p3")
    assert isinstance(port["path"], list)
    assert {"year": 1911, "path": "kept"}.items() <= port["document"].items()


def test_a_retriever_without_paths_has_empty_ones(retriever: GNNRetriever) -> None:
    rows = passage_metadata(retriever.index, BM25Retriever(retriever.index).retrieve("winter sea", 2))
    assert [row["path"] for row in rows] == [[], []]
    assert rows[0]["score_unit"] == "BM25"
    json.dumps(rows, allow_nan=False)
