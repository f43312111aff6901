"""Benchmark sets in BEIR layout: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from gfm.index.documents import CORPUS_FILE
from gfm.text.reading import is_identifier, one_line, read_lines, read_rows
from gfm.types import GfmError, Query

QUERIES_FILE = "queries.jsonl"
_COLUMNS = "query-id<TAB>corpus-id<TAB>score"


@dataclass(frozen=True, slots=True)
class Dataset:
    """One set, one split.

    Attributes:
        name: The folder's name.
        corpus: Path of its corpus.jsonl.
        queries: Every query of queries.jsonl, also those that the split does not judge.
        qrels: {query id: {document id: score > 0}} of the split; empty where the set has no qrels.
        repeated: Pairs of the qrels that stood there before; each counts once.
    """

    name: str
    corpus: Path
    queries: list[Query]
    qrels: dict[str, dict[str, int]]
    repeated: int = 0

    def judged(self) -> list[Query]:
        """The queries with at least one relevant document in this split."""
        return [query for query in self.queries if self.qrels.get(query.id)]


def load_dataset(folder: str | Path, split: str | None = None) -> Dataset:
    """Read a set.

    Args:
        folder: Holds corpus.jsonl and queries.jsonl, and qrels/*.tsv where something is to be measured.
        split: Name of the qrels file without its suffix; may be left out where there is at most one.

    Raises:
        GfmError: A file is missing or broken, several splits stand there and none is named, or the qrels judge a
            query that queries.jsonl lacks.
    """
    folder = Path(folder)
    corpus = folder / CORPUS_FILE
    if not corpus.is_file():
        raise GfmError(
            f"{corpus}: does not exist; expected a folder with {CORPUS_FILE}, {QUERIES_FILE} and qrels/*.tsv"
        )
    queries = read_queries(folder / QUERIES_FILE)
    path = _qrels_file(folder / "qrels", split)
    qrels, repeated = _read_qrels(path) if path else ({}, 0)
    unknown = sorted(qrels.keys() - {query.id for query in queries})
    if unknown:
        raise GfmError(
            f"{path}: judges {len(unknown)} queries that {folder / QUERIES_FILE} lacks, the first {unknown[0]!r}; "
            "expected the two files of one set"
        )
    return Dataset(folder.resolve().name, corpus, queries, qrels, repeated)


def read_queries(path: str | Path) -> list[Query]:
    """Questions, in the order of the lines.

    Args:
        path: JSONL, one object a line with ``text`` (or ``question``) and, if it likes, ``_id`` (or ``id``) and free
            fields; a line without an id gets ``q`` and its line number.

    Raises:
        GfmError: A line is not such an object (by file and line), two share an id, or the file holds none.
    """
    path = Path(path)
    queries: list[Query] = []
    line_of: dict[str, int] = {}
    for row in read_rows(path):
        identifier = row.identifier("_id", "id") or f"q{row.line}"
        first = line_of.setdefault(identifier, row.line)
        if first != row.line:
            row.fail(f"the query id {identifier!r} stands on line {first} too; rename or delete one of them")
        text = one_line(row.required("text", "question"))
        queries.append(Query(identifier, text, row.metadata(("_id", "id"), ("text", "question"))))
    if not queries:
        raise GfmError(f'{path}: expected at least one line such as {{"text": "…?"}}, found none')
    return queries


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """{query id: {document id: score}}, scores above 0 only; a query with none keeps an empty entry.

    Args:
        path: Tab-separated with a header line: query id, document id, whole-number score. A pair that stands there
            twice counts once, with its higher score.

    Raises:
        GfmError: A line is not of that form (by file and line), or the file has no judgement.
    """
    return _read_qrels(Path(path))[0]


def _read_qrels(path: Path) -> tuple[dict[str, dict[str, int]], int]:
    """The qrels of a file, and how many of its lines name a pair again."""
    lines = read_lines(path)
    _check_header(path, next(lines, None))
    qrels: dict[str, dict[str, int]] = {}
    seen: set[tuple[str, str]] = set()
    repeated = 0
    for number, line in lines:
        query, document, score = _judgement(f"{path}:{number}", line)
        repeated += (query, document) in seen
        seen.add((query, document))
        relevant = qrels.setdefault(query, {})
        if score > 0:
            relevant[document] = max(score, relevant.get(document, 0))
    if not qrels:
        raise GfmError(f"{path}: expected lines {_COLUMNS} below the header, found none")
    return qrels, repeated


def _check_header(path: Path, first: tuple[int, str] | None) -> None:
    """A judgement in place of the header would be lost without a word."""
    if first is None:
        raise GfmError(f"{path}: is empty; expected a header line {_COLUMNS} and judgements below it")
    number, line = first
    if _whole_number(line.split("\t")[-1]) is not None:
        raise GfmError(
            f"{path}:{number}: expected the header line {_COLUMNS}, found the judgement {line!r}; add a header"
        )


def _judgement(where: str, line: str) -> tuple[str, str, int]:
    cells = line.split("\t")
    if len(cells) != 3:
        raise GfmError(f"{where}: expected 3 columns {_COLUMNS}, found {len(cells)}: {line!r}")
    for cell in cells[:2]:
        if not is_identifier(cell):
            raise GfmError(f"{where}: expected an id that is not blank and has no control characters, found {cell!r}")
    score = _whole_number(cells[2])
    if score is None:
        raise GfmError(f"{where}: expected a whole number as score, found {cells[2]!r}")
    return cells[0], cells[1], score


def _whole_number(cell: str) -> int | None:
    """The cell as a whole number, also where a spreadsheet wrote 1.0; None where it is none."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _qrels_file(folder: Path, split: str | None) -> Path | None:
    """The qrels of the split; None where there are none and none is asked for."""
    files = {path.stem: path for path in sorted(folder.glob("*.tsv"))}
    names = ", ".join(files) or "none"
    if split is not None:
        if split not in files:
            raise GfmError(
                f"{folder}: expected {split}.tsv, found these splits: {names}; name one of them with --split"
            )
        return files[split]
    if len(files) > 1:
        raise GfmError(f"{folder}: holds several splits: {names}; name one of them with --split")
    return next(iter(files.values()), None)
