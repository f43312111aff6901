"""The benchmark: all retrievers over one index, one number of passages and one context builder, set by set."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gfm import __version__
from gfm.eval import figures
from gfm.eval.beir import Dataset, load_dataset
from gfm.eval.compare import differences, read_report
from gfm.eval.measure import Job, Measured, measure, measure_apart
from gfm.eval.metrics import DEFINITIONS
from gfm.eval.run import EncodedQueries, check_writable, write_json
from gfm.eval.settings import BenchSettings, Entry, file_name
from gfm.eval.tables import markdown
from gfm.extract import make_extractors
from gfm.index.builder import split_all
from gfm.index.documents import read_documents
from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.index.store import CURRENT, file_hash
from gfm.retrieve.features import question_parts
from gfm.types import GfmError, Query

REPORT, TABLES, RUNS, PICTURES = "bench.json", "bench.md", "runs", "pictures"
_DEPTH = 20  # documents of a run, at least
_ALONE = 20  # questions that are also encoded one by one, for the time of that
_PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "faiss-cpu", "bm25s", "ir-measures", "sentence-transformers")


@dataclass(frozen=True, slots=True)
class Bench:
    """A finished comparison.

    Attributes:
        report: Everything in it, as bench.json holds it.
        runs: By set and retriever: {query id: {document id: score}}.
        repeated: What an earlier report in the same folder says to it, a line each; empty where there was none.
    """

    report: dict[str, Any]
    runs: dict[str, dict[str, dict[str, dict[str, float]]]]
    repeated: list[str]


def bench(settings: BenchSettings, say: Callable[[str], None] = lambda line: None, command: str = "") -> Bench:
    """Compare retrievers, and write bench.json, bench.md, the runs and the pictures to ``settings.out``.

    Args:
        settings: What is compared.
        say: Told what happens next.
        command: How the comparison was asked for; stands in the report.

    Raises:
        GfmError: Bad data or settings, a package that is missing, or a folder that cannot be written.
    """
    out = Path(settings.out)
    check_writable(out / REPORT)
    before = read_report(out / REPORT)
    if settings.pictures:
        from gfm.eval.pictures import check_installed

        check_installed()
    datasets = {_set_name(folder): load_dataset(folder, settings.split) for folder in settings.data}
    if len(datasets) < len(settings.data):
        raise GfmError(f"bench: two sets are called the same: {', '.join(map(_set_name, settings.data))}; rename one")
    report: dict[str, Any] = {**_origin(settings, command), "sets": {}}
    runs: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for name, dataset in datasets.items():
        work = Path(settings.work)
        index = open_or_build(dataset, work / "index" / name, work / "cache.sqlite", settings, say)
        report["sets"][name], runs[name] = bench_set(dataset, index, settings, partial(_say_of, say, name))
    repeated = differences(before, report) if before else []
    _write(out, settings, report, runs)
    return Bench(report, runs, repeated)


def bench_set(
    dataset: Dataset, index: GraphIndex, settings: BenchSettings, say: Callable[[str], None] = lambda line: None
) -> tuple[dict[str, Any], dict[str, dict[str, dict[str, float]]]]:
    """The report of one set, and the runs by retriever.

    Raises:
        GfmError: No question has a relevant document, or a retriever fails.
    """
    asked = questions(dataset, settings.limit, settings.seed)
    gold = {q.id: frozenset(dataset.qrels[q.id]) for q in asked}
    say(f"encoding {len(asked)} questions")
    encoded = EncodedQueries(index.encoder, [q.text for q in asked], with_parts=True)
    measured: dict[str, Measured] = {}
    for entry in settings.retrievers:
        say(f"asking {entry.label}")
        job = _job(entry, index, encoded, asked, gold, settings.max_tokens)
        try:
            measured[entry.label] = measure_apart(job) if settings.apart else measure(job)
        except GfmError as error:
            raise GfmError(f"{entry.label}: {error}") from error
    found = {label: figures.values(asked, gold, m) for label, m in measured.items()}
    groups = figures.group(asked, gold)
    baseline = figures.best_rule_based(found, measured)
    report = {
        "data": _data(dataset, index, asked, gold),
        "groups": {kind: {name: len(at) for name, at in row.items()} for kind, row in groups.items()},
        "encode_ms": {
            "alone": _encode_alone(index, [[q.text] for q in asked]),
            "with_parts": _encode_alone(index, [[q.text, *question_parts(q.text)] for q in asked]),
            "batch": 1000 * encoded.seconds,
        },
        "baseline": baseline,
        "retrievers": {
            entry.label: _retriever(entry, measured, found, groups, baseline, settings.seed)
            for entry in settings.retrievers
        },
    }
    return report, {label: m.run for label, m in measured.items()}


def questions(dataset: Dataset, limit: int | None, seed: int) -> list[Query]:
    """The judged questions in the order of the file, or ``limit`` of them: the first of a seeded permutation.

    Raises:
        GfmError: No question has a relevant document.
    """
    judged = dataset.judged()
    if not judged:
        raise GfmError(f"{dataset.corpus.parent}: expected questions with relevant documents (qrels), found none")
    if limit is None or limit >= len(judged):
        return judged
    ordered = sorted(judged, key=lambda q: q.id)
    chosen = {ordered[i].id for i in np.random.default_rng(seed).permutation(len(ordered))[:limit]}
    return [q for q in judged if q.id in chosen]


def open_or_build(
    dataset: Dataset, path: Path, cache: Path, settings: BenchSettings, say: Callable[[str], None]
) -> GraphIndex:
    """The index of a set's corpus, built where it is missing or of another corpus, encoder or extractor.

    Raises:
        GfmError: Bad documents, or a folder that holds something else.
    """
    documents = read_documents(dataset.corpus).documents
    if (path / CURRENT).is_file():
        index = GraphIndex.open(path)
        extractors = [e.settings for e in make_extractors(settings.extractor, None, {d.id for d in documents})]
        same = (index.fingerprint.name, index.manifest["extractors"]) == (settings.encoder, extractors)
        if same:
            parts = split_all(documents, index.encoder, BuildSettings(**index.manifest["settings"]))
            same = parts == [index.passage(i) for i in range(index.graph.num_passages)]
        if same:
            return index
        say(f"{path}: is of another corpus, encoder or extractor, and is built again")
    say(f"building the index {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return GraphIndex.build(dataset.corpus, path, encoder=settings.encoder, extractor=settings.extractor, cache=cache)


def _say_of(say: Callable[[str], None], name: str, line: str) -> None:
    say(f"{name}: {line}")


def _set_name(folder: str) -> str:
    """The last two parts of the folder's path: sets often lie in folders such as dev/2wiki and test/2wiki."""
    path = Path(folder).absolute()
    return "-".join([part for part in path.parts if part != path.anchor][-2:])


def _job(
    entry: Entry,
    index: GraphIndex,
    encoded: EncodedQueries,
    asked: Sequence[Query],
    gold: Mapping[str, frozenset[str]],
    max_tokens: int,
) -> Job:
    # Filtered ranks look past the other gold documents, however many there are.
    depth = max(_DEPTH, max(figures.FILTERED_AT) + max(map(len, gold.values())) - 1)
    return Job(
        index=index.path.absolute(),
        generation=index.generation,
        encoded=encoded,
        label=entry.label,
        retriever=entry.settings,
        queries=tuple(asked),
        gold=gold,
        depth=depth,
        max_tokens=max_tokens,
    )


def _retriever(
    entry: Entry,
    measured: Mapping[str, Measured],
    found: Mapping[str, figures.Values],
    groups: figures.Groups,
    baseline: str | None,
    seed: int,
) -> dict[str, Any]:
    own, mine = measured[entry.label], found[entry.label]
    compared = baseline is not None and baseline != entry.label
    return {
        "settings": entry.settings,
        "weights": own.weights,
        "quality": figures.summary(mine, None, seed),
        "by": {
            kind: {name: figures.summary(mine, at, seed) for name, at in row.items()} for kind, row in groups.items()
        },
        "p": figures.against(mine, found[baseline], seed) if compared and baseline else None,
        "trace": {name: total / len(own.tokens) for name, total in sorted(own.trace.items())},
        "context_tokens": float(np.mean(own.tokens)),
        "counts": {
            "repeated_passages": own.repeated,
            "fallbacks": own.fallbacks,
            "without_result": sum(not row for row in own.run.values()),
        },
        "time": figures.times(own),
        "peak_memory_mb": own.peak_bytes / 1e6 if own.peak_bytes is not None else None,
    }


def _data(
    dataset: Dataset, index: GraphIndex, asked: Sequence[Query], gold: Mapping[str, frozenset[str]]
) -> dict[str, Any]:
    """Counts and hashes of what was asked, and of what."""
    known = set(index.document_ids)
    rows = [[q.id, q.text, q.metadata, sorted(gold[q.id])] for q in asked]
    text = json.dumps(rows, ensure_ascii=False, sort_keys=True, default=str)
    return {
        "questions": len(asked),
        "judged": len(dataset.judged()),
        "without_gold": len(dataset.queries) - len(dataset.judged()),
        "hops_told": sum(figures.hops(q, gold[q.id])[1] for q in asked),
        "gold": sum(map(len, gold.values())),
        "gold_outside_corpus": sum(len(g - known) for g in gold.values()),
        "repeated_gold": dataset.repeated,
        "corpus_sha256": file_hash(dataset.corpus),
        "questions_sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "index": {
            "counts": index.manifest["counts"],
            "encoder": index.manifest["encoder"]["name"],
            "encoder_revision": index.fingerprint.revision,
            "extractors": index.manifest["extractors"],
        },
    }


def _encode_alone(index: GraphIndex, asked: Sequence[list[str]]) -> float:
    """Median milliseconds to encode the texts of one question by itself."""
    seconds = []
    for texts in asked[:_ALONE]:
        start = time.perf_counter()
        index.encode(texts)
        seconds.append(time.perf_counter() - start)
    return figures.spread(seconds)["median"]


def _origin(settings: BenchSettings, command: str) -> dict[str, Any]:
    """When, how, with what and on what."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "settings": asdict(settings),
        "definitions": DEFINITIONS,
        "versions": {
            "gfm": __version__,
            "python": platform.python_version(),
            **{package: importlib.metadata.version(package) for package in _PACKAGES},
        },
        "machine": {"cores": os.cpu_count(), "threads": torch.get_num_threads(), "processor": platform.machine()},
    }


def _write(
    out: Path, settings: BenchSettings, report: dict[str, Any], runs: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> None:
    for name, by_label in runs.items():
        for label, run in by_label.items():
            write_json(out / RUNS / name / f"{file_name(label)}.json", run)
    pictures: list[str] = []
    if settings.pictures:
        from gfm.eval.pictures import draw

        pictures = [path.relative_to(out).as_posix() for path in draw(report, out / PICTURES)]
    (out / TABLES).write_text(markdown(report, pictures), encoding="utf-8", newline="\n")
    write_json(out / REPORT, report)
