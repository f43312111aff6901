"""Commands for graphs that others have or want: import, export, merges."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gfm.cli.options import AsJson, IndexFolder, open_index
from gfm.doors import say, say_json

if TYPE_CHECKING:
    from gfm.exchange.exchange import Imported
    from gfm.exchange.merges import Merge
    from gfm.index.index import GraphIndex

# The names stand here too, so that --help answers at once.
FORMATS = ("graphrag", "lightrag", "hipporag", "gfm-rag", "g-reasoner", "jsonl", "csv", "graphml", "ntriples")
_EXAMPLES = {
    "import": (
        "\b\nExamples:\n  gfm import my_graph/ --out my_index\n  gfm import graph.graphml --check\n"
        "  gfm import output/ --format graphrag --out my_index"
    ),
    "export": "\b\nExample:\n  gfm export my_index --out my_graph --format csv",
    "merges": "\b\nExample:\n  gfm merges my_index --json",
}
Show = Callable[["GraphIndex", Path], None]


def _format(name: str | None) -> str | None:
    if name is not None and name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(FORMATS)}")
    return name


def register(app: typer.Typer, show: Show, encoder: str) -> None:
    """Add the commands.

    Args:
        app: The command line.
        show: Prints what an index holds that was just built.
        encoder: Name of the default encoder.
    """

    @app.command("import", short_help="Build an index of a graph that you have.", epilog=_EXAMPLES["import"])
    def import_(
        path: Annotated[Path, typer.Argument(metavar="PATH", help="A file or folder in one of the formats.")],
        out: Annotated[Path | None, typer.Option(metavar="INDEX", help="Folder of the index.")] = None,
        format_name: Annotated[
            str | None,
            typer.Option("--format", metavar="NAME", callback=_format, help=f"{', '.join(FORMATS)}; else detected."),
        ] = None,
        check: Annotated[bool, typer.Option("--check", help="Only read it and tell what is in it.")] = False,
        aliases: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Other names to merge (JSONL or CSV: alias, name).")
        ] = None,
        encoder: Annotated[
            str, typer.Option(metavar="NAME", help="wordllama, hashing:DIM, or any sentence-transformers model.")
        ] = encoder,
        extractor: Annotated[
            str, typer.Option(metavar="NAME", help="none, or spacy or spacy:PIPELINE to find more in the texts.")
        ] = "none",
        cache: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Cache; INDEX/cache.sqlite unless given.")
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Build an index of a graph that you have: our own forms, GraphML, RDF, or the folder of another system."""
        from gfm.exchange.exchange import import_graph

        if (out is None) != check:
            raise typer.BadParameter("give either --out INDEX, or --check to only read the graph")
        found = import_graph(path, out, format_name, encoder=encoder, extractor=extractor, aliases=aliases, cache=cache)
        if as_json:
            say_json(_imported(found, out))
            return
        _tell(found)
        if found.index is not None and out is not None:
            show(found.index, out)

    @app.command("export", short_help="Write an index as files for others.", epilog=_EXAMPLES["export"])
    def export(
        source: Annotated[Path, typer.Argument(metavar="INDEX", help="An index; or a graph in one of the formats.")],
        out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
        format_name: Annotated[
            str, typer.Option("--format", metavar="NAME", callback=_format, help=f"{', '.join(FORMATS)}.")
        ] = "jsonl",
        as_json: AsJson = False,
    ) -> None:
        """Write an index, or a graph in another format, as a folder of files."""
        from gfm.exchange.exchange import export_graph

        notes = export_graph(source, out, format_name)
        if as_json:
            say_json({"path": str(out.absolute()), "format": format_name, "notes": list(notes)})
            return
        for note in notes:
            say(f"note: {note}")
        say(f"wrote {out.absolute()} ({format_name})\nnext: gfm import {shlex.quote(str(out))} --out my_index")

    @app.command("merges", short_help="Which names share one entity.", epilog=_EXAMPLES["merges"])
    def merges(index_folder: IndexFolder, as_json: AsJson = False) -> None:
        """Which names share one entity and why: another spelling, a bracket, an alias that you gave, or the context.

        An alias goes when you build without its line; a spelling that should be apart needs an id or a type.
        """
        from gfm.exchange.merges import merges_of

        found = merges_of(open_index(index_folder))
        if as_json:
            say_json([_row(merge) for merge in found])
            return
        for merge in found:
            say(f"{merge.name} ({merge.why}): {', '.join(f'{form} ({n})' for form, n in merge.forms.items())}")
        say(f"{len(found)} merge{'s' * (len(found) != 1)}" if found else "no merges: every entity has one spelling")


def _row(merge: Merge) -> dict[str, Any]:
    return {"key": merge.key, "name": merge.name, "why": merge.why, "forms": merge.forms}


def _imported(found: Imported, out: Path | None) -> dict[str, Any]:
    names = ("format", "documents", "entities", "triples", "homonyms", "unnamed", "notes")
    row: dict[str, Any] = {name: getattr(found, name) for name in names}
    if found.index is not None and out is not None:
        index = found.index
        row |= {"path": str(out.absolute()), "generation": index.generation, "counts": index.manifest["counts"]}
    return row


def _tell(found: Imported) -> None:
    say(f"format: {found.format}")
    say(f"read: {found.documents} passages, {found.entities} rows of entities, {found.triples} triples")
    if found.homonyms:
        say(f"names that several entities share, kept apart: {', '.join(found.homonyms)}")
    if found.unnamed:
        say(f"entities without a name, shown as unnamed: {found.unnamed}")
    for note in found.notes:
        say(f"note: {note}")
