"""Numbers that tell how well a graph holds its passages together."""

from __future__ import annotations

import numpy as np

from gfm.graph.knowledge_graph import KnowledgeGraph


def bare_passages(graph: KnowledgeGraph) -> int:
    """Number of passages that no entity is linked with."""
    return int((np.diff(graph.node_ptr)[graph.num_entities :] == 0).sum())


def components(graph: KnowledgeGraph) -> np.ndarray:
    """Nodes of each connected part of the graph, int64[·], the largest first; a bare passage is a part of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graph.num_nodes
    edges = csr_array((np.ones(graph.num_edges, dtype=np.int8), graph.edge_index[1], graph.node_ptr), shape=(n, n))
    _, labels = connected_components(edges, directed=False)
    return np.sort(np.bincount(labels))[::-1]
