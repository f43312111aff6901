"""The commands that stay: serve (HTTP) and mcp (tools for language models)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gfm.cli.options import Checkpoint, IndexFolder, RetrieverName
from gfm.doors import say

# As in gfm/cli/app.py, everything heavy is imported inside the commands.
if TYPE_CHECKING:
    from gfm.retrieve.base import Retriever

_EXAMPLES = {
    "serve": "\b\nExamples:\n  gfm serve my_index\n  gfm serve my_index --port 0 --llm llm.yaml",
    "mcp": "\b\nExample (what a client's settings name as the command):\n  gfm mcp my_index",
}


def _loader(index: Path, retriever: str, checkpoint: Path | None) -> Callable[[], Retriever]:
    """Opens the generation in force, and a retriever over it that is warm."""
    from gfm.eval.run import open_retriever
    from gfm.index.index import GraphIndex

    where, network = index.absolute(), str(checkpoint) if checkpoint else None
    return lambda: open_retriever(GraphIndex.open(where), {"name": retriever}, network)


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command("serve", short_help="Answer over HTTP: search, ask, explain.", epilog=_EXAMPLES["serve"])
    def serve(
        index_folder: IndexFolder,
        host: Annotated[str, typer.Option(metavar="HOST", help="Whom to answer: this machine alone.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 for any that is free.")] = 8000,
        retriever: RetrieverName = "gfm",
        checkpoint: Checkpoint = None,
        llm: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Settings of a language model that answers /ask.")
        ] = None,
        concurrency: Annotated[int, typer.Option(metavar="N", min=1, help="Requests worked on at a time.")] = 2,
        queue: Annotated[int, typer.Option(metavar="N", min=0, help="Requests that may wait; more get a 503.")] = 16,
        timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Most time of a request.")] = 60.0,
        max_top_k: Annotated[int, typer.Option(metavar="N", min=1, help="Most passages of a request.")] = 100,
    ) -> None:
        """Answer over HTTP: /search, /ask, /explain, /health, /metrics; described in /openapi.json.

        Whoever can reach it can ask; it is bound to this machine alone unless --host says otherwise.
        """
        from gfm.serve.app import make_app
        from gfm.serve.server import guarded
        from gfm.serve.server import serve as run
        from gfm.serve.settings import ServeSettings

        model = None
        if llm is not None:
            from gfm.llm.port import LLM
            from gfm.llm.settings import read_settings

            model = LLM(read_settings(llm))
        limits = ServeSettings(concurrency=concurrency, queue=queue, timeout=timeout, max_top_k=max_top_k)
        made = make_app(_loader(index_folder, retriever, checkpoint), guarded(limits, host), model)
        run(made, host, port, timeout, lambda address: say(f"serving {index_folder} at {address}"))

    @app.command("mcp", short_help="Tools for language models (MCP).", epilog=_EXAMPLES["mcp"])
    def mcp(index_folder: IndexFolder, retriever: RetrieverName = "gfm", checkpoint: Checkpoint = None) -> None:
        """Offer search and explain as tools of the Model Context Protocol, on standard input and output."""
        from gfm.adapters.mcp import make_server

        make_server(_loader(index_folder, retriever, checkpoint)).run("stdio")
