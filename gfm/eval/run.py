"""Questions to results, and results to files: what ``infer.py`` calls."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gfm.eval.beir import read_queries
from gfm.index.filters import read_filters
from gfm.index.index import GraphIndex
from gfm.index.part import where
from gfm.progress import track
from gfm.report import as_json
from gfm.retrieve.base import Retriever, as_query, document_scores
from gfm.retrievers import TRAINED, load_retriever
from gfm.text.encoder import Encoder, load_encoder
from gfm.types import GfmError, Query, Retrieval


@dataclass(frozen=True, slots=True)
class Inference:
    """What to ask of which index, and where the answers go.

    Attributes:
        index: Folder of the index.
        retriever: ``name``, and the settings of that retriever.
        question: One question, or
        queries: a queries.jsonl.
        top_k: Passages of a result, and documents of a run.
        checkpoint: Folder of a network for a learnt retriever; the shipped one unless given.
        run_out: Gets {query id: {document id: score}}.
        json_out: Gets {"results": [everything that a result holds]}.
        batch_encode: Encode the questions of ``queries`` at once.
        filters: JSON; only documents that fit are searched, see `gfm.index.part.where`.
    """

    index: str
    retriever: Mapping[str, Any]
    question: str | None = None
    queries: str | None = None
    top_k: int = 10
    checkpoint: str | None = None
    run_out: str | None = None
    json_out: str | None = None
    batch_encode: bool = True
    filters: str | None = None


class EncodedQueries:
    """An encoder that knows the vectors of a set of questions, encoded in one batch; anything else it encodes anew.

    A copy in another process holds the vectors alone, and loads the encoder by its name if it is ever asked for more.

    Args:
        encoder: The encoder beneath.
        questions: Their texts.
        with_parts: Whether also their parts are known, which the network reads.

    Attributes:
        fingerprint: That of the encoder beneath.
        max_tokens: So.
        seconds: What a question took in its batch.
        spent: What all that was asked for so far took in its batch.
    """

    def __init__(self, encoder: Encoder, questions: Sequence[str], with_parts: bool = False):
        self._encoder: Encoder | None = encoder
        self.fingerprint, self.max_tokens = encoder.fingerprint, encoder.max_tokens
        self._known: dict[str, np.ndarray] = {}
        self._seconds: dict[str, float] = {}
        self.seconds = self._learn(questions)
        if with_parts:
            from gfm.retrieve.features import question_parts

            self._learn([part for text in questions for part in question_parts(text)])
        self.spent = 0.0

    def _learn(self, texts: Sequence[str]) -> float:
        """Encode a batch; seconds a text."""
        assert self._encoder is not None
        start = time.perf_counter()
        vectors = self._encoder.encode(texts, is_query=True)
        seconds = (time.perf_counter() - start) / max(len(texts), 1)
        for text, vector in zip(texts, vectors, strict=True):
            self._known.setdefault(text, vector)
            self._seconds.setdefault(text, seconds)
        return seconds

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encoder": None}

    def _beneath(self) -> Encoder:
        if self._encoder is None:
            self._encoder = load_encoder(self.fingerprint.name)
        return self._encoder

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        """Unit vectors, float32, (len(texts), dim)."""
        if is_query and texts and all(text in self._known for text in texts):
            self.spent += sum(self._seconds[text] for text in texts)
            return np.stack([self._known[text] for text in texts])
        return self._beneath().encode(texts, is_query=is_query, progress=progress)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text``."""
        return self._beneath().count_tokens(text)


def infer(job: Inference) -> Iterator[Retrieval]:
    """Answer the question or all queries; the files are written when the last result has been taken.

    Raises:
        GfmError: Bad settings, input or index, or a file that cannot be written.
    """
    queries = _queries(job)
    outputs = [Path(path) for path in (job.run_out, job.json_out) if path]
    for path in outputs:
        check_writable(path)
    index = GraphIndex.open(Path(job.index).absolute())
    batch = None
    if job.queries is not None and job.batch_encode and job.retriever.get("name") != "bm25":
        with_parts = job.retriever.get("name") in (*TRAINED, "fusion")
        batch = EncodedQueries(index.encoder, [query.text for query in queries], with_parts)
        index = GraphIndex.open(index.path, batch)
    index = where(index, read_filters(job.filters)) if job.filters else index
    retriever = open_retriever(index, job.retriever, job.checkpoint)
    depth = passages_for(index, job.top_k) if job.run_out else job.top_k
    run: dict[str, dict[str, float]] = {}
    rows: list[dict[str, Any]] = []
    for query in track(queries, len(queries), "questions" if job.queries else ""):
        before = batch.spent if batch else 0.0
        found = _with_encoding(retriever.retrieve(query, depth), batch.spent - before if batch else None)
        run[query.id] = best_documents(found, job.top_k)
        shown = _first_passages(found, job.top_k)
        rows.append(as_json(shown)) if job.json_out else None
        yield shown
    if job.run_out:
        write_json(Path(job.run_out), run)
    if job.json_out:
        write_json(Path(job.json_out), {"results": rows})


def _queries(job: Inference) -> list[Query]:
    if not job.index:
        raise GfmError("index: expected the folder of an index, found none; name it: index=INDEX")
    if (job.question is None) == (job.queries is None):
        found = "neither" if job.question is None else "both"
        raise GfmError(
            f'expected question="…" or queries=queries.jsonl, found {found}; give one of them: python infer.py '
            f'index={job.index} question="…", or python infer.py index={job.index} queries=queries.jsonl '
            "run_out=run.json"
        )
    if not isinstance(job.top_k, int) or job.top_k < 1:
        raise GfmError(f"top_k: expected a whole number of 1 or more, found {job.top_k!r}")
    return read_queries(job.queries) if job.queries is not None else [as_query(job.question or "", job.top_k)]


def open_retriever(index: GraphIndex, settings: Mapping[str, Any], checkpoint: str | None = None) -> Retriever:
    """A retriever by its ``name`` with its other settings, warmed up: no question's time holds what loads on first use.

    Raises:
        GfmError: An unknown name or setting, or a checkpoint for a retriever that has none.
    """
    rest = dict(settings)
    name = str(rest.pop("name", ""))
    if checkpoint is not None:
        if name not in TRAINED:
            learnt = " or ".join(TRAINED)
            raise GfmError(
                f"checkpoint: the retriever {name!r} has no network; leave checkpoint out or choose {learnt}"
            )
        rest["path"] = checkpoint
    retriever = load_retriever(name, index, **rest)
    _load(index, with_encoder=name != "bm25")
    return retriever


def _load(index: GraphIndex, with_encoder: bool) -> None:
    """Load what an index loads on first use."""
    index.passage(0)
    if index.graph.num_triples:
        index.triple(0)
    if with_encoder:
        index.encode(["warm up"])


def passages_for(index: GraphIndex, top_k: int) -> int:
    """How many passages surely hold ``top_k`` documents: all of the ``top_k`` - 1 longest documents, and one more."""
    longest = sorted(Counter(index.document_ids).values(), reverse=True)[: top_k - 1]
    return max(top_k, sum(longest) + 1)


def best_documents(retrieval: Retrieval, top_k: int) -> dict[str, float]:
    """The ``top_k`` best documents, each with the score of its best passage; best first, ties by id."""
    scores = document_scores(retrieval)
    order = sorted(scores, key=lambda document: (-scores[document], document))
    return {document: scores[document] for document in order[:top_k]}


def _first_passages(retrieval: Retrieval, top_k: int) -> Retrieval:
    """The result with no more passages than were asked for."""
    passages = retrieval.passages[:top_k]
    ids = {hit.item.id for hit in passages}
    paths = {passage: path for passage, path in retrieval.paths.items() if passage in ids}
    return replace(retrieval, passages=passages, paths=paths)


def _with_encoding(retrieval: Retrieval, spent: float | None) -> Retrieval:
    """The result with a note of how its question was encoded; in a batch, each question bears its share of the time."""
    seconds = retrieval.seconds if spent is None else {**retrieval.seconds, "encode": spent}
    return replace(retrieval, trace={**retrieval.trace, "batch_encode": spent is not None}, seconds=seconds)


def check_writable(path: Path, example: str = "run.json") -> None:
    """Before the work is done, prove that its result can be written.

    Args:
        path: Where to.
        example: A name for a file, told where ``path`` is a folder.

    Raises:
        GfmError: The path is a folder, or its own folder cannot be made or written to.
    """
    if path.is_dir():
        raise GfmError(f"{path}: expected a file to write, found a folder; name a file in it: {path / example}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GfmError(f"{path.parent}: expected a folder to write to; {error.strerror}; name another one") from error
    if not os.access(path.parent, os.W_OK):
        raise GfmError(f"{path.parent}: expected a folder that can be written to; name another one")


def write_json(path: Path, value: Any) -> None:
    """Write JSON (UTF-8, sorted keys, finite numbers) atomically: the whole file or none.

    Raises:
        GfmError: A number is not finite, or the file cannot be written.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n"
    except ValueError as error:
        raise GfmError(f"{path}: not written, for a result holds a number that is not finite: {error}") from error
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write a text (UTF-8) atomically: the whole file or none.

    Raises:
        GfmError: The file cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise GfmError(f"{path}: cannot be written: {error.strerror}; name another file") from error
