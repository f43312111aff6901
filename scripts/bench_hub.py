"""How long candidates and inputs take where one entity has 50,000 edges: the encoder and the network are left out.

    python scripts/bench_hub.py [LEAVES]

A hub, its leaves, and an answer one step behind the last leaf, so that it is two hops from the hub. Run it on a quiet
machine: the median should stay under 50 ms.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from gfm.graph.knowledge_graph import build_graph
from gfm.index.lexical import Lexical, make_lexical
from gfm.index.vectors import Vectors
from gfm.retrieve.candidates import CandidateBuilder, Candidates
from gfm.retrieve.features import subgraph
from gfm.retrieve.signals import CandidateSettings

_LEAVES_A_PASSAGE = 50
# The hub is the only start, so that nothing but the walk can find the answer.
WALK = CandidateSettings(seeds=1, facts=0)


class Star(NamedTuple):
    """An index in memory, a question's vector, and the numbers of the nodes on the way to the answer."""

    index: Any
    vector: np.ndarray
    hub: int
    leaf: int
    answer: int
    passage: int


def star(leaves: int, dim: int = 64) -> Star:
    """Facts hub–leaf for every leaf and last leaf–answer; the two that lead to the answer are near the question."""
    rng = np.random.default_rng(7)
    hub, leaf, answer = 0, leaves, leaves + 1
    triples = np.array([(hub, i + 1, i) for i in range(leaves)] + [(leaf, answer, leaves)])
    source = [(i // _LEAVES_A_PASSAGE,) for i in range(leaves)]
    passage = source[-1][0] + 1
    mentions = [(p, hub) for p in range(passage)] + [(p[0], i + 1) for i, p in enumerate(source)]
    mentions += [(passage, leaf), (passage, answer)]
    subjects = np.full(passage + 1, -1, dtype=np.int64)
    graph = build_graph(
        num_entities=leaves + 2,
        num_passages=passage + 1,
        triples=triples,
        triple_weight=np.ones(len(triples)),
        fact_passages=[*source, (passage,)],
        mentions=np.array(mentions),
        subjects=subjects,
        synonyms=np.zeros((0, 2), dtype=np.int64),
        synonym_weight=np.zeros(0),
    )
    vector = _unit(rng.normal(size=(1, dim)))[0]
    entities, facts, passages = (_unit(rng.normal(size=(n, dim))) for n in (leaves + 2, leaves + 1, passage + 1))
    entities[hub] = vector
    facts[[leaves - 1, leaves]] = _unit(vector + _unit(facts[[leaves - 1, leaves]]))  # cosine about 0.7
    names = ["hub", *(f"leaf {i}" for i in range(leaves)), "answer"]
    vocabulary, arrays = make_lexical([f"passage {i}" for i in range(passage + 1)], names)
    index = SimpleNamespace(
        graph=graph,
        subjects=subjects,
        lexical=Lexical(vocabulary, arrays, passage + 1),
        entity_vectors=Vectors(entities),
        fact_vectors=Vectors(facts),
        passage_vectors=Vectors(passages),
    )
    return Star(index, vector, hub, leaf, answer, passage)


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def seconds_by_stage(
    found: Star, settings: CandidateSettings | None = None, runs: int = 21
) -> tuple[dict[str, float], Candidates]:
    """Median seconds of each stage and of ``total``, after one run that does not count, and the last candidates."""
    builder = CandidateBuilder(found.index, settings)
    laps: list[list[float]] = []
    for _ in range(runs + 1):
        marks = [time.perf_counter()]
        signals = builder.signals("what lies behind the hub?", found.vector)
        marks.append(time.perf_counter())
        candidates = builder.build(signals)
        marks.append(time.perf_counter())
        subgraph(builder, signals, candidates, np.stack([found.vector] * 3))
        marks.append(time.perf_counter())
        laps.append([*np.diff(marks).tolist(), marks[-1] - marks[0]])
    stages = ("signals", "candidates", "inputs", "total")
    columns = zip(*laps[min(runs, 1) :], strict=True)  # the first pays for what is loaded late
    return {name: median(column) for name, column in zip(stages, columns, strict=True)}, candidates


def main() -> None:
    """Print one line for each way to start."""
    leaves = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    found = star(leaves, dim=384)
    for title, settings in (("all starts", CandidateSettings()), ("the hub alone", WALK)):
        seconds, candidates = seconds_by_stage(found, settings)
        times = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in seconds.items())
        reached = "found" if found.answer in candidates.entities else "NOT found"
        sys.stdout.write(f"{leaves} edges, {title}: {times}; {len(candidates.hop)} nodes, the answer is {reached}\n")


if __name__ == "__main__":
    main()
