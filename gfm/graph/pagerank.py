"""Personalised PageRank by forward push: touches only the neighbourhood of the seeds."""

from __future__ import annotations

import numpy as np

from gfm.graph.knowledge_graph import KnowledgeGraph, expand


def transition(graph: KnowledgeGraph) -> np.ndarray:
    """Probability of each edge from its source, float32[E], proportional to the edge weights."""
    total = np.bincount(graph.edge_index[0], weights=graph.edge_weight, minlength=graph.num_nodes)
    share: np.ndarray = graph.edge_weight / np.maximum(total[graph.edge_index[0]], 1e-12)
    return share.astype(np.float32)


def push(
    graph: KnowledgeGraph,
    probability: np.ndarray,
    nodes: np.ndarray,
    mass: np.ndarray,
    *,
    damping: float = 0.5,
    tolerance: float = 1e-5,
    max_rounds: int = 12,
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
