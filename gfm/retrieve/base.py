"""What every retriever is: one class with `retrieve(query, top_k) -> Retrieval`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from gfm.index.index import GraphIndex
from gfm.index.part import where
from gfm.text.reading import is_blank
from gfm.types import GfmError, Hit, Passage, Query, Retrieval

T = TypeVar("T")
R = TypeVar("R", bound="Retriever")


class Retriever(Protocol):
    """The one protocol of learnt and rule-based retrievers."""

    index: GraphIndex

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The best passages for a question, and what led to them."""

    def over(self, index: GraphIndex) -> Self:
        """The same retriever over another index, such as a part of this one."""


def within(retriever: R, filters: Mapping[str, Any] | None) -> R:
    """The retriever over what documents with the given fields support; itself where no filters are given.

    Args:
        retriever: Over the whole index.
        filters: See `gfm.index.part.where`.

    Raises:
        GfmError: Filters that cannot be meant, or that no document fits.
    """
    return retriever if filters is None else retriever.over(where(retriever.index, filters))


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def as_query(query: str | Query, top_k: int) -> Query:
    """Check a question and its top_k.

    Raises:
        GfmError: A blank question, something else than a question, or a top_k that is no whole number of 1 or more.
    """
    found = query if isinstance(query, Query) else Query("query", query)
    name = f"query {query.id!r}: " if isinstance(query, Query) else ""
    if not isinstance(found.text, str):
        raise GfmError(f"{name}expected a question, found {found.text!r}")
    if is_blank(found.text):
        raise GfmError(f"{name}expected a question, found {found.text!r}: empty or blank")
    check_whole("top_k", top_k, 1)
    return found


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse a setting that is no whole number of ``least`` or more.

    Raises:
        GfmError: It is not; the message names the setting.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise GfmError(f"{name}: expected a whole number of {least} or more, found {value!r}")


def ranked(
    items: Callable[[np.ndarray], Sequence[T]], numbers: np.ndarray, scores: np.ndarray, top_k: int | None = None
) -> list[Hit[T]]:
    """Hits in total order: score descending, then number.

    Args:
        items: Makes the items of numbers, all at once: `GraphIndex.entities`, `GraphIndex.triples`, ….
        numbers: int[m].
        scores: float[m].
        top_k: How many; all unless given.
    """
    order = np.lexsort((numbers, -scores))[:top_k]
    pairs = zip(items(numbers[order]), scores[order].tolist(), strict=True)
    return [Hit(item, score, rank) for rank, (item, score) in enumerate(pairs, start=1)]


def passage_hits(index: GraphIndex, numbers: np.ndarray, scores: np.ndarray, top_k: int) -> list[Hit[Passage]]:
    """Hits in total order: score descending, then passage id (passages are numbered in id order).

    Args:
        index: Where the passages stand.
        numbers: int[m], passages.
        scores: float[m].
        top_k: How many; fewer where there are fewer.

    Raises:
        GfmError: A score is not finite.
    """
    if not np.isfinite(scores).all():
        bad = index.passage_ids[int(numbers[np.flatnonzero(~np.isfinite(scores))[0]])]
        raise GfmError(f"passage {bad!r}: its score is not finite; check the index's vectors: build the index again")
    return ranked(index.passages, numbers, scores, top_k)


def document_scores(retrieval: Retrieval) -> dict[str, float]:
    """Score by document id, the best of its passages: the form that benchmarks judge."""
    out: dict[str, float] = {}
    for hit in retrieval.passages:
        out[hit.item.document_id] = max(hit.score, out.get(hit.item.document_id, -np.inf))
    return out


def query_vector(index: GraphIndex, query: Query, clock: Stopwatch) -> np.ndarray:
    """Encode one question, float32[D], timed as stage ``encode``."""
    with clock.stage("encode"):
        vector: np.ndarray = index.encode([query.text])[0]
    return vector
