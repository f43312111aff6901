"""The commands that measure: bench, answers and convert."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gfm.cli.options import AsJson, IndexFolder, open_index
from gfm.doors import as_typed, say_json

if TYPE_CHECKING:
    from rich.console import Console

    from gfm.eval.bench import Bench
    from gfm.eval.tables import Table

# \b keeps the line breaks of what follows.
BENCH_EXAMPLES = (
    "\b\nExamples:\n  gfm bench demo --out bench\n"
    "  gfm bench sets/2wiki --retrievers gfm,bm25 --limit 100\n"
    "  gfm bench --config baselines --root sets"
)
ANSWERS_EXAMPLES = "\b\nExample:\n  gfm answers films_index questions/ --limit 300"
CONVERT_EXAMPLES = "\b\nExample:\n  gfm convert musique_ans_v1.0_dev.jsonl --out sets/m"


def bench(
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA]...", help="Folders in BEIR layout (see gfm convert), or demo."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings (YAML), or the name of a table in configs/experiment/bench."),
    ] = None,
    root: Annotated[str | None, typer.Option(metavar="FOLDER", help="Folder above the sets of DATA or FILE.")] = None,
    work: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Indexes and their cache; built where missing. [runs]")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FOLDER", help="Where the results go. [bench]")] = None,
    retrievers: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Names, YAML files, or folders of trained networks. [all]"),
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="Qrels file, where a set has several.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Most questions of a set.")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Of that draw, the intervals and the tests. [0]")
    ] = None,
    encoder: Annotated[str | None, typer.Option(metavar="NAME", help="As for gfm index.")] = None,
    extractor: Annotated[str | None, typer.Option(metavar="NAME", help="As for gfm index.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="FOLDER", help="A trained network for gfm.")] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, help="Budget of a context. [2000]")] = None,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Draw none (they need matplotlib).")] = False,
    one_process: Annotated[
        bool, typer.Option("--one-process", help="Measure all retrievers in this process: sooner, no peak memory.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare retrievers on question sets: quality, significance, time, memory, context."""
    from gfm.eval.bench import bench as run
    from gfm.eval.settings import bench_settings

    given = {
        "data": [as_typed(folder) for folder in data] if data else None,
        "root": root,
        "work": work,
        "out": out,
        "retrievers": retrievers,
        "split": split,
        "limit": limit,
        "seed": seed,
        "encoder": encoder,
        "extractor": extractor,
        "checkpoint": checkpoint,
        "max_tokens": max_tokens,
        "pictures": False if no_pictures else None,
        "apart": False if one_process else None,
    }
    settings = bench_settings(given, config)
    command = shlex.join(["gfm", *map(as_typed, sys.argv[1:])])
    result = run(settings, _note, command)
    if as_json:
        print(json.dumps({**result.report, "repeated": result.repeated}, indent=1, sort_keys=True, allow_nan=False))
        return
    _show(result)
    print(f"\nWrote bench.json, bench.md and the runs to {settings.out}")


def answers(
    index_folder: IndexFolder,
    questions: Annotated[
        Path,
        typer.Argument(metavar="QUESTIONS", help='JSONL with "answers": ["NAME"]; or a folder of queries*.jsonl.'),
    ],
    retrievers: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Names, YAML files, or folders of trained networks.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most questions of each number of hops.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of that draw and the intervals.")] = 0,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Only the half of the questions that training never sees.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare retrievers by the entities that they answer with: Hits@1 and MRR, by hops."""
    from gfm.eval import answers as run
    from gfm.eval.settings import entries

    asked = [q for q in run.read_answer_questions(questions) if not held_out or run.held_out(q)]
    chosen = entries(retrievers) if retrievers else run.RETRIEVERS
    index = open_index(index_folder)
    report = run.bench_answers(index, run.draw(asked, limit, seed), chosen, seed, _note)
    if as_json:
        say_json(asdict(report))
        return
    _print(run.table(report))


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of HotpotQA, 2WikiMultiHopQA or MuSiQue; may be .gz.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new or empty folder for the set.")],
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Names the qrels file; train, dev or test by FILE's name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a question set in BEIR layout of an official file, as it was downloaded."""
    from gfm.eval.convert import convert as run

    made = run(file, out, split)
    if as_json:
        say_json({**asdict(made), "folder": str(made.folder)})
        return
    print(made.text())
    print(f"next: gfm bench {shlex.quote(str(out))}")


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _print(table: Table) -> None:
    from gfm.eval.tables import as_rich

    console = _console()
    console.print(f"\n{table.title}", style="bold")
    console.print(as_rich(table))
    for line in table.notes:
        console.print(line)


def _show(result: Bench) -> None:
    """All tables, then how they were made, then what an earlier run says to it."""
    from gfm.eval.tables import methods, tables

    console = _console()
    for table in tables(result.report):
        _print(table)
    console.print("\nHow")
    for line in methods(result.report):
        console.print(f"- {line}")
    if result.repeated:
        print()
    for line in result.repeated:
        print(line)
