"""Commands for the life of an index: add, update, delete, retry, verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gfm.cli.options import AsJson, IndexFolder
from gfm.doors import as_typed, say, say_json
from gfm.memory import peak_memory

# As in gfm/cli/app.py, everything heavy is imported inside the commands.
if TYPE_CHECKING:
    from gfm.index.index import GraphIndex
    from gfm.index.living import Change

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="A corpus.jsonl, or a folder, as for gfm index; or several.")
]
Triples = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Given triples, where the index was built with such.")
]
CacheFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The cache that the index was built with; its own unless given.")
]


def register(app: typer.Typer) -> None:
    """Give the program these commands."""
    for command, short, example in (
        (add, "Add documents to an index.", "gfm add my_index more.jsonl"),
        (update, "Add documents, or replace those of the same ids.", "gfm update my_index notes/ --delete-missing"),
        (delete, "Delete documents by id.", "gfm delete my_index notes/old.md p5"),
        (retry, "Ask the language model again about what failed.", "gfm retry my_index --dry-run"),
        (verify, "Check that an index is whole.", "gfm verify my_index --rebuild"),
    ):
        app.command(command.__name__, short_help=short, epilog=f"\b\nExample:\n  {example}")(command)


def add(
    index_folder: IndexFolder,
    paths: Paths,
    triples: Triples = None,
    cache: CacheFile = None,
    as_json: AsJson = False,
) -> None:
    """Add documents to an index. One that it has already is passed over; another content for a known id is an error."""
    from gfm.index.living import change_corpora

    _tell(change_corpora(index_folder.absolute(), paths, only_new=True, triples=triples, cache=cache), as_json)


def update(
    index_folder: IndexFolder,
    paths: Paths,
    triples: Triples = None,
    cache: CacheFile = None,
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete all documents that are in none of the PATHs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add documents to an index, or put them in the place of those of the same ids."""
    from gfm.index.living import change_corpora

    root = index_folder.absolute()
    _tell(change_corpora(root, paths, delete_missing=delete_missing, triples=triples, cache=cache), as_json)


def delete(
    index_folder: IndexFolder,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of documents; after -- where one begins with -.")
    ],
    cache: CacheFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete documents, and with them whatever no other document supports."""
    from gfm.index.living import change_corpora

    _tell(change_corpora(index_folder.absolute(), (), [as_typed(i) for i in ids], cache=cache), as_json)


def retry(
    index_folder: IndexFolder,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what it would cost; ask nothing.")] = False,
    cache: CacheFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask the language model again about the passages that failed; the texts are those in the index."""
    from gfm.index.retry import retry_failed

    done = retry_failed(index_folder.absolute(), cache, dry_run, lambda plan: typer.echo(plan.text(), err=True))
    if as_json:
        say_json(done.as_json())
        return
    say("\n".join(done.lines()))


def verify(
    index_folder: IndexFolder,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Also build its documents anew, from the cache, and compare every byte.")
    ] = False,
    cache: CacheFile = None,
    as_json: AsJson = False,
) -> None:
    """Check every checksum, count, number and vector of an index; the exit status is 1 where one is wrong."""
    from gfm.index.verify import verify_index

    found = verify_index(index_folder.absolute(), rebuild, cache)
    whole = not any(found.values())
    if as_json:
        say_json({"whole": whole, "problems": found})
    else:
        for check, problems in found.items():
            say(f"{check}: {'ok' if not problems else f'{len(problems)} wrong'}")
            for problem in problems[:_SHOWN]:
                say(f"  {problem}")
            if len(problems) > _SHOWN:
                say(f"  and {len(problems) - _SHOWN} more")
        say("the index is whole" if whole else f"build the index again: gfm index PATH --out {index_folder}")
    if not whole:
        raise typer.Exit(1)


_SHOWN = 20


def _tell(change: Change, as_json: bool) -> None:
    """What a change did, and what the index holds now."""
    lists = {name: getattr(change, name) for name in ("added", "updated", "unchanged", "deleted")}
    work = {"extracted": change.extracted, "encoded": change.encoded}
    if as_json:
        say_json(
            {**lists, **work, "counts": change.counts, "seconds": change.seconds, "account": change.account.as_json()}
        )
        return
    say(f"documents: {', '.join(f'{name} {len(ids)}' for name, ids in lists.items())}")
    say(f"new work: passages {', texts '.join(f'{name} {n}' for name, n in work.items())}")
    say(f"the index holds: {', '.join(f'{name} {n:,}' for name, n in change.counts.items())}")
    if change.seconds:
        say(seconds_line(change.seconds))
    if change.account.files:
        say("\n".join(change.account.lines()))


def seconds_line(seconds: dict[str, float]) -> str:
    """The time of each stage, and the memory that all took at most."""
    stages = ", ".join(f"{stage} {s:.1f}" for stage, s in seconds.items())
    return f"seconds: {stages}; peak memory {peak_memory() / 1e6:,.0f} MB"


def hub_rows(opened: GraphIndex, limit: int = 10) -> list[dict[str, Any]]:
    """The entities with the most edges: name, edges, and passages that mention them."""
    from gfm.graph.knowledge_graph import hubs

    graph = opened.graph
    degree = graph.node_ptr[1:] - graph.node_ptr[:-1]
    return [
        {"name": opened.entity(i).name, "edges": int(degree[i]), "passages": int(graph.entity_df[i])}
        for i in hubs(graph)[:limit].tolist()
    ]
