"""The tools for language models, called by the package's own client in a process of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra: pip install 'gfm-retriever[mcp]'")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from gfm.adapters.mcp import make_server
from gfm.index.index import GraphIndex
from gfm.retrieve.bm25 import BM25Retriever
from gfm.retrieve.gnn import GNNRetriever

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


def test_a_client_finds_and_calls_the_tools(z_index: Path, untrained: Path, repository: Path) -> None:
    command = ["-m", "gfm.cli", "mcp", str(z_index), "--checkpoint", str(untrained)]
    place = {**os.environ, "PYTHONPATH": str(repository)}

    async def main() -> tuple[list[str], Any, Any, Any]:
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=place)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("search", {"question": QUESTION, "top_k": 3})
            why = await client.call_tool("explain", {"question": QUESTION})
            wrong = await client.call_tool("search", {"question": " "})
            return tools, found, why, wrong

    tools, found, why, wrong = asyncio.run(main())
    assert tools == ["search", "explain"]
    expected = GNNRetriever.from_pretrained(GraphIndex.open(z_index), untrained).retrieve(QUESTION, 3)
    row = found.structured_content
    assert [hit["id"] for hit in row["passages"]] == [hit.item.id for hit in expected.passages]
    assert row["context"]["text"].startswith("<context>")
    assert why.structured_content["paths"]
    assert "graph" not in why.structured_content
    assert wrong.is_error
    assert "empty or blank" in wrong.content[0].text


def test_in_this_process(z_index: Path, untrained: Path) -> None:
    index = GraphIndex.open(z_index)

    async def main() -> None:
        async with Client(make_server(lambda: GNNRetriever.from_pretrained(index, untrained))) as client:
            whole = await client.call_tool("explain", {"question": QUESTION, "graph": True})
            assert len(whole.structured_content["graph"]["nodes"]) == 10
            assert (await client.call_tool("search", {"question": QUESTION, "top_k": 101})).is_error
            for tool in ("search", "explain"):
                part = await client.call_tool(tool, {"question": QUESTION, "filters": {"document_id": "p3"}})
                assert [hit["id"] for hit in part.structured_content["passages"]] == ["p3"]
            wrong = await client.call_tool("search", {"question": QUESTION, "filters": {"year": 1}})
            assert "filters: expected some of document_id" in wrong.content[0].text
        async with Client(make_server(lambda: BM25Retriever(index))) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search"]

    asyncio.run(main())
