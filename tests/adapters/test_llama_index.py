"""The adapter for LlamaIndex, with the real llama-index-core."""

from __future__ import annotations

import asyncio

import pytest

from gfm.retrieve.gnn import GNNRetriever
from gfm.types import GfmError

pytest.importorskip("llama_index.core", reason="needs the extra: pip install 'gfm-retriever[llama-index]'")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, QueryBundle, TextNode

from gfm.adapters.llama_index import GraphRetriever
from gfm.adapters.passages import passage_metadata

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


def test_nodes_are_the_passages_in_order(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever, top_k=3)
    assert isinstance(adapted, BaseRetriever)
    found = retriever.retrieve(QUESTION, 3)
    nodes = adapted.retrieve(QUESTION)
    assert [(n.node_id, n.text, n.score) for n in nodes] == [(h.item.id, h.item.text, h.score) for h in found.passages]
    assert [n.metadata for n in nodes] == passage_metadata(retriever.index, found)
    for node, hit in zip(nodes, found.passages, strict=True):
        assert isinstance(node.node, TextNode)
        assert (node.node.start_char_idx, node.node.end_char_idx) == (hit.item.start, hit.item.end)
        assert node.node.ref_doc_id == hit.item.document_id


def test_all_ways_of_asking_agree(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever)
    alone = adapted.retrieve(QUESTION)
    assert asyncio.run(adapted.aretrieve(QUESTION)) == alone
    assert adapted.retrieve(QueryBundle(QUESTION)) == alone


def test_only_the_title_goes_into_prompts_and_vectors(retriever: GNNRetriever) -> None:
    node = next(n.node for n in GraphRetriever(retriever).retrieve(QUESTION) if n.node_id == "p3")
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert node.get_content(mode) == "title: Port Isk\n\nPort Isk lies on the Halder Sea."


def test_it_stands_in_a_query_engine(retriever: GNNRetriever) -> None:
    engine = RetrieverQueryEngine.from_args(GraphRetriever(retriever, top_k=2), llm=MockLLM())
    answer = engine.query(QUESTION)
    assert len(answer.source_nodes) == 2
    assert QUESTION in str(answer)


def test_errors_stay_ours(retriever: GNNRetriever) -> None:
    with pytest.raises(GfmError, match="empty or blank"):
        GraphRetriever(retriever).retrieve(" ")


def test_filters_limit_the_search(retriever: GNNRetriever) -> None:
    adapted = GraphRetriever(retriever, filters={"document_id": {"$in": ["p1", "p3"]}})
    assert {found.node_id for found in adapted.retrieve(QUESTION)} == {"p1", "p3"}
