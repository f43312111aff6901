"""Runs and results, on Corpus Z and on a corpus whose documents have several passages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gfm.eval.run import (
    EncodedQueries,
    Inference,
    best_documents,
    infer,
    open_retriever,
    passages_for,
    write_json,
)
from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import GfmError, Hit, Passage, Query, Retrieval


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    """Three documents of 1, several and several passages."""
    folder = tmp_path_factory.mktemp("chunked")
    sentence = "The keeper of the old mill wrote down {} barrels of quince jam. "
    rows = [
        {"_id": "a", "text": "The keeper slept."},
        {"_id": "b", "text": "".join(sentence.format(n) for n in range(12))},
        {"_id": "c", "text": "".join(sentence.format(n) for n in range(30, 38))},
    ]
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return GraphIndex.build(
        corpus, folder / "i", encoder="hashing:64", extractor="none", settings=BuildSettings(chunk_tokens=40)
    )


def hit(document: str, passage: str, score: float, rank: int) -> Hit[Passage]:
    return Hit(Passage(passage, document, "", "x", 0, 1), score, rank)


def test_a_document_has_the_score_of_its_best_passage_and_ties_go_by_id() -> None:
    hits = [hit("b", "b#1", 0.9, 1), hit("a", "a", 0.5, 2), hit("c", "c", 0.5, 3), hit("b", "b#0", 0.1, 4)]
    found = Retrieval(Query("q", "x"), [], [], hits, "cosine")
    assert list(best_documents(found, 2).items()) == [("b", 0.9), ("a", 0.5)]


def test_enough_passages_are_asked_for_to_fill_a_run(chunked: GraphIndex) -> None:
    sizes = {document: chunked.document_ids.count(document) for document in "abc"}
    assert sizes["a"] == 1
    assert min(sizes["b"], sizes["c"]) > 2
    assert passages_for(chunked, 1) == 1
    assert passages_for(chunked, 2) == max(sizes.values()) + 1
    assert passages_for(chunked, 3) == sizes["b"] + sizes["c"] + 1


def test_a_run_holds_documents_and_a_result_no_more_passages_than_asked_for(
    chunked: GraphIndex, tmp_path: Path
) -> None:
    job = Inference(
        str(chunked.path),
        {"name": "dense"},
        question="how many barrels of quince jam did the keeper of the old mill write down?",
        top_k=3,
        run_out=str(tmp_path / "run.json"),
    )
    (found,) = infer(job)
    assert len(found.passages) == 3
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert set(run["query"]) == {"a", "b", "c"}
    assert run["query"]["a"] == min(run["query"].values())


@pytest.mark.parametrize("name", ["dense", "hybrid", "gfm"])
def test_encoding_in_a_batch_changes_no_rank(name: str, z_index: Path, untrained: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    texts = ["Which sea is near Port Isk?", "Who built Tarn Mill?", "Who built Tarn Mill?", "jam"]
    queries.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    checkpoint = str(untrained) if name == "gfm" else None
    both = [
        list(
            infer(Inference(str(z_index), {"name": name}, queries=str(queries), checkpoint=checkpoint, batch_encode=b))
        )
        for b in (True, False)
    ]
    for together, alone in zip(*both, strict=True):
        assert [h.item.id for h in together.passages] == [h.item.id for h in alone.passages]
        assert [h.score for h in together.passages] == pytest.approx([h.score for h in alone.passages], abs=1e-5)
        assert (together.trace["batch_encode"], alone.trace["batch_encode"]) == (True, False)
        assert together.seconds["encode"] > 0


def test_encoded_queries_are_looked_up_and_others_encoded() -> None:
    class Counting(HashingEncoder):
        calls = 0

        def encode(self, texts, *, is_query=False, progress=""):  # type: ignore[no-untyped-def]
            self.calls += 1
            return super().encode(texts, is_query=is_query, progress=progress)

    beneath = Counting(32)
    encoder = EncodedQueries(beneath, ["a b", "c"])
    before = beneath.calls
    np.testing.assert_array_equal(encoder.encode(["c", "a b"], is_query=True), HashingEncoder(32).encode(["c", "a b"]))
    assert beneath.calls == before
    encoder.encode(["d"], is_query=True)
    encoder.encode(["c"])
    assert beneath.calls == before + 2
    assert encoder.fingerprint == beneath.fingerprint


def test_each_text_bears_its_share_of_its_batch() -> None:
    encoder = EncodedQueries(HashingEncoder(32), ["a b c d", "e"], with_parts=True)
    assert encoder.spent == 0.0
    encoder.encode(["e"], is_query=True)
    assert encoder.spent == encoder.seconds > 0.0
    encoder.encode(["a b c d", "a b", "b c", "c d"], is_query=True)
    assert encoder.spent > 2 * encoder.seconds
    with pytest.raises(AttributeError, match="nothing beneath"):
        unreachable(encoder).encode(["a", "b"], is_query=True)


def unreachable(encoder: EncodedQueries) -> EncodedQueries:
    """The same without what it stands on: it can only look up."""

    def beneath() -> None:
        raise AttributeError("nothing beneath")

    encoder._beneath = beneath  # type: ignore[method-assign, assignment]
    return encoder


def test_open_retriever_refuses_a_checkpoint_for_a_retriever_without_one(z_index: Path) -> None:
    index = GraphIndex.open(z_index)
    with pytest.raises(GfmError, match="'dense' has no network"):
        open_retriever(index, {"name": "dense"}, "folder")
    with pytest.raises(GfmError, match="expected one of gfm, dense, bm25, hybrid"):
        open_retriever(index, {})


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ü.json"
    write_json(path, {"b": "é", "a": 0.1})
    assert path.read_bytes() == '{\n "a": 0.1,\n "b": "é"\n}\n'.encode()
    with pytest.raises(GfmError, match="not finite"):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text(encoding="utf-8"))["a"] == 0.1
    assert [p.name for p in path.parent.iterdir()] == ["ü.json"]
    with pytest.raises(GfmError, match="cannot be written"):
        write_json(path.parent, {})
    assert [p.name for p in tmp_path.iterdir()] == ["new"]
