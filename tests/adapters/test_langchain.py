"""The adapter for LangChain, with the real langchain-core."""

from __future__ import annotations

import asyncio

import pytest

from gfm.retrieve.gnn import GNNRetriever
from gfm.types import GfmError

pytest.importorskip("langchain_core", reason="needs the extra: pip install 'gfm-retriever[langchain]'")

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from gfm.adapters.langchain import GraphRetriever
from gfm.adapters.passages import passage_metadata

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tracing, whatever the person who runs the tests has set."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2"):
        monkeypatch.setenv(name, "false")


def test_documents_are_the_passages_in_order(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever=retriever, top_k=3)
    assert isinstance(adapted, BaseRetriever)
    found = retriever.retrieve(QUESTION, 3)
    documents = adapted.invoke(QUESTION)
    assert [(d.id, d.page_content) for d in documents] == [(h.item.id, h.item.text) for h in found.passages]
    assert [d.metadata for d in documents] == passage_metadata(retriever.index, found)


def test_all_ways_of_asking_agree(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever=retriever)
    alone = adapted.invoke(QUESTION)
    assert asyncio.run(adapted.ainvoke(QUESTION)) == alone
    assert adapted.batch([QUESTION] * 2) == [alone] * 2
    assert asyncio.run(adapted.abatch([QUESTION] * 2)) == [alone] * 2


def test_it_stands_in_a_chain(retriever: GNNRetriever) -> None:
    chain = GraphRetriever(retriever=retriever, top_k=1) | RunnableLambda(lambda found: len(found))
    assert chain.invoke(QUESTION) == 1


def test_errors_stay_ours(retriever: GNNRetriever) -> None:
    with pytest.raises(GfmError, match="empty or blank"):
        GraphRetriever(retriever=retriever).invoke(" ")


def test_filters_limit_the_search(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever=retriever, filters={"document_id": {"$in": ["p1", "p3"]}})
    assert {found.id for found in adapted.invoke(QUESTION)} == {"p1", "p3"}
