"""Personalised PageRank: exact over the whole graph, or by forward push, which touches only what is near the seeds."""

from __future__ import annotations

from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from gfm.graph.knowledge_graph import KnowledgeGraph, expand

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def transition(graph: KnowledgeGraph) -> np.ndarray:
    """Probability of each edge from its source, float32[E], proportional to the edge weights."""
    return _share(graph, graph.edge_weight).astype(np.float32)


def walk_matrix(graph: KnowledgeGraph, weight: np.ndarray | None = None) -> csr_array:
    """Probability of each step for `pagerank`, float64[num_nodes, num_nodes]: row = target, column = source.

    Args:
        graph: The graph.
        weight: float[E], in place of the edges' own weights; an edge of weight 0 is none.
    """
    from scipy.sparse import csr_array

    share = _share(graph, graph.edge_weight if weight is None else weight)
    source, target = graph.edge_index.astype(np.int32)  # half the bytes to read in each product
    matrix = csr_array((share, (target, source)), shape=(graph.num_nodes, graph.num_nodes))
    matrix.eliminate_zeros()
    return matrix


def _share(graph: KnowledgeGraph, weight: np.ndarray) -> np.ndarray:
    total = np.bincount(graph.edge_index[0], weights=weight, minlength=graph.num_nodes)
    share: np.ndarray = weight / np.maximum(total[graph.edge_index[0]], 1e-12)
    return share


def pagerank(
    walk: csr_array, nodes: np.ndarray, mass: np.ndarray, *, damping: float = 0.5, tolerance: float = 1e-10
) -> np.ndarray:
    """Personalised PageRank, float64[num_nodes], of sum 1; zeros where there is no mass to start from.

    Power iteration. After k rounds the result is off by at most damping^k in all, so the number of rounds is known
    beforehand. A walk that comes to a node without edges starts anew.

    Source: Page, Brin, Motwani and Winograd, "The PageRank citation ranking", 1999.

    Args:
        walk: From `walk_matrix`.
        nodes: int[s], seeds; distinct.
        mass: float[s], not negative; scaled to sum 1.
        damping: Share of the mass that walks on in each step, above 0 and below 1.
        tolerance: Bound on the sum of the errors, where no walk is lost at a node without edges.
    """
    restart = np.zeros(walk.shape[0])
    total = float(mass.sum())
    if not len(nodes) or total <= 0:
        return restart
    restart[nodes] = mass / total
    rank = restart
    for _ in range(ceil(log(tolerance) / log(damping))):
        rank = damping * (walk @ rank) + (1 - damping) * restart
    # Starting anew at a node without edges only scales the result of a walk that ends there.
    return np.asarray(rank / rank.sum())


def push(
    graph: KnowledgeGraph,
    probability: np.ndarray,
    nodes: np.ndarray,
    mass: np.ndarray,
    *,
    damping: float = 0.5,
    tolerance: float = 1e-5,
    max_rounds: int = 6,
) -> np.ndarray:
    """Approximate personalised PageRank, float64[num_nodes]; zero where the walk's mass does not reach.

    All nodes whose residual exceeds ``tolerance`` × degree push at once, round by round, so the order of pushes is
    fixed and a node with very many edges, whose share would be thin, costs nothing. A round costs as much as the edges
    that it pushes over, whatever the size of the graph. Mass that is never pushed is lost, as is what walks on from a
    node without edges: the sum is at most 1.

    Source: Andersen, Chung and Lang, "Local graph partitioning using PageRank vectors", FOCS 2006.

    Args:
        graph: The graph.
        probability: From `transition`.
        nodes: int[s], seeds; distinct.
        mass: float[s], not negative; scaled to sum 1.
        damping: Share of the mass that walks on in each step.
        tolerance: Residual per edge below which a node is left alone.
        max_rounds: Bound on the rounds.
    """
    rank = np.zeros(graph.num_nodes)
    residual = np.zeros(graph.num_nodes)
    total = float(mass.sum())
    if not len(nodes) or total <= 0:
        return rank
    residual[nodes] = mass / total
    touched = np.asarray(nodes)
    for _ in range(max_rounds):
        # Only a node that just gained mass can have come over its bound.
        degree = graph.node_ptr[touched + 1] - graph.node_ptr[touched]
        active = np.unique(touched[residual[touched] > tolerance * np.maximum(degree, 1)])
        if not len(active):
            break
        moving = residual[active]
        residual[active] = 0.0
        rank[active] += (1 - damping) * moving
        edges, owner = expand(graph.node_ptr, active)
        touched = graph.edge_index[1, edges]
        np.add.at(residual, touched, damping * moving[owner] * probability[edges])
    return rank
