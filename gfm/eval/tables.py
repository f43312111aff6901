"""A report as tables: one list of them, for the terminal (80 columns, any encoding) and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from gfm.eval.figures import CEILING, CHOSEN_BY, CONTEXT
from gfm.eval.metrics import FILTERED, METRICS
from gfm.eval.statistics import LEVEL, PERMUTATIONS, RESAMPLES

_ACROSS = 8  # retrievers side by side that 80 columns hold
_GROUP_METRICS = ("R@2", "R@5")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of one table.

    Attributes:
        title: Above it.
        header: One text a column; spaces may become line breaks.
        rows: Of texts; the first column is a label, the others are numbers.
        best: (row, column) of cells to stress.
        notes: Sentences below it.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def tables(report: Mapping[str, Any]) -> Iterator[Table]:
    """All tables of a report: over all sets, then set by set."""
    yield summary(report)
    for name, of in report["sets"].items():
        yield _quality(name, of)
        yield _filtered(name, of)
        yield _costs(name, of)
        for kind, counts in of["groups"].items():
            if len(counts) > 1:
                yield from group_tables(name, of, kind)


def summary(report: Mapping[str, Any]) -> Table:
    """R@2 / R@5 of every retriever on every set."""
    sets: Mapping[str, Any] = report["sets"]
    labels = list(next(iter(sets.values()))["retrievers"])
    header = ["R@2 / R@5, %", *(f"{name} ({of['data']['questions']})" for name, of in sets.items())]
    rows, pairs = [], {}
    for row, label in enumerate(labels):
        cells = [label]
        for column, of in enumerate(sets.values(), start=1):
            quality = of["retrievers"][label]["quality"]
            pairs[row, column] = quality["R@5"]["mean"]
            cells.append(f"{percent(quality['R@2']['mean'])} / {percent(quality['R@5']['mean'])}")
        rows.append(cells)
    best = {
        (r, c) for (r, c), value in pairs.items() if value == max(v for (_, other), v in pairs.items() if other == c)
    }
    return Table("All sets", header, rows, best, ["In brackets: questions."])


def _quality(name: str, of: Mapping[str, Any]) -> Table:
    first, rest = METRICS[:2], METRICS[2:]
    spaced = [metric.replace("@10", " @10") if len(metric) > 5 else metric for metric in rest]
    header = ["%", *first, f"{LEVEL:.0%} of R@5", *spaced, "p"]
    rows = []
    for label, row in of["retrievers"].items():
        quality = row["quality"]
        cells = [[percent(quality[metric]["mean"]) for metric in part] for part in (first, rest)]
        rows.append([label, *cells[0], _interval(quality[CHOSEN_BY]), *cells[1], _p(row["p"])])
    columns = [c for c in range(1, len(header) - 1) if c != len(first) + 1]
    return Table(f"{name}: quality", header, rows, best_cells(rows, columns), _quality_notes(of))


def _filtered(name: str, of: Mapping[str, Any]) -> Table:
    pairs = [pair for metric in FILTERED for pair in (metric.replace("filtered_recall", "R"), metric)]
    rows = [
        [label, *(percent(row["quality"][metric]["mean"]) for metric in pairs)]
        for label, row in of["retrievers"].items()
    ]
    return Table(f"{name}: strict recall, and filtered recall beside it", ["%", *pairs], rows)


def _quality_notes(of: Mapping[str, Any]) -> list[str]:
    data, out = of["data"], []
    if of["baseline"] is not None:
        out.append(f"p: of the difference in {CHOSEN_BY} to {of['baseline']}, the best rule-based retriever.")
    else:
        out.append("p: no rule-based retriever to compare with.")
    out.append(
        f"{data['questions']} of {data['judged']} judged questions; {data['without_gold']} more have no gold document "
        "and are left out."
    )
    if data["gold_outside_corpus"]:
        out.append(
            f"{data['gold_outside_corpus']} of {data['gold']} gold documents are not in the corpus: always missed."
        )
    if data["repeated_gold"]:
        out.append(f"{data['repeated_gold']} lines of the qrels name a pair again; it counts once.")
    for label, row in of["retrievers"].items():
        counts = row["counts"]
        if counts["repeated_passages"]:
            out.append(f"{label}: {counts['repeated_passages']} passages were returned twice; they count once.")
        if counts["without_result"]:
            out.append(f"{label}: {counts['without_result']} questions without any result; they score 0.")
        out += [f"{label}: {n} questions were answered by {other}." for other, n in counts["fallbacks"].items()]
    return out


def _costs(name: str, of: Mapping[str, Any]) -> Table:
    header = ["", "ms", "ms p95", "q/s", "peak MB", "context tokens", "context recall", "ceiling"]
    rows = []
    for label, row in of["retrievers"].items():
        quality, time = row["quality"], row["time"]
        ceiling = quality.get(CEILING)
        memory = row["peak_memory_mb"]
        rows.append(
            [
                label,
                f"{time['retrieval_ms']['median']:.1f}",
                f"{time['retrieval_ms']['p95']:.1f}",
                f"{time['queries_per_second']:.0f}",
                "-" if memory is None else f"{memory:.0f}",
                f"{row['context_tokens']:.0f}",
                percent(quality[CONTEXT]["mean"]),
                "-" if ceiling is None else percent(ceiling["mean"]),
            ]
        )
    encode = of["encode_ms"]
    notes = [
        "q/s: questions a second, one after another, encoded in a batch.",
        f"ms: retrieval once the question is encoded, which takes {encode['alone']:.1f} ms by itself "
        f"({encode['with_parts']:.1f} ms with its parts, as the network reads it), {encode['batch']:.1f} ms in a "
        "batch. Median milliseconds by stage (95th percentile):",
        *(f"{label}: {_stages(row['time'])}" for label, row in of["retrievers"].items()),
    ]
    traced = {label: row["trace"] for label, row in of["retrievers"].items() if row["trace"]}
    if traced:
        notes.append("Means of the numbers in the results' traces:")
    notes += [f"{label}: {', '.join(f'{n} {v:.1f}' for n, v in row.items())}" for label, row in traced.items()]
    return Table(f"{name}: times, memory, context, candidates", header, rows, notes=notes)


def _stages(time: Mapping[str, Any]) -> str:
    stages = {**{s: v for s, v in time["stages_ms"].items() if s != "encode"}, "(context)": time["context_ms"]}
    return ", ".join(f"{stage} {v['median']:.1f} ({v['p95']:.1f})" for stage, v in stages.items())


def group_tables(name: str, of: Mapping[str, Any], kind: str) -> Iterator[Table]:
    """R@2 and R@5 by one kind of group, with as many retrievers side by side as 80 columns hold."""
    labels = list(of["retrievers"])
    told = of["data"]["hops_told"]
    source = {
        0: "Hops of a question: its number of gold documents, for its metadata tell none.",
        of["data"]["questions"]: "Hops of a question: as its metadata tell.",
    }.get(told, f"Hops of a question: as its metadata tell ({told} questions), else its number of gold documents.")
    for start in range(0, len(labels), _ACROSS):
        part = labels[start : start + _ACROSS]
        rows = [
            [f"{metric} {group} ({count})"]
            + [percent(of["retrievers"][label]["by"][kind][group][metric]["mean"]) for label in part]
            for metric in _GROUP_METRICS
            for group, count in of["groups"][kind].items()
        ]
        best = {(r, c) for r, row in enumerate(rows) for c in range(1, len(row)) if _is_best(row[c], row[1:])}
        header = ["%", *(label.replace("_", " ") for label in part)]
        yield Table(f"{name}: by {kind}", header, rows, best, [source] if kind == "hops" else [])


def best_cells(rows: Sequence[Sequence[str]], columns: Iterable[int]) -> set[tuple[int, int]]:
    """The highest shown figures of some columns; several where they read the same, none in a table of one row."""
    if len(rows) < 2:
        return set()
    return {(r, c) for c in columns for r, row in enumerate(rows) if _is_best(row[c], [other[c] for other in rows])}


def _is_best(cell: str, among: Sequence[str]) -> bool:
    return len(among) > 1 and float(cell) == max(map(float, among))


def percent(value: float) -> str:
    """A share in percent with one decimal."""
    return f"{100 * value:.1f}"


def _interval(row: Mapping[str, float | None]) -> str:
    low, high = row["low"], row["high"]
    return "-" if low is None or high is None else f"{percent(low)}-{percent(high)}"


def _p(values: Mapping[str, float] | None) -> str:
    if values is None:
        return "-"
    return "<0.001" if values[CHOSEN_BY] < 0.001 else f"{values[CHOSEN_BY]:.3f}"


def methods(report: Mapping[str, Any]) -> list[str]:
    """How the figures are made, a sentence each; the definitions of the metrics among them."""
    settings = report["settings"]
    apart = settings["apart"]
    memory = (
        "of a process of its own that holds the index (mapped files included) and the retriever, without the encoder"
        if apart
        else "not measured: all retrievers ran in one process"
    )
    return [
        *(f"{name}: {text}." for name, text in report["definitions"].items()),
        f"Interval: {LEVEL:.0%}, percentile bootstrap over questions, {RESAMPLES:,} resamples.",
        f"p: two-sided paired randomisation test over questions, {PERMUTATIONS:,} sign changes, not corrected for the "
        "number of tests; the best rule-based retriever is the one of highest R@5 among those without a network.",
        f"Every retriever reads the same index and returns as many passages; contexts hold {settings['max_tokens']:,} "
        "tokens at most (estimated). context recall: share of gold documents with a passage in the context. ceiling: "
        "share of gold documents among the candidates.",
        f"Peak memory: {memory}.",
        f"Seed {settings['seed']}; {report['machine']['threads']} threads.",
    ]


def as_rich(table: Table) -> RichTable:
    """The cells, for a terminal."""
    out = RichTable(box=None, pad_edge=False, collapse_padding=True)
    out.add_column(table.header[0], no_wrap=True, overflow="fold")
    for text in table.header[1:]:
        out.add_column(text, justify="right", overflow="fold")
    for r, row in enumerate(table.rows):
        out.add_row(*(Text(cell, "bold" if (r, c) in table.best else "") for c, cell in enumerate(row)))
    return out


def as_markdown(table: Table) -> str:
    """A heading, the table, its notes."""
    lines = [f"## {table.title}", "", f"| {' | '.join(table.header)} |", "|---|" + "--:|" * (len(table.header) - 1)]
    for r, row in enumerate(table.rows):
        cells = (f"**{cell}**" if (r, c) in table.best else cell.replace("|", "\\|") for c, cell in enumerate(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in table.notes)]).rstrip()


def markdown(report: Mapping[str, Any], pictures: Sequence[str] = ()) -> str:
    """The whole report: how it was made, all tables, the pictures by their paths."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    parts = [
        "# Comparison of retrievers",
        f"```bash\n{report['command'] or 'from Python'}\n```",
        f"Made {report['made']} with {versions}.",
        *map(as_markdown, tables(report)),
        *(["\n".join(["## Pictures", "", *(f"![{path}]({path})" for path in pictures)])] if pictures else []),
        "\n".join(["## How", "", *(f"- {line}" for line in methods(report))]),
    ]
    return "\n\n".join(parts) + "\n"
