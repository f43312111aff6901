"""How well a graph holds together, on one made by hand."""

from __future__ import annotations

import numpy as np

from gfm.graph.health import bare_passages, components
from gfm.graph.knowledge_graph import KnowledgeGraph, build_graph, hubs


def made(passages: int, mentions: list[tuple[int, int]]) -> KnowledgeGraph:
    """Three entities, a fact from the first to the second, and (passage, entity) mentions."""
    return build_graph(
        num_entities=3,
        num_passages=passages,
        triples=np.array([(0, 1, 0)]),
        triple_weight=np.ones(1),
        fact_passages=[()],
        mentions=np.array(mentions, dtype=np.int64).reshape(-1, 2),
        subjects=np.full(passages, -1),
        synonyms=np.zeros((0, 2), dtype=np.int64),
        synonym_weight=np.zeros(0, dtype=np.float32),
    )


def test_parts_are_counted_by_size_and_bare_passages_are_parts() -> None:
    graph = made(4, [(0, 0), (1, 2)])
    assert components(graph).tolist() == [3, 2, 1, 1]  # 0-1 with passage 0; entity 2 with passage 1; passages 2 and 3
    assert bare_passages(graph) == 2


def test_a_graph_of_one_piece() -> None:
    graph = made(2, [(0, 0), (0, 2), (1, 1)])
    assert components(graph).tolist() == [5]
    assert bare_passages(graph) == 0


def test_hubs_have_more_edges_than_the_bound() -> None:
    graph = made(3, [(0, 0), (1, 0), (2, 0)])  # entity 0 has its fact and three mentions
    assert [len(hubs(graph, most)) for most in (0, 1, 3, 4)] == [2, 1, 1, 0]
