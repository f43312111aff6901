"""Entity answers over a bare graph of facts: Hits@1 and MRR by hops, from the question alone."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from gfm.eval.beir import read_queries
from gfm.eval.figures import summary
from gfm.eval.settings import Entry
from gfm.eval.tables import Table, best_cells, percent
from gfm.index.index import GraphIndex
from gfm.progress import track
from gfm.retrieve.answers import EntityRanker, answer_entities
from gfm.retrievers import load_retriever
from gfm.text.normalise import name_key
from gfm.types import GfmError, Query

METRICS = ("Hits@1", "MRR")
DEPTH = 100  # entities of a ranking
_FILES = "queries*.jsonl"
# Candidates for a bare graph: from the entities that the question names, along whole ways, as far as questions go.
WALK = {"named": 2, "seeds": 1, "facts": 0, "max_start": 2, "hops": 3, "walk": 1, "beam": 192, "max_entities": 384}
RETRIEVERS = (
    Entry("gfm", {"name": "gfm"}),
    Entry("gfm walk", {"name": "gfm", **WALK}),
    Entry("ppr", {"name": "ppr"}),
    Entry("ppr_entity", {"name": "ppr_entity"}),
)


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """Figures of retrievers over the same questions.

    Attributes:
        questions: How many of each number of hops; of questions that do not tell it, under 0.
        answers: How many answers those questions have.
        unknown: Those of them that no entity of the index is: always missed.
        named: Those that the question itself names, and that so are ruled out: always missed.
        retrievers: By label and hops: ``mean``, ``low`` and ``high`` of each of `METRICS`; ``ms``, the median time of a
            question with its encoding.
    """

    questions: dict[int, int]
    answers: int
    unknown: int
    named: int
    retrievers: dict[str, dict[int, dict[str, Any]]]


def read_answer_questions(path: str | Path) -> list[Query]:
    """Questions with names of entities as answers.

    Args:
        path: JSONL, see `read_queries`, each row with ``answers`` (a list of names); or a folder, of which all files
            ``queries*.jsonl`` are read in the order of their names.

    Raises:
        GfmError: No such file, a row without answers, or two questions of one id.
    """
    path = Path(path)
    files = sorted(path.glob(_FILES)) if path.is_dir() else [path]
    if not files:
        raise GfmError(f"{path}: expected files {_FILES} with questions, found none; name the file itself")
    out: dict[str, Query] = {}
    for file in files:
        for query in read_queries(file):
            answers = query.metadata.get("answers")
            if not isinstance(answers, list) or not answers or not all(isinstance(a, str) for a in answers):
                raise GfmError(f'{file}: question {query.id!r}: expected "answers": ["NAME", …], found {answers!r}')
            if query.id in out:
                raise GfmError(f"{file}: the question id {query.id!r} stands in another file too; rename one of them")
            out[query.id] = query
    return list(out.values())


def held_out(query: Query) -> bool:
    """Whether a question is kept from training: half of all are, by the first bit of their id's SHA-256.

    The rule needs no file of its own, and adding questions moves no other one.
    """
    return hashlib.sha256(query.id.encode()).digest()[0] >= 128


def draw(queries: Sequence[Query], limit: int | None, seed: int) -> dict[int, list[Query]]:
    """Questions by hops (0 where they do not tell), of each at most ``limit``: the first of a seeded permutation."""
    groups: dict[int, list[Query]] = {}
    for query in sorted(queries, key=lambda q: q.id):
        hops = query.metadata.get("hops")
        groups.setdefault(hops if isinstance(hops, int) else 0, []).append(query)
    chosen = {h: np.random.default_rng(seed).permutation(len(groups[h]))[:limit] for h in sorted(groups)}
    return {h: [groups[h][i] for i in sorted(numbers)] for h, numbers in chosen.items()}


def bench_answers(
    index: GraphIndex,
    groups: Mapping[int, Sequence[Query]],
    entries: Sequence[Entry] = RETRIEVERS,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> AnswerReport:
    """Ask every retriever every question; all are held to the rule of `answer_entities`.

    Args:
        index: Where to search.
        groups: From `draw`.
        entries: Retrievers that rank entities.
        seed: Of the intervals.
        say: Told what happens next.

    Raises:
        GfmError: A retriever that ranks no entities, or that fails.
    """
    retrievers: dict[str, dict[int, dict[str, Any]]] = {}
    for entry in entries:
        say(f"asking {entry.label}")
        rest = dict(entry.settings)
        retriever = load_retriever(str(rest.pop("name")), index, **rest)
        if not hasattr(retriever, "rank_entities"):
            raise GfmError(f"{entry.label}: ranks no entities; expected gfm, gfm_entity, ppr or ppr_entity")
        ranker = cast(EntityRanker, retriever)
        retrievers[entry.label] = {
            hops: _figures([_ask(ranker, q) for q in track(queries, len(queries), entry.label)], seed)
            for hops, queries in groups.items()
        }
    asked = [query for queries in groups.values() for query in queries]
    gold = [(query, index.entity_number(key)) for query in asked for key in _keys(query)]
    named = {q.id: set(index.lexical.named(index.lexical.token_ids(q.text)).tolist()) for q in asked}
    return AnswerReport(
        questions={hops: len(queries) for hops, queries in groups.items()},
        answers=len(gold),
        unknown=sum(number is None for _, number in gold),
        named=sum(number in named[query.id] for query, number in gold),
        retrievers=retrievers,
    )


def table(report: AnswerReport) -> Table:
    """Hits@1 and MRR in percent, a column for each number of hops."""
    hops = list(report.questions)
    header = ["%", *(f"{metric} ({h})" if h else metric for h in hops for metric in METRICS)]
    rows = [
        [label, *(percent(of[h][metric]["mean"]) for h in hops for metric in METRICS)]
        for label, of in report.retrievers.items()
    ]
    asked = ", ".join(f"{n} of {h} hop{'s' * (h > 1)}" if h else str(n) for h, n in report.questions.items())
    notes = [
        f"Questions, by the hops in brackets: {asked}.",
        "From the question alone; an entity that it names is never an answer, for all retrievers alike.",
        f"Of {report.answers} answers {report.unknown} are no entity of the index and {report.named} stand in their "
        "question: always missed.",
    ]
    return Table("Answers", header, rows, best_cells(rows, range(1, len(header))), notes)


def _keys(query: Query) -> list[str]:
    return sorted({name_key(name) for name in query.metadata["answers"]})


def _ask(ranker: EntityRanker, query: Query) -> tuple[float, float, float]:
    """Hits@1, reciprocal rank of the first answer within `DEPTH`, and seconds."""
    start = time.perf_counter()
    hits = answer_entities(ranker, query, DEPTH)
    seconds = time.perf_counter() - start
    gold = set(_keys(query))
    rank = next((hit.rank for hit in hits if hit.item.key in gold), None)
    return float(rank == 1), 1.0 / rank if rank else 0.0, seconds


def _figures(rows: Sequence[tuple[float, float, float]], seed: int) -> dict[str, Any]:
    *values, seconds = np.array(rows).T  # (n,) each
    return {**summary(dict(zip(METRICS, values, strict=True)), None, seed), "ms": float(1000 * np.median(seconds))}
