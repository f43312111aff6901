from __future__ import annotations

from dataclasses import replace
from typing import Any

from gfm.answer.extractive import best_sentences
from gfm.context import build_context
from gfm.retrievers import load_retriever
from gfm.types import Hit, Triple


def test_sentences_are_ranked_one_by_one(placed_index: Any) -> None:
    texts = {"a": "Low one. High one.", "b": "Middle one."}
    cosine = {"Low one.": 0.1, "High one.": 0.9, "Middle one.": 0.5, "Low one. High one.": 0.4}
    index = placed_index(texts, cosine=cosine)
    found = load_retriever("dense", index).retrieve("Which?", 5)
    quoted = best_sentences(index, found, build_context(found), 2)
    assert [q.text for q in quoted] == ["High one.", "Middle one."]
    source = {s.passage_id: s.n for s in build_context(found).sources}
    assert [q.n for q in quoted] == [source["a"], source["b"]]


def test_facts_that_the_retriever_ranked_come_first(placed_index: Any) -> None:
    texts = {"a": "Low one. High one.", "b": "Middle one."}
    index = placed_index(texts, cosine={"High one.": 0.9, "Low one. High one.": 0.4, "Middle one.": 0.5})
    found = load_retriever("dense", index).retrieve("Which?", 5)
    rows = [("a", "Title: Low one."), ("a", "Title: Low one."), ("elsewhere", "Unseen."), ("b", "Middle one.")]
    triples = [Hit(Triple("h", "r", "t", text, 1.0, (p,)), 1.0 / n, n) for n, (p, text) in enumerate(rows, 1)]
    found = replace(found, triples=triples)
    quoted = best_sentences(index, found, build_context(found), 3)
    assert [q.text for q in quoted] == ["Title: Low one.", "Middle one.", "High one."]
