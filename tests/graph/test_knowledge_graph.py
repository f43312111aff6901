"""A graph of six entities and six passages, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gfm.graph.knowledge_graph as knowledge_graph
from gfm.graph.knowledge_graph import (
    EDGE_KINDS,
    FACT,
    INVERSE_FACT,
    INVERSE_MENTION,
    INVERSE_SUBJECT,
    MENTION,
    MIRROR,
    SUBJECT,
    SYNONYM,
    KnowledgeGraph,
    build_graph,
    expand,
    hubs,
    pointers,
)


def make(**changes: Any) -> KnowledgeGraph:
    """Entities 0 … 5, passages 0 … 5 (nodes 6 … 11); entity 5 and passage 5 stand alone.

    Triples: 0→1 (fact 0), 1→2 (fact 1), 2→1 (fact 1); fact 2 has none. Synonyms 3–4.
    Passages mention: p0: 0, 1 · p1: 1 (its subject), 2 · p2: 2 · p3: 3 (its subject) · p4: 4.
    """
    links: dict[str, Any] = {
        "num_entities": 6,
        "num_passages": 6,
        "triples": np.array([[0, 1, 0], [1, 2, 1], [2, 1, 1]]),
        "triple_weight": np.array([1.0, 0.5, 0.25]),
        "fact_passages": [(0, 2), (1,), (4,)],
        "mentions": np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 2], [3, 3], [4, 4]]),
        "subjects": np.array([-1, 1, -1, 3, -1, -1]),
        "synonyms": np.array([[3, 4]]),
        "synonym_weight": np.array([0.9]),
    }
    return build_graph(**{**links, **changes})


def edges(graph: KnowledgeGraph) -> list[tuple[int, int, int, int]]:
    return list(zip(*graph.edge_index.tolist(), graph.edge_kind.tolist(), graph.edge_triple.tolist(), strict=True))


def test_edges_by_hand() -> None:
    assert edges(make()) == [
        (0, 1, FACT, 0),
        (0, 6, INVERSE_MENTION, -1),
        (1, 0, INVERSE_FACT, 0),
        (1, 2, FACT, 1),
        (1, 2, INVERSE_FACT, 2),
        (1, 6, INVERSE_MENTION, -1),
        (1, 7, INVERSE_SUBJECT, -1),
        (2, 1, FACT, 2),
        (2, 1, INVERSE_FACT, 1),
        (2, 7, INVERSE_MENTION, -1),
        (2, 8, INVERSE_MENTION, -1),
        (3, 4, SYNONYM, -1),
        (3, 9, INVERSE_SUBJECT, -1),
        (4, 3, SYNONYM, -1),
        (4, 10, INVERSE_MENTION, -1),
        (6, 0, MENTION, -1),
        (6, 1, MENTION, -1),
        (7, 1, SUBJECT, -1),
        (7, 2, MENTION, -1),
        (8, 2, MENTION, -1),
        (9, 3, SUBJECT, -1),
        (10, 4, MENTION, -1),
    ]


def test_pointers_and_the_rest_by_hand() -> None:
    graph = make()
    assert graph.node_ptr.tolist() == [0, 2, 7, 11, 13, 15, 15, 17, 19, 20, 21, 22, 22]
    assert graph.fact_triple_ptr.tolist() == [0, 1, 3, 3]
    assert graph.fact_passage_ptr.tolist() == [0, 2, 3, 4]
    assert graph.fact_passage.tolist() == [0, 2, 1, 4]
    assert graph.entity_df.tolist() == [1, 2, 2, 1, 1, 0]
    assert (graph.num_entities, graph.num_facts, graph.num_triples, graph.num_passages) == (6, 3, 3, 6)
    assert (graph.num_nodes, graph.num_edges) == (12, 22)
    weight = {(s, t, k): w for (s, t, k, _), w in zip(edges(graph), graph.edge_weight.tolist(), strict=True)}
    assert weight[0, 1, FACT] == weight[1, 0, INVERSE_FACT] == 1.0
    assert weight[1, 2, FACT] == weight[2, 1, INVERSE_FACT] == 0.5
    assert weight[2, 1, FACT] == weight[1, 2, INVERSE_FACT] == 0.25
    assert weight[3, 4, SYNONYM] == weight[4, 3, SYNONYM] == np.float32(0.9)
    assert weight[7, 1, SUBJECT] == weight[2, 8, INVERSE_MENTION] == 1.0


def test_the_types_that_files_have() -> None:
    graph = make()
    assert {name: str(a.dtype) for name, a in graph.arrays().items()} == {
        "triple_head": "int32",
        "triple_tail": "int32",
        "triple_fact": "int32",
        "triple_weight": "float32",
        "fact_passage_ptr": "int64",
        "fact_passage": "int32",
        "fact_triple_ptr": "int64",
        "edge_index": "int64",
        "edge_kind": "int8",
        "edge_triple": "int32",
        "edge_weight": "float32",
        "node_ptr": "int64",
        "entity_df": "int32",
    }


def test_every_edge_has_its_mirror() -> None:
    found = edges(make())
    assert {(t, s, int(MIRROR[k]), i) for s, t, k, i in found} == set(found)
    assert [EDGE_KINDS[k] for k in MIRROR[MIRROR]] == list(EDGE_KINDS)
    assert EDGE_KINDS[MIRROR[SUBJECT]] == "inverse subject"


def test_edge_counts_agree_from_every_view_and_no_node_meets_itself() -> None:
    """A12."""
    graph = make()
    degree = np.diff(graph.node_ptr)
    assert degree.sum() == graph.num_edges == len(graph.edge_kind) == 2 * (graph.num_triples + 1 + 7)
    assert np.bincount(graph.edge_index[0], minlength=12).tolist() == degree.tolist()
    assert np.bincount(graph.edge_index[1], minlength=12).tolist() == degree.tolist()
    assert np.bincount(graph.edge_kind, minlength=7).tolist() == [3, 3, 2, 5, 5, 2, 2]
    assert (graph.edge_index[0] != graph.edge_index[1]).all()


def test_isolated_nodes_are_nodes() -> None:
    """A06, A07: entity 5 and passage 5 (the highest node) have no edges."""
    graph = make()
    assert np.flatnonzero(np.diff(graph.node_ptr) == 0).tolist() == [5, 11]
    for nodes in ([5], [11], [5, 11], []):
        positions, owner = expand(graph.node_ptr, np.array(nodes, dtype=np.int64))
        assert positions.shape == owner.shape == (0,)
        assert graph.edge_index[1, positions].dtype == np.int64


def test_entities_without_relations() -> None:
    """A02: E = 0."""
    none = {
        "triples": np.zeros((0, 3), dtype=np.int64),
        "triple_weight": np.zeros(0),
        "mentions": np.zeros((0, 2), dtype=np.int64),
        "subjects": np.full(6, -1),
        "synonyms": np.zeros((0, 2), dtype=np.int64),
        "synonym_weight": np.zeros(0),
    }
    graph = make(**none)
    assert (graph.num_edges, graph.num_triples, graph.num_nodes) == (0, 0, 12)
    assert graph.edge_index.shape == (2, 0)
    assert graph.edge_index.dtype == np.int64
    assert graph.node_ptr.tolist() == [0] * 13
    assert graph.entity_df.tolist() == [0] * 6
    graph = make(**none, num_entities=0, fact_passages=[])
    assert (graph.num_entities, graph.num_facts, graph.num_nodes) == (0, 0, 6)
    assert graph.entity_df.shape == (0,)
    assert graph.fact_triple_ptr.tolist() == graph.fact_passage_ptr.tolist() == [0]


def test_expand_keeps_the_order_of_the_rows() -> None:
    graph = make()
    positions, owner = expand(graph.node_ptr, np.array([3, 5, 0, 3]))
    assert positions.tolist() == [11, 12, 0, 1, 11, 12]
    assert owner.tolist() == [0, 0, 2, 2, 3, 3]


def test_a_chain_is_reached_from_both_ends() -> None:
    """A08: entities 0→1→2; two hops from either end, the passages left out."""
    graph = make()

    def hops(seed: int) -> dict[int, int]:
        found, frontier = {seed: 0}, np.array([seed])
        for hop in (1, 2):
            positions, _ = expand(graph.node_ptr, frontier)
            targets = [t for t in graph.edge_index[1, positions].tolist() if t < 6 and t not in found]
            frontier = np.array(list(dict.fromkeys(targets)), dtype=np.int64)
            found.update(dict.fromkeys(targets, hop))
        return found

    assert hops(0) == {0: 0, 1: 1, 2: 2}
    assert hops(2) == {2: 0, 1: 1, 0: 2}


@pytest.mark.parametrize(("rows", "expected"), [([], [0, 0, 0]), ([1, 1], [0, 0, 2]), ([0, 1], [0, 1, 2])])
def test_pointers(rows: list[int], expected: list[int]) -> None:
    assert pointers(np.array(rows, dtype=np.int64), 2).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.data())
def test_expand_is_concatenation(table: list[list[int]], data: st.DataObject) -> None:
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in table])]).astype(np.int64)
    values = np.array([v for row in table for v in row], dtype=np.int64)
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), max_size=8)) if table else []
    positions, owner = expand(ptr, np.array(rows, dtype=np.int64))
    assert values[positions].tolist() == [v for r in rows for v in table[r]]
    assert owner.tolist() == [i for i, r in enumerate(rows) for _ in table[r]]


def test_hubs_come_by_degree_and_then_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A13: entities 0 … 4 have 2, 5, 4, 2 and 2 edges; passages are no hubs, however many they have."""
    graph = make()
    assert np.diff(graph.node_ptr)[:6].tolist() == [2, 5, 4, 2, 2, 0]
    for degree, expected in ((1, [1, 2, 0, 3, 4]), (2, [1, 2]), (4, [1]), (5, [])):
        monkeypatch.setattr(knowledge_graph, "HUB_DEGREE", degree)
        assert hubs(graph).tolist() == expected


def test_a_hub_is_what_a_search_calls_one() -> None:
    from gfm.retrieve.signals import CandidateSettings

    assert CandidateSettings().max_fanout == knowledge_graph.HUB_DEGREE
