"""Scores to a kept share of the subgraph, and the evidence path that leads to each top passage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfm.retrieve.candidates import Candidates

_UNNAMED_START = 10.0  # cost of starting from an entity of which the question names nothing: the last resort
_MOST_START = 2.0  # cost, at most, of a start for its own score: what a question names need not be what it asks for
_STEP = 0.7  # cost of a step, so that a shorter path wins among equals
_MOST_FACT = 1.0  # cost, at most, of a fact for its score beside the best one: a sentence says more than two mentions
_FLOOR = 1e-4


@dataclass(frozen=True, slots=True)
class Kept:
    """Masks over a candidate subgraph: node bool[n], edge bool[e]; every kept edge has both ends kept."""

    node: np.ndarray
    edge: np.ndarray


def evidence_paths(
    found: Candidates,
    node_probability: np.ndarray,
    edge_probability: np.ndarray,
    is_fact: np.ndarray,
    overlap: np.ndarray,
    targets: np.ndarray,
    max_steps: int = 4,
) -> dict[int, list[int]]:
    """Cheapest path from a start entity to each target node, as edge positions; at most ``max_steps`` steps.

    A path costs -log of the probabilities of its nodes, and of its facts beside the best one, so it goes where the
    network saw evidence; a start that the question names is preferred. Found by rounds of relaxation (Bellman and
    Ford) over all edges at once.

    Args:
        found: The subgraph.
        node_probability: float[n].
        edge_probability: float[e].
        is_fact: bool[e]; other edges cost their step alone.
        overlap: float[n], share of a name that stands in the question.
        targets: int[·], local node numbers.
        max_steps: Longest path.
    """
    n_e = len(found.entities)
    node_cost = -np.log(np.maximum(node_probability, _FLOOR))
    source, target = found.edge_index
    beside = edge_probability / max(float(edge_probability[is_fact].max(initial=0.0)), _FLOOR)
    fact_cost = np.where(is_fact, np.clip(-np.log(np.maximum(beside, _FLOOR)), 0.0, _MOST_FACT), 0.0)
    step = _STEP + node_cost[target] + fact_cost
    cost = np.full(len(node_cost), np.inf)
    start = np.flatnonzero(found.hop[:n_e] == 0)
    cost[start] = np.minimum(node_cost[start], _MOST_START) + _UNNAMED_START * (1.0 - overlap[start])
    best = [cost]
    via = []
    for _ in range(max_steps):
        offer = best[-1][source] + step
        reached = best[-1].copy()
        np.minimum.at(reached, target, offer)
        better = (offer == reached[target]) & (offer < best[-1][target])
        edge = np.full(len(cost), -1, dtype=np.int64)
        edge[target[better][::-1]] = np.flatnonzero(better)[::-1]  # the first of equal offers stays
        best.append(reached)
        via.append(edge)
    return {
        int(t): path for t in targets if (path := _walk(int(t), via, source)) is not None and np.isfinite(best[-1][t])
    }


def _walk(node: int, via: list[np.ndarray], source: np.ndarray) -> list[int]:
    path: list[int] = []
    for edge in reversed(via):
        if edge[node] >= 0:
            path.append(int(edge[node]))
            node = int(source[edge[node]])
    return path[::-1]


def prune(
    found: Candidates,
    node_probability: np.ndarray,
    edge_probability: np.ndarray,
    is_fact: np.ndarray,
    keep: float,
    whole: list[int],
    least: int = 0,
) -> Kept:
    """Keep the best share of entities, of passages and of facts, and all that the evidence paths need.

    Args:
        found: The subgraph.
        node_probability: float[n].
        edge_probability: float[e].
        is_fact: bool[e].
        keep: Share in (0, 1].
        whole: Edge positions that stay, with both their ends.
        least: As many of each kind stay at least: a share of a small subgraph is next to nothing.
    """
    n_e = len(found.entities)
    node = np.zeros(len(node_probability), dtype=bool)
    for part in (np.arange(n_e), np.arange(n_e, len(node))):
        node[part[_best(node_probability[part], keep, least)]] = True
    source, target = found.edge_index
    node[source[whole]] = node[target[whole]] = True
    edge = np.zeros(len(edge_probability), dtype=bool)
    facts = np.flatnonzero(is_fact)
    edge[facts[_best(edge_probability[facts], keep, least)]] = True
    edge |= ~is_fact
    edge[whole] = True
    return Kept(node, edge & node[source] & node[target])


def _best(scores: np.ndarray, keep: float, least: int) -> np.ndarray:
    count = max(int(np.ceil(keep * len(scores))), least)
    return np.lexsort((np.arange(len(scores)), -scores))[:count]
