"""The command that shows why: explain."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gfm.cli.options import Checkpoint, Filters, IndexFolder, Question, known_retriever, open_index
from gfm.doors import as_typed, say, say_json
from gfm.retrievers import NAMES

if TYPE_CHECKING:
    from gfm.retrieve.gnn import Explained, GNNRetriever
    from gfm.types import Hit, PathStep

_MOST_LINKS = 5
_EXAMPLES = (
    "\b\nExamples:\n"
    '  gfm explain my_index "Who built Tarn Mill?"\n'
    '  gfm explain my_index "Who built it?" --html why.html\n'
    '  gfm explain my_index "Who built it?" --against bm25'
)


def contributions(retriever: GNNRetriever, explained: Explained) -> list[Hit[PathStep]]:
    """The links that the score of the first passage rests on; none where the network did not rank it."""
    result = explained.result
    if not result.passages or result.trace["fallback"]:
        return []
    return retriever.contributions(explained, result.passages[0].item.id, _MOST_LINKS)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("explain", short_help="Show why: paths, the graph, another retriever beside.", epilog=_EXAMPLES)
    def explain(
        index_folder: IndexFolder,
        question: Question,
        html: Annotated[
            Path | None,
            typer.Option("--html", metavar="FILE", help="Write a page that works offline, the graph in it."),
        ] = None,
        against: Annotated[
            str | None,
            typer.Option(
                metavar="NAME", callback=known_retriever, help=f"Another retriever beside: {', '.join(NAMES)}."
            ),
        ] = None,
        top_k: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to return.")] = 5,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON, the whole graph in it.")] = False,
        checkpoint: Checkpoint = None,
        filters: Filters = None,
    ) -> None:
        """Show why the learnt retriever answers as it does: its passages, the evidence paths to them, what it reached.

        The page of --html is one file that loads nothing: the scored graph, the facts with their sentences, the trace.
        """
        from gfm import report
        from gfm.eval.run import check_writable, open_retriever, write_text
        from gfm.retrieve.gnn import GNNRetriever
        from gfm.viewer.graph import explanation
        from gfm.viewer.page import page

        if html is not None:
            check_writable(html, "why.html")
        opened, asked = open_index(index_folder, filters), as_typed(question)
        retriever = open_retriever(opened, {"name": "gfm"}, str(checkpoint) if checkpoint else None)
        explained = cast(GNNRetriever, retriever).explain(asked, top_k)
        other = open_retriever(opened, {"name": against}).retrieve(asked, top_k) if against else None
        made = explanation(opened, explained, other) if html or as_json else {}
        rests = contributions(cast(GNNRetriever, retriever), explained)
        if html is not None:
            write_text(html, page(made))
        if as_json:
            say_json({**made, "contributions": [asdict(hit) for hit in rests]})
            return
        say(report.as_text(explained.result))
        if rests:
            say("\n".join(["\nThe first passage's score rests on", *map(report.contribution, rests)]))
        if other is not None:
            say(f"\nThe same question with {against}\n{report.as_text(other)}")
        next_one = f"next: gfm explain {shlex.quote(str(index_folder))} {shlex.quote(asked)} --html why.html"
        say(f"\nwrote {html}: open it in any browser" if html else f"\n{next_one}")
