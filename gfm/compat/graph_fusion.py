"""Results of several indexes, or of several sub-questions, as one; the inputs stay as they are.

Source: the fusion of AutoFlow's knowledge-graph retriever (pingcap/autoflow at commit 7eb3e1c6f246).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gfm.retrieve.base import Retriever, Stopwatch, as_query
from gfm.types import Entity, GfmError, Hit, Passage, PathStep, Query, Retrieval, Triple

MAX_SUBQUESTIONS = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SubquestionRetrieval:
    """What sub-questions found.

    Attributes:
        fused: All together, under the question itself.
        parts: For each sub-question, which is its query, what it alone found over all indexes.
    """

    fused: Retrieval
    parts: tuple[Retrieval, ...]


def relationship_text(triple: Triple) -> str:
    """A relationship for people, and the key by which equal ones are merged.

    The sentence stands in where the relation has no words, for else all that is said of two entities would be merged.
    """
    return f"{triple.head} -> {triple.relation or triple.text} -> {triple.tail}"


def fuse(query: Query, retrievals: Sequence[Retrieval], top_k: int) -> Retrieval:
    """One result of several.

    Entities are united by key, relationships by `relationship_text`, passages by id; each keeps its best score. The
    weights of equal relationships are added and their sources united.

    Args:
        query: The question that the fused result answers.
        retrievals: At least one, all with scores of one unit.
        top_k: Passages that are kept.

    Raises:
        GfmError: No result, scores of several units, or two passages of one id.
    """
    units = sorted({found.score_unit for found in retrievals})
    if len(units) != 1:
        raise GfmError(f"fusion: expected results with scores of one unit, found {units}; fuse one retriever's results")
    clock = Stopwatch()
    with clock.stage("fuse"):
        entities = _unite((h for found in retrievals for h in found.entities), lambda entity: entity.key, _first)
        triples = _unite((h for found in retrievals for h in found.triples), relationship_text, _added)
        passages = _unite((h for found in retrievals for h in found.passages), lambda p: p.id, _same)[:top_k]
        paths = _paths(retrievals, passages)
    seconds = Counter(clock.seconds)
    for found in retrievals:
        seconds.update(found.seconds)
    names = list(dict.fromkeys(str(found.trace.get("retriever")) for found in retrievals))
    trace = {"retriever": " + ".join(names), "fused": [found.trace for found in retrievals]}
    return Retrieval(query, entities, triples, passages, units[0], paths, trace, dict(seconds))


def retrieve_subquestions(
    retrievers: Sequence[Retriever], query: str | Query, subquestions: Sequence[str] = (), top_k: int = 10
) -> SubquestionRetrieval:
    """Search every index for every sub-question.

    Args:
        retrievers: One an index.
        query: The question; searched itself where there are no sub-questions.
        subquestions: Up to five, made from the question by somebody else.
        top_k: Passages of each result.

    Raises:
        GfmError: No retriever, too many sub-questions, a blank one, or results as in `fuse`.
    """
    query = as_query(query, top_k)
    if len(subquestions) > MAX_SUBQUESTIONS:
        raise GfmError(f"sub-questions: expected at most {MAX_SUBQUESTIONS}, found {len(subquestions)}")
    if not retrievers:
        raise GfmError("sub-questions: expected at least one retriever, found none")
    asked = [Query(f"{query.id}/{n}", text) for n, text in enumerate(subquestions, 1)] or [query]
    parts = tuple(fuse(part, [r.retrieve(part, top_k) for r in retrievers], top_k) for part in asked)
    return SubquestionRetrieval(fuse(query, parts, top_k), parts)


def _unite(hits: Iterable[Hit[T]], key: Callable[[T], str], merge: Callable[[T, T], T]) -> list[Hit[T]]:
    """One hit a key with the best score; order: score descending, then key.

    Args:
        hits: In any order.
        key: Of an item.
        merge: What becomes of the better and the other of two items with one key.
    """
    items: dict[str, T] = {}
    scores: dict[str, float] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        name = key(hit.item)
        items[name] = merge(items[name], hit.item) if name in items else hit.item
        scores.setdefault(name, hit.score)
    order = sorted(items, key=lambda name: (-scores[name], name))
    return [Hit(items[name], scores[name], rank) for rank, name in enumerate(order, start=1)]


def _first(better: Entity, _: Entity) -> Entity:
    return better


def _added(better: Triple, other: Triple) -> Triple:
    sources = tuple(dict.fromkeys(better.passage_ids + other.passage_ids))
    return replace(better, weight=better.weight + other.weight, passage_ids=sources)


def _same(better: Passage, other: Passage) -> Passage:
    if better != other:
        raise GfmError(
            f"fusion: expected passage ids to be unique over all indexes, found two passages {better.id!r}; rename one "
            "in its corpus and build that index again"
        )
    return better


def _paths(retrievals: Sequence[Retrieval], passages: Sequence[Hit[Passage]]) -> dict[str, list[PathStep]]:
    """The path to each returned passage from the first result that has one."""
    known: dict[str, list[PathStep]] = {}
    for found in retrievals:
        known = found.paths | known
    return {hit.item.id: known[hit.item.id] for hit in passages if hit.item.id in known}
