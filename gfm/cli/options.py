"""Arguments and options that several commands share, so that they are written, checked and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gfm.doors import as_typed
from gfm.retrievers import NAMES

if TYPE_CHECKING:
    from gfm.index.index import GraphIndex


def known_retriever(name: str | None) -> str | None:
    """The name, where it is that of a retriever or none is given.

    Raises:
        typer.BadParameter: There is no such retriever.
    """
    if name is not None and name not in NAMES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(NAMES)}")
    return name


IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of an index.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="In quotes; after -- where it begins with -.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RetrieverName = Annotated[
    str,
    typer.Option("--retriever", metavar="NAME", callback=known_retriever, help=f"How to search: {', '.join(NAMES)}."),
]
Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="A trained network; the one in the package unless given.")
]
Filters = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help="""Only documents that fit, as in '{"metadata.year": {"$gt": 1990}}'."""
    ),
]


def open_index(folder: Path, filters: str | None = None) -> GraphIndex:
    """The index in a folder, or the part of it that filters let through.

    Raises:
        GfmError: As `GraphIndex.open`, `read_filters` and `where`.
    """
    from gfm.index.filters import read_filters
    from gfm.index.index import GraphIndex
    from gfm.index.part import where

    opened = GraphIndex.open(folder.absolute())
    return where(opened, read_filters(as_typed(filters))) if filters else opened
