"""The command line: demo, index, search, stats; the other files of this room have the rest."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gfm import __version__
from gfm.cli import ask, bench, doctor, exchange, explain, llm, serve, train
from gfm.cli.index import hub_rows, register, seconds_line
from gfm.cli.options import AsJson, Checkpoint, Filters, IndexFolder, Question, RetrieverName, open_index
from gfm.doors import as_typed, errors_as_one_line, tolerant_output
from gfm.doors import say as _say
from gfm.doors import say_json as _say_json

# Everything that loads torch or spaCy is imported inside the commands, so that --help answers at once.
if TYPE_CHECKING:
    from rich.console import Console

    from gfm.eval.demo import Demo
    from gfm.index.account import Account
    from gfm.index.index import GraphIndex

_DEFAULT_ENCODER = "all-MiniLM-L6-v2"
_COUNTS = ("documents", "passages", "entities", "facts", "triples", "synonyms")

# \b keeps the line breaks of what follows.
_EXAMPLES = {
    "demo": "\b\nExample:\n  gfm demo --out demo_index",
    "index": (
        "\b\nExamples:\n  gfm index corpus.jsonl --out my_index\n"
        "  gfm index notes/ --out my_index --json\n"
        "  gfm index notes/ --out my_index --triples t.jsonl\n"
        "  gfm index notes/ --out i --extractor llm --dry-run"
    ),
    "search": (
        '\b\nExamples:\n  gfm search my_index "Who built Tarn Mill?"\n'
        '  gfm search my_index "Who?" --retriever bm25 --json'
    ),
    "stats": "\b\nExample:\n  gfm stats my_index --json",
}


app = typer.Typer(
    name="gfm",
    help="A trained graph retriever for retrieval-augmented generation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Encoder = Annotated[
    str, typer.Option("--encoder", metavar="NAME", help="wordllama, hashing:DIM, or any sentence-transformers model.")
]


def main() -> None:
    """The console script."""
    tolerant_output()
    with errors_as_one_line():
        app(prog_name="gfm")


def _version(wanted: bool) -> None:
    if wanted:
        _say(f"gfm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A trained graph retriever for retrieval-augmented generation."""


app.command("ask", short_help="Answer a question, with citations.", epilog=ask.ASK_EXAMPLES)(ask.ask)
app.command("bench", short_help="Compare retrievers on question sets.", epilog=bench.BENCH_EXAMPLES)(bench.bench)
app.command("answers", short_help="Compare retrievers on questions for entities.", epilog=bench.ANSWERS_EXAMPLES)(
    bench.answers
)
app.command("convert", short_help="Make a question set of an official file.", epilog=bench.CONVERT_EXAMPLES)(
    bench.convert
)


@app.command("demo", short_help="Try it: index the demo texts, ask, compare.", epilog=_EXAMPLES["demo"])
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the demo index.")] = Path("demo_index"),
    encoder: Encoder = _DEFAULT_ENCODER,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Index the demo texts, answer every demo question, compare four retrievers."""
    from gfm.eval.demo import run_demo

    result = run_demo(out, encoder, str(checkpoint) if checkpoint else None, _note if as_json else _say)
    if as_json:
        _say_json(result.as_json())
        return
    _show_demo(result)
    _say(f'\nNext: gfm search {_shell(out)} "your question", or index your own texts: gfm index PATH --out my_index')


@app.command("index", short_help="Build an index of texts.", epilog=_EXAMPLES["index"])
def index(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file or folder: text, .md, .html, .pdf, .jsonl, .csv.")
    ],
    out: Annotated[Path, typer.Option(metavar="INDEX", help="Folder of the index; an index in it is replaced.")],
    triples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Given triples (triples.jsonl), in place of those that spaCy finds."),
    ] = None,
    encoder: Encoder = _DEFAULT_ENCODER,
    extractor: Annotated[
        str, typer.Option(metavar="NAME", help="spacy, spacy:PIPELINE, llm, llm:FILE, or none (titles alone).")
    ] = "spacy",
    aliases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Other names to merge (JSONL or CSV: alias, name).")
    ] = None,
    chunk_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Most tokens of a passage.")] = 256,
    chunk_overlap: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens that neighbours share.")] = 0,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help="Cache; INDEX/cache.sqlite unless given.")] = None,
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encoding of all text files; found for each unless given.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what asking a language model would cost; ask nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build an index of texts, and tell what became of every file."""
    from gfm.extract import make_extractors
    from gfm.index.documents import NothingToIndexError, read_documents
    from gfm.index.index import GraphIndex
    from gfm.index.recipe import BuildSettings
    from gfm.text.encoder import load_encoder

    try:
        found = read_documents(path, encoding)
    except NothingToIndexError as error:
        _account(error.account, as_json)
        raise
    extractors = make_extractors(extractor, triples, {d.id for d in found.documents})
    settings = BuildSettings(chunk_tokens=chunk_tokens, chunk_overlap=chunk_overlap)
    loaded = load_encoder(encoder)
    llm.show_plan(extractors, found.documents, loaded, settings, cache, out, dry_run, as_json)
    if dry_run:
        return
    made = GraphIndex.build_from(found.documents, extractors, out, loaded, aliases, settings, cache)
    made.account = found.account
    if chunk_tokens > made.encoder.max_tokens:
        _warn(f"the encoder reads {made.encoder.max_tokens} tokens: passages hold no more, not {chunk_tokens}")
    _warn_of_bare_passages(made)
    asked = llm.asked(extractors)
    if as_json:
        row = {"path": str(out.absolute()), "generation": made.generation, "counts": made.manifest["counts"]}
        _account(made.account, as_json, **row, seconds=made.build_seconds, **asked)
        return
    _show_built(made, out)
    llm.show_asked(extractors)


def _show_built(made: GraphIndex, out: Path) -> None:
    """What was built, where the time went, what became of every file, and what to do next."""
    _counts(made)
    if loops := made.manifest["counts"]["self_loops"]:
        _say(f"self-loops left out (statements of an entity about itself): {loops}")
    _say(f"\n{seconds_line(made.build_seconds)}")
    if made.account.files:  # an imported graph was not read from files of texts
        _account(made.account, as_json=False)
    _say(f'index: {out.absolute()}\nnext: gfm search {_shell(out)} "your question"')


register(app)
train.register(app)


@app.command("search", short_help="Ask an index.", epilog=_EXAMPLES["search"])
def search(
    index_folder: IndexFolder,
    question: Question,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to return.")] = 5,
    retriever: RetrieverName = "gfm",
    as_json: AsJson = False,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Budget of the context.")] = 2000,
    checkpoint: Checkpoint = None,
    filters: Filters = None,
    least: Annotated[
        float | None,
        typer.Option(metavar="COSINE", help="Return nothing where no passage is this near to the question, as 0.3."),
    ] = None,
) -> None:
    """Ask an index: ranked passages, the evidence paths to them, and the context for a language model."""
    from gfm import report
    from gfm.context import build_context
    from gfm.eval.run import open_retriever

    opened = open_index(index_folder, filters)
    found = open_retriever(opened, {"name": retriever}, str(checkpoint) if checkpoint else None).retrieve(
        as_typed(question), top_k
    )
    if least is not None:
        from gfm.retrieve.evidence import at_least

        found = at_least(opened, found, least)
    context = build_context(found, max_tokens)
    if as_json:
        _say_json(report.as_json(found, context))
    else:
        _say(report.as_text(found, context))


@app.command("stats", short_help="What an index holds.", epilog=_EXAMPLES["stats"])
def stats(index_folder: IndexFolder, as_json: AsJson = False) -> None:
    """What an index holds and how it was built; every checksum is verified."""
    from gfm.graph.health import bare_passages
    from gfm.index.index import GraphIndex

    opened = GraphIndex.open(index_folder.absolute())
    manifest = opened.manifest
    row: dict[str, Any] = {
        "path": str(opened.path),
        "generation": opened.generation,
        "counts": manifest["counts"],
        "passages_without_entities": bare_passages(opened.graph),
        "hubs": hub_rows(opened),
        "encoder": {name: manifest["encoder"][name] for name in ("name", "dim", "revision")},
        "extractors": manifest["extractors"],
        "settings": manifest["settings"],
        "search": manifest["search"],
        "bytes": sum(file["bytes"] for file in manifest["files"].values()),
        "format_version": manifest["format_version"],
    }
    if as_json:
        _say_json(row)
        return
    _counts(opened, tuple(manifest["counts"]))
    _say("")
    for name, value in row.items():
        if name != "counts":
            _say(f"{name.replace('_', ' ')}: {_flat(value)}")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return "; ".join(map(_flat, value)) or "none" if isinstance(value, list) else str(value)


def _warn_of_bare_passages(made: GraphIndex) -> None:
    """One warning for an index whose graph tells nothing of some or all passages."""
    from gfm.graph.health import bare_passages

    bare, total = bare_passages(made.graph), made.graph.num_passages
    if bare == total:
        what = "0 entities: the graph is empty, and questions are answered by vectors and words alone"
    elif bare:
        what = f"{bare} of {total} passages have no entities and are found by vectors and words alone"
    else:
        return
    _warn(
        f"{what}; where the texts do name things, give --triples, or the pipeline of their language: "
        "--extractor spacy:PIPELINE"
    )


def _warn(text: str) -> None:
    _note(f"warning: {text}")


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _account(account: Account, as_json: bool, **beside: Any) -> None:
    """What became of every file; as JSON, with what stands beside it."""
    if as_json:
        _say_json({**beside, "account": account.as_json()})
    else:
        _say("\n".join(account.lines()))


def _counts(opened: GraphIndex, names: tuple[str, ...] = _COUNTS) -> None:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for name in names:
        table.add_row(name, f"{opened.manifest['counts'][name]:,}")
    _console().print(table)


def _show_demo(result: Demo) -> None:
    from rich.table import Table

    from gfm import report
    from gfm.context import build_context
    from gfm.eval.demo import table_rows

    query, found, gold = result.shown()
    _say(f"\nOne of the questions: {query.text}")
    _say(f"Its answer: {query.metadata.get('answer', '?')} (its gold passages are marked with *)\n")
    _say(report.ranking(found, gold))
    _say(f"\n{report.evidence(found, only=gold) or report.evidence(found)}\n")
    _say(report.context_text(build_context(found, max_tokens=700)))
    table = Table(box=None, pad_edge=False)
    table.add_column(f"{len(result.dataset.judged())} questions", no_wrap=True)
    for name in result.figures["retrievers"]:
        table.add_column(name, justify="right", no_wrap=True)
    for label, cells in table_rows(result.figures):
        table.add_row(label, *cells)
    _say("")
    _console().print(table)
    _say(f"\nBuilt in {result.seconds['build']:.1f} s, answered in {result.seconds['questions']:.1f} s")


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _shell(path: Path) -> str:
    return shlex.quote(str(path))


exchange.register(app, _show_built, _DEFAULT_ENCODER)
explain.register(app)
doctor.register(app)
serve.register(app)
