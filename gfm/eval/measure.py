"""One retriever over all questions of a set: its run, its times, its contexts, its candidates and its memory."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gfm.context import build_context
from gfm.eval.run import EncodedQueries, best_documents, passages_for
from gfm.index.index import GraphIndex
from gfm.memory import peak_memory
from gfm.progress import track
from gfm.retrieve.base import Retriever
from gfm.retrieve.candidates import CandidateBuilder
from gfm.retrievers import load_retriever
from gfm.types import GfmError, Query, Retrieval


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked of which retriever.

    Attributes:
        index: Folder of the index.
        generation: The one that is meant: all retrievers of a comparison read the same.
        encoded: The questions, encoded once for all retrievers.
        label: Names the retriever in messages.
        retriever: Its ``name`` and settings.
        queries: The questions.
        gold: Gold documents by query id.
        depth: Documents of a run; every retriever is asked for as many passages as surely hold them.
        max_tokens: Budget of a context.
    """

    index: Path
    generation: str
    encoded: EncodedQueries
    label: str
    retriever: Mapping[str, Any]
    queries: tuple[Query, ...]
    gold: Mapping[str, frozenset[str]]
    depth: int
    max_tokens: int


@dataclass(slots=True)
class Measured:
    """What a retriever did; every list has one value a question.

    Attributes:
        run: {query id: {document id: score}}, best first.
        seconds: By stage, as the retriever tells them; ``encode`` is a question's share of the batch.
        retrieval: Wall time of retrieving, encoding left out.
        context_seconds: Wall time of building the context.
        tokens: Size of the context.
        in_context: Share of gold documents with a passage in the context.
        reached: Share of gold documents among the candidates; None of a retriever that builds none.
        uses_vectors: Whether the question is encoded.
        weights: SHA-256 of its networks' weights; None of a rule-based retriever.
        repeated: Passages that stood in a result before.
        trace: Sum of each number that the results' traces hold: nodes, kept facts and the like.
        fallbacks: Questions answered by another retriever than the named one, by its name.
        peak_bytes: Most resident memory of the process; None where it did other work as well.
    """

    run: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    retrieval: list[float] = field(default_factory=list)
    context_seconds: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    in_context: list[float] = field(default_factory=list)
    reached: list[float] | None = None
    uses_vectors: bool = False
    weights: str | None = None
    repeated: int = 0
    trace: dict[str, float] = field(default_factory=dict)
    fallbacks: dict[str, int] = field(default_factory=dict)
    peak_bytes: int | None = None


def measure(job: Job) -> Measured:
    """Answer every question, one at a time; the first is asked once more beforehand, to load what loads on first use.

    Raises:
        GfmError: An unknown retriever or setting, or an index that was replaced meanwhile.
    """
    index = GraphIndex.open(job.index, job.encoded)
    if index.generation != job.generation:
        raise GfmError(f"{job.index}: was built again during the comparison; start it anew")
    rest = dict(job.retriever)
    retriever = load_retriever(str(rest.pop("name", "")), index, **rest)
    passages = passages_for(index, job.depth)
    out = Measured()
    with _quiet():
        retriever.retrieve(job.queries[0], passages)
        for query in track(job.queries, len(job.queries), job.label):
            start, before = time.perf_counter(), job.encoded.spent
            found = retriever.retrieve(query, passages)
            _take(out, job, found, time.perf_counter() - start, job.encoded.spent - before)
    out.weights = _weights_hash(retriever)
    out.reached = _reached(job, index, retriever)
    return out


def measure_apart(job: Job) -> Measured:
    """The same in a process of its own, whose peak memory is then this retriever's.

    The process is spawned: a script that calls this needs ``if __name__ == "__main__":``.

    Raises:
        GfmError: As `measure`, or the process was killed.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(_measure_and_weigh, job).result()
        except BrokenProcessPool as error:
            raise GfmError(
                "the process that measured it was killed, most likely for want of memory; see how much "
                "is free, or leave this retriever out"
            ) from error


def _measure_and_weigh(job: Job) -> Measured:
    out = measure(job)
    out.peak_bytes = peak_memory()
    return out


@contextmanager
def _quiet() -> Iterator[None]:
    """No line for each question that a retriever leaves to another one: they are counted."""
    logger = logging.getLogger("gfm")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _take(out: Measured, job: Job, found: Retrieval, wall: float, encoding: float) -> None:
    """Keep the figures of one result, not the result; ``encoding`` is what its texts took in their batch."""
    query, asked = found.query.id, len(out.tokens)
    seconds = dict(found.seconds)
    lookup = seconds.get("encode", 0.0)
    if "encode" in seconds:
        out.uses_vectors = True
        seconds["encode"] = encoding
    for stage, value in seconds.items():
        out.seconds.setdefault(stage, [0.0] * asked).append(value)
    for values in out.seconds.values():
        values += [0.0] * (asked + 1 - len(values))
    out.retrieval.append(wall - lookup)
    out.run[query] = best_documents(found, job.depth)
    out.repeated += len(found.passages) - len({hit.item.id for hit in found.passages})
    for name, value in found.trace.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            out.trace[name] = out.trace.get(name, 0.0) + value
    if other := found.trace.get("fallback"):
        out.fallbacks[str(other)] = out.fallbacks.get(str(other), 0) + 1
    start = time.perf_counter()
    context = build_context(found, job.max_tokens)
    out.context_seconds.append(time.perf_counter() - start)
    held = {source.document_id for source in context.sources}
    out.tokens.append(context.num_tokens)
    out.in_context.append(len(job.gold[query] & held) / len(job.gold[query]))


def _reached(job: Job, index: GraphIndex, retriever: Retriever) -> list[float] | None:
    """Share of each question's gold documents among its candidates."""
    builder = getattr(retriever, "builder", None)
    if not isinstance(builder, CandidateBuilder):
        return None
    shares = []
    for query in job.queries:
        found = builder.build(builder.signals(query.text, index.encode([query.text])[0]))
        held = {index.document_ids[int(p)] for p in found.passages}
        shares.append(len(job.gold[query.id] & held) / len(job.gold[query.id]))
    return shares


def _weights_hash(retriever: Retriever) -> str | None:
    """Identity of the networks that a retriever, or one inside it, holds; None where there is none."""
    found = list(_networks(retriever))
    if not found:
        return None
    digest = hashlib.sha256()
    for network in found:
        for name, tensor in network.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _networks(thing: object) -> Iterator[torch.nn.Module]:
    """Networks among the attributes of a retriever, of retrievers inside it, and of their lists and mappings."""
    if isinstance(thing, torch.nn.Module):
        yield thing
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _networks(value)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from _networks(value)
    elif hasattr(thing, "retrieve") and hasattr(thing, "__dict__"):
        yield from _networks(vars(thing))
