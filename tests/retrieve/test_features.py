from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from gfm.graph.knowledge_graph import FACT, INVERSE_FACT, INVERSE_SUBJECT, SUBJECT, SYNONYM
from gfm.index.index import GraphIndex
from gfm.index.vectors import Vectors
from gfm.retrieve.candidates import CandidateBuilder
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS, question_parts, standardise, subgraph
from gfm.retrieve.signals import CandidateSettings

Stub = Callable[..., SimpleNamespace]
AXES = np.eye(4, dtype=np.float32)
X, Y, Z, _ = AXES
HALF = np.array([1, 1, 0, 0], dtype=np.float32) / np.float32(2**0.5)


def inputs_of(
    index: Any,
    text: str,
    vector: np.ndarray = X,
    chosen: CandidateSettings | None = None,
    parts: np.ndarray | None = None,
) -> Data:
    """Inputs of a question; each of its parts has the vector of the whole unless given."""
    builder = CandidateBuilder(index, chosen or CandidateSettings())
    signals = builder.signals(text, vector)
    return subgraph(builder, signals, builder.build(signals), np.stack([vector] * 3) if parts is None else parts)


def column(data: Data, name: str) -> list[float]:
    return data.node_input[:, NODE_INPUTS.index(name)].tolist()


def edge_column(data: Data, name: str) -> dict[tuple[int, int], float]:
    values = data.edge_input[:, EDGE_INPUTS.index(name)].tolist()
    return dict(zip(zip(*data.edge_index.tolist(), strict=True), values, strict=True))


@pytest.fixture(scope="module")
def mill(stub_index: Stub) -> SimpleNamespace:
    """Four names, three passages, two facts. All of it is in the candidates of any question.

    Nodes: 0 Tarn Mill, 1 Orla Venn, 2 Port Isk, 3 Orla Mill; 4, 5, 6 the passages.
    """
    return stub_index(
        ["Tarn Mill", "Orla Venn", "Port Isk", "Orla Mill"],
        [(0, 1, (0,)), (1, 2, (1,))],
        passages=["Tarn Mill: built by Orla Venn", "Orla Venn: born in Port Isk", "quince jam"],
        mentions=[(0, 0), (0, 1), (1, 1), (1, 2)],
        subjects={0: 0},
        synonyms=[(0, 3, 0.9)],
        entity_vectors=np.stack([X, Y, Z, -X]),
        fact_vectors=np.stack([HALF, Z]),
        passage_vectors=np.stack([X, Y, -X]),
    )


def idf(df: int) -> float:
    return log(1 + (3 - df + 0.5) / (df + 0.5))


def test_shapes_and_types(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Who built Tarn Mill?")
    assert data.num_nodes == 7
    assert data.node_input.shape == (7, len(NODE_INPUTS))
    assert data.edge_input.shape == (14, len(EDGE_INPUTS))  # two facts, a synonym and four mentions, both ways
    assert data.node_input.dtype == data.edge_input.dtype == torch.float32
    for name in ("edge_kind", "edge_index", "node_kind", "node_number", "edge_triple"):
        assert data[name].dtype == torch.int64
    assert data.node_kind.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert data.node_number.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert sorted(data.edge_triple.tolist()) == [-1] * 10 + [0, 0, 1, 1]
    assert len(set(NODE_INPUTS)) == len(NODE_INPUTS)
    assert len(set(EDGE_INPUTS)) == len(EDGE_INPUTS)


def test_numbers_stay_as_they_are_in_a_batch(mill: SimpleNamespace) -> None:
    """torch-geometric shifts whatever has "index" in its name; numbers of nodes must not move, ends of edges must."""
    data = inputs_of(mill, "Who built Tarn Mill?")
    batch = Batch.from_data_list([data, data])
    assert batch.node_number.tolist() == [0, 1, 2, 3, 0, 1, 2] * 2
    assert batch.edge_triple.tolist() == data.edge_triple.tolist() * 2
    assert batch.edge_index.tolist() == torch.cat([data.edge_index, data.edge_index + 7], dim=1).tolist()


def test_cosine_by_hand(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Who?", HALF)
    h = 0.5**0.5
    assert column(data, "cosine") == pytest.approx([h, h, 0, -h, h, h, -h], abs=1e-6)
    entities, passages = np.array([h, h, 0, -h]), np.array([h, h, -h])
    expected = [*(entities - entities.mean()) / entities.std(), *(passages - passages.mean()) / passages.std()]
    assert column(data, "cosine_z") == pytest.approx(expected, abs=1e-5)


def test_overlap_is_the_idf_share_of_a_name_and_of_the_question(mill: SimpleNamespace) -> None:
    """ "mill" stands in one passage, "orla" in two; "zemmer" in none, so nobody knows it."""
    data = inputs_of(mill, "ORLA, mill? zemmer")
    rare, common = idf(1), idf(2)
    names = [0.5, 0.5, 0.0, 1.0]
    texts = [1.0, common / (rare + common), 0.0]
    assert column(data, "overlap") == pytest.approx([*names, *texts], abs=1e-6)


def test_bm25_is_a_share_of_the_best(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Orla mill")
    scores = mill.lexical.bm25(mill.lexical.token_ids("Orla mill")).astype(float)
    assert scores[0] > scores[1] > scores[2] == 0
    assert column(data, "bm25") == pytest.approx([0] * 4 + [1.0, scores[1] / scores[0], 0.0])
    z = (scores - scores.mean()) / scores.std()
    assert column(data, "bm25_z") == pytest.approx([0] * 4 + z.tolist(), abs=1e-5)


def test_kind_hop_degree_and_document_frequency(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Who?", X, CandidateSettings(seeds=1, facts=0))  # starts at Tarn Mill alone
    assert column(data, "passage") == [0, 0, 0, 0, 1, 1, 1]
    assert column(data, "hop_0") == [1, 0, 0, 0, 0, 0, 0]
    assert column(data, "hop_1") == [0, 1, 0, 1, 0, 0, 0]
    assert column(data, "hop_2") == [0, 0, 1, 0, 0, 0, 0]
    assert column(data, "no_hop") == [0, 0, 0, 0, 1, 1, 1]
    degree = np.array([3, 4, 2, 1, 2, 2, 0])
    assert column(data, "log_degree") == pytest.approx((np.log(2.0 + degree) / 10).tolist())
    assert column(data, "inverse_sqrt_df") == pytest.approx([1, 0.5**0.5, 1, 1, 1, 1, 1])


def test_facts_at_a_node_and_on_an_edge(mill: SimpleNamespace) -> None:
    """Fact 0 (cosine 0.71) joins 0 and 1 in passage 0, fact 1 (cosine 0) joins 1 and 2 in passage 1."""
    data, h = inputs_of(mill, "Who?"), 0.5**0.5
    edges = edge_column(data, "fact_cosine")
    assert edges == pytest.approx(
        {(1, 0): h, (0, 1): h, (1, 2): 0, (2, 1): 0, (0, 3): 0, (3, 0): 0}
        | {(a, b): 0 for p, e in ((4, 0), (4, 1), (5, 1), (5, 2)) for a, b in ((p, e), (e, p))},
        abs=1e-6,
    )
    assert edge_column(data, "fact_cosine_z")[0, 1] == pytest.approx(1.0, abs=1e-5)  # of the two distinct facts
    assert edge_column(data, "fact_cosine_z")[1, 2] == pytest.approx(-1.0, abs=1e-5)
    assert column(data, "fact_cosine") == pytest.approx([h, h, 0, 0, h, 0, 0], abs=1e-6)
    kinds = dict(zip(zip(*data.edge_index.tolist(), strict=True), data.edge_kind.tolist(), strict=True))
    assert (kinds[0, 1], kinds[1, 0], kinds[0, 3], kinds[3, 0]) == (FACT, INVERSE_FACT, SYNONYM, SYNONYM)
    weight = edge_column(data, "weight")
    assert (weight[0, 3], weight[3, 0]) == pytest.approx((0.9, 0.9))
    assert {value for ends, value in weight.items() if 3 not in ends} == {1.0}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a b c d e f g h", ["a b c d", "c d e f", "e f g h"]),
        ("a b c d e", ["a b c", "b c d", "c d e"]),
        ("Who?", ["Who?"] * 3),
        ("谁建造了它？", ["谁建造了它？"] * 3),
        ("  ", ["  "] * 3),
    ],
)
def test_parts_of_a_question(text: str, parts: list[str]) -> None:
    assert question_parts(text) == parts


def test_parts_are_compared_with_each_node_and_each_fact(mill: SimpleNamespace) -> None:
    """Facts stand at 45 degrees and along Z, names at X, Y, Z and -X, passages at X, Y and -X."""
    data = inputs_of(mill, "Who built Tarn Mill?", X, parts=np.stack([X, Z, HALF]))
    for part, vector in (("first", X), ("middle", Z), ("last", HALF)):
        names, passages = np.stack([X, Y, Z, -X]) @ vector, np.stack([X, Y, -X]) @ vector
        expected = [*standardise(names), *standardise(passages)]
        assert column(data, f"{part}_z") == pytest.approx(expected, abs=1e-6)
        fact = standardise(np.stack([HALF, Z]) @ vector)
        found = edge_column(data, f"fact_{part}_z")
        assert [found[0, 1], found[1, 0], found[1, 2], found[2, 1]] == pytest.approx(fact[[0, 0, 1, 1]], abs=1e-6)
        best = [
            fact[0],
            fact.max(),
            fact[1],
            0.0,
        ]  # of Tarn Mill, of Orla Venn, of Port Isk, of Orla Mill, who has none
        assert column(data, f"fact_{part}_z")[:4] == pytest.approx(standardise(np.array(best)), abs=1e-5)
        assert column(data, f"fact_{part}_z")[4:] == pytest.approx(standardise(np.array([*fact, 0.0])), abs=1e-5)


def test_rest_is_the_question_without_the_name_in_it(mill: SimpleNamespace) -> None:
    """The question points half at Tarn Mill's own vector; what is left of it points at Orla Venn's."""
    data = inputs_of(mill, "Who built Tarn Mill?", HALF)
    assert column(data, "rest") == pytest.approx([0, 1, 0, 0, 0, 1, 0], abs=1e-6)
    fact = edge_column(data, "fact_rest")
    assert (fact[0, 1], fact[1, 2]) == pytest.approx((0.5**0.5, 0.0), abs=1e-6)


def test_without_a_name_the_rest_is_the_question(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Who built a mill?", HALF)
    for rest, whole in (("rest", "cosine"), ("rest_z", "cosine_z"), ("fact_rest", "fact_cosine")):
        assert column(data, rest) == pytest.approx(column(data, whole), abs=1e-6)


def test_a_question_that_is_a_name_keeps_its_vector(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "Tarn Mill", X)
    assert column(data, "rest") == column(data, "cosine")


MENTIONS = [(0, 0), (0, 1), (1, 0), (2, 1)]  # (passage, entity)


@pytest.fixture(scope="module")
def households(stub_index: Stub) -> SimpleNamespace:
    """Passages 0 and 1 are about Brack, 2 about Dell, 3 about nobody.

    Facts: 0 joins Brack and Dell in passage 0; 1 and 2 stand in passage 1, 3 in passage 3, and name no second entity.
    """
    return stub_index(
        ["Brack", "Dell"],
        [(0, 1, (0,))],
        lone_facts=[(1,), (1,), (3,)],
        passages=["oats for winter", "barley", "rye", "quince jam"],
        mentions=MENTIONS,
        subjects={0: 0, 1: 0, 2: 1},
        entity_vectors=np.stack([Y, Z]),
        fact_vectors=np.stack([X, 0.6 * X + 0.8 * Y, 0.96 * X + 0.28 * Y, -X]),
        passage_vectors=np.stack([0.96 * X + 0.28 * Y, 0.8 * X + 0.6 * Y, Y, -X]),
    )


ASKED = "What did Brack sow?"  # asked with HALF, of which X is left when Brack, who is Y, is taken out


def test_the_best_facts_of_a_passage_are_among_all_its_own(households: SimpleNamespace) -> None:
    """Passage 1 names one entity: no edge carries its facts. Its best of either kind are two different facts."""
    data, h = inputs_of(households, ASKED, HALF), 0.5**0.5
    assert edge_column(data, "fact_cosine") == pytest.approx(
        {(1, 0): h, (0, 1): h} | {(a, b): 0 for p, e in MENTIONS for a, b in ((p + 2, e), (e, p + 2))}, abs=1e-6
    )
    # The entities see the fact between them alone, passage 2 has none, and a fact against the question stays below 0.
    assert column(data, "fact_cosine") == pytest.approx([h, h, h, 1.4 * h, 0, -h], abs=1e-6)
    assert column(data, "fact_rest") == pytest.approx([1, 1, 1, 0.96, 0, -1], abs=1e-6)


def test_facts_are_standardised_among_those_of_edges_and_passages(households: SimpleNamespace) -> None:
    facts = np.array([1, 1.4, 1.24, -1]) * 0.5**0.5
    z = (facts - facts.mean()) / facts.std()
    assert edge_column(inputs_of(households, ASKED, HALF), "fact_cosine_z")[0, 1] == pytest.approx(z[0], abs=1e-5)


def test_document_frequency_counts_mentions_of_an_entity_and_passages_on_a_subject(
    households: SimpleNamespace,
) -> None:
    """Dell is named in two passages, of which one is about it."""
    half = 0.5**0.5
    data = inputs_of(households, "?")
    assert column(data, "inverse_sqrt_df") == pytest.approx([half, half, half, half, 1, 1])


def test_document_frequency_looks_at_the_index_not_at_the_candidates(households: SimpleNamespace) -> None:
    """Passage 0 comes alone, by a word; the other one on its subject is no candidate."""
    chosen = CandidateSettings(max_passages=1, dense_passages=0, pagerank_passages=0, bm25_passages=1)
    data = inputs_of(households, "winter", HALF, chosen)
    assert data.node_number[data.node_kind == 1].tolist() == [0]
    assert column(data, "inverse_sqrt_df")[-1] == pytest.approx(0.5**0.5)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), num_entities=st.integers(0, 8), num_passages=st.integers(1, 6))
def test_best_facts_of_any_graph(random_index: Stub, seed: int, num_entities: int, num_passages: int) -> None:
    """Against a plain reading of the definitions."""
    index = random_index(seed, num_entities, num_passages)
    data = inputs_of(index, "zemmer", X)
    graph, passage = index.graph, data.node_kind == 1
    numbers = data.node_number[passage].tolist()
    assert numbers == list(range(num_passages))  # all of them are near enough
    ptr = graph.fact_passage_ptr
    facts: dict[int, list[float]] = {p: [] for p in numbers}
    for fact in range(graph.num_facts):
        for p in graph.fact_passage[ptr[fact] : ptr[fact + 1]].tolist():
            facts[p].append(float(index.fact_vectors.rows[fact] @ X))
    best = [max(facts[p], default=0.0) for p in numbers]
    assert data.node_input[passage, NODE_INPUTS.index("fact_cosine")].tolist() == pytest.approx(best, abs=1e-5)


def test_pagerank_is_the_standardised_log_mass(mill: SimpleNamespace) -> None:
    signals = CandidateBuilder(mill, CandidateSettings()).signals("Who?", X)
    z = column(inputs_of(mill, "Who?"), "pagerank_z")
    mass = np.log(signals.pagerank + 1e-7)
    for part in (slice(0, 4), slice(4, 7)):
        assert z[part] == pytest.approx(((mass[part] - mass[part].mean()) / mass[part].std()).tolist(), abs=1e-4)


def test_words_that_nothing_holds(mill: SimpleNamespace) -> None:
    data = inputs_of(mill, "zemmer 关系 ?!")
    for name in ("overlap", "bm25", "bm25_z"):
        assert column(data, name) == [0.0] * 7
    assert data.node_input.isfinite().all()


def test_another_scale_of_bm25_changes_nothing(mill: SimpleNamespace) -> None:
    builder = CandidateBuilder(mill, CandidateSettings())
    signals = builder.signals("Who built Tarn Mill?", HALF)
    found = builder.build(signals)
    parts = np.stack([HALF] * 3)
    one = subgraph(builder, signals, found, parts)
    two = subgraph(builder, replace(signals, bm25=signals.bm25 * 8), found, parts)
    assert torch.allclose(one.node_input, two.node_input, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_an_encoder_whose_space_is_turned_gives_the_same_inputs(random_index: Stub, seed: int) -> None:
    """Nothing depends on the axes, so another encoder with the same cosines is the same to the network."""
    index = random_index(seed, 8, 4, 15)
    rng = np.random.default_rng(seed)
    vector = rng.normal(size=4).astype(np.float32)
    vector /= np.linalg.norm(vector)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0].astype(np.float32)
    one = inputs_of(index, "mill by the sea", vector)
    for name in ("entity_vectors", "fact_vectors", "passage_vectors"):
        setattr(index, name, Vectors(getattr(index, name).rows @ turn))
    two = inputs_of(index, "mill by the sea", vector @ turn)
    assert torch.equal(one.edge_index, two.edge_index)
    assert torch.allclose(one.node_input, two.node_input, atol=2e-3)
    assert torch.allclose(one.edge_input, two.edge_input, atol=2e-3)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_entities=st.integers(0, 12),
    num_passages=st.integers(0, 6),
    num_links=st.integers(0, 40),
    fanout=st.integers(1, 12),
    text=st.sampled_from(["mill", "sea port", "zemmer", "?", "mill sea port jam year winter venn isk"]),
)
def test_inputs_of_any_graph(
    random_index: Stub, seed: int, num_entities: int, num_passages: int, num_links: int, fanout: int, text: str
) -> None:
    index = random_index(seed, num_entities, num_passages, num_links)
    chosen = CandidateSettings(seeds=2, facts=1, max_fanout=fanout, max_passages=3)
    data = inputs_of(index, text, X, chosen)
    nodes, edges = data.node_input.numpy(), data.edge_input.numpy()
    assert nodes.shape == (data.num_nodes, len(NODE_INPUTS))
    assert edges.shape == (data.edge_index.shape[1], len(EDGE_INPUTS))
    assert np.isfinite(nodes).all()
    assert np.isfinite(edges).all()
    assert np.abs(nodes).max(initial=0.0) <= 6
    assert (nodes[:, [NODE_INPUTS.index(n) for n in ("hop_0", "hop_1", "hop_2", "no_hop")]].sum(axis=1) == 1).all()
    share = nodes[:, [NODE_INPUTS.index(n) for n in ("overlap", "bm25", "inverse_sqrt_df")]]
    assert (share >= 0).all()
    assert (share <= 1 + 1e-6).all()
    for kind in (0, 1):
        part = nodes[data.node_kind.numpy() == kind]
        for name in ("cosine_z", "rest_z", "pagerank_z", "bm25_z"):
            z = part[:, NODE_INPUTS.index(name)]
            assert abs(float(z.mean() if len(z) else 0.0)) < 1e-3
    # A link says the same from both its ends.
    rows = zip(*data.edge_index.tolist(), data.edge_triple.tolist(), (row.tobytes() for row in edges), strict=True)
    seen = {row for row in rows if row[2] >= 0}
    assert {(t, s, f, x) for s, t, f, x in seen} == seen


def test_nothing_at_all(stub_index: Stub) -> None:
    data = inputs_of(stub_index([]), "Who?")
    assert (data.num_nodes, data.node_input.shape, data.edge_input.shape) == (
        0,
        (0, len(NODE_INPUTS)),
        (0, len(EDGE_INPUTS)),
    )


def test_a01_passages_alone(stub_index: Stub) -> None:
    data = inputs_of(stub_index([], passages=["It was late.", "Then it stopped."], passage_vectors=AXES[:2]), "late")
    assert data.node_kind.tolist() == [1, 1]
    assert column(data, "cosine") == [1.0, 0.0]
    assert column(data, "cosine_z") == pytest.approx([1.0, -1.0])
    assert data.edge_index.shape == (2, 0)


def test_over_a_real_index(z: GraphIndex) -> None:
    question = "Which sea is near the birthplace of the builder of Tarn Mill?"
    data = inputs_of(z, question, z.encode([question])[0])
    assert data.num_nodes == 10
    assert data.node_input.isfinite().all()
    names = [z.entity(int(i)).name for i in data.node_number[data.node_kind == 0]]
    assert column(data, "overlap")[names.index("Tarn Mill")] == pytest.approx(1.0)
    assert 0 < column(data, "overlap")[names.index("Halder Sea")] < 1


def test_standardise() -> None:
    assert standardise(np.array([1.0, 2.0, 3.0])).tolist() == pytest.approx([-(1.5**0.5), 0.0, 1.5**0.5])
    assert standardise(np.full(4, 0.3)).tolist() == [0.0] * 4
    assert standardise(np.zeros(0)).shape == (0,)
    assert standardise(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    outlier = np.zeros(100)
    outlier[7] = 1.0
    assert standardise(outlier).max() == 6.0
    assert standardise(-outlier).min() == -6.0
    assert standardise(outlier).dtype == np.float32


def test_a_subject_link_weighs_one_over_the_passages_on_the_subject(random_index: Stub) -> None:
    index = random_index(3, 8, 6, 25)
    data = inputs_of(index, "mill")
    weight = data.edge_input[:, EDGE_INPUTS.index("weight")].numpy()
    entity = data.node_number.numpy()[data.edge_index.numpy().min(axis=0)]
    for kind, number, found in zip(data.edge_kind.tolist(), entity, weight, strict=True):
        if kind in (SUBJECT, INVERSE_SUBJECT):
            assert found == pytest.approx(1 / np.sum(index.subjects == number))
    assert np.isin(data.edge_kind.numpy(), (SUBJECT, INVERSE_SUBJECT)).any()
