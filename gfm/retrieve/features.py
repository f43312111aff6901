"""Query-relative inputs of the network: no raw embedding, so that one checkpoint serves any encoder and subject."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import INVERSE_SUBJECT, SUBJECT, expand
from gfm.retrieve.candidates import NO_HOP, CandidateBuilder, Candidates
from gfm.retrieve.signals import Signals

NODE_INPUTS = (
    "cosine",  # with the question
    "cosine_z",  # standardised among the candidates of the node's kind
    "rest",  # cosine with the rest of the question: what is left of it when the names that stand in it are taken out
    "rest_z",
    "fact_cosine",  # best fact of a passage, best candidate fact at an entity
    "fact_cosine_z",
    "fact_rest",
    "fact_rest_z",
    "first_z",  # cosine with a part of the question, see `question_parts`
    "middle_z",
    "last_z",
    "fact_first_z",
    "fact_middle_z",
    "fact_last_z",
    "bm25",  # of a passage, share of the best score in the index
    "bm25_z",
    "overlap",  # idf-weighted share of a name's tokens that the question holds, of the question's that a passage holds
    "pagerank_z",  # log mass, standardised
    "passage",  # kind of node
    "hop_0",
    "hop_1",
    "hop_2",
    "no_hop",
    "log_degree",
    "inverse_sqrt_df",  # passages that mention an entity, passages on the subject of a passage
)
EDGE_INPUTS = (
    "fact_cosine",  # of a fact edge; 0 for others
    "fact_cosine_z",
    "fact_rest",
    "fact_rest_z",
    "fact_first_z",
    "fact_middle_z",
    "fact_last_z",
    "weight",  # of a subject edge, 1 / passages on the subject: one of many says little
)
_EPSILON = 1e-6
NAMED = 0.99  # share of a name's tokens from which the question names it; rounding leaves a whole name just below 1
_MAX_NAMED = 4


def question_parts(text: str) -> list[str]:
    """The first half of a question's words, the middle half and the last half.

    A question of several steps is near none of the facts it needs as a whole; a half of it is nearer to one of them.
    """
    words = text.split() or [text]
    half, quarter = (len(words) + 1) // 2, len(words) // 4
    return [" ".join(words[start : start + half]) for start in (0, quarter, len(words) - half)]


def subgraph(builder: CandidateBuilder, signals: Signals, found: Candidates, parts: np.ndarray) -> Data:
    """The network's input for one question.

    Args:
        builder: Over the index.
        signals: Of the question.
        found: Its candidates.
        parts: float32[3, D], unit vectors of `question_parts`.

    Returns:
        `Data` with node_input float32[n, len(NODE_INPUTS)], edge_input float32[e, len(EDGE_INPUTS)],
        edge_kind int64[e], edge_index int64[2, e] sorted by target, node_kind int64[n], node_number int64[n] (entity or
        passage number), edge_triple int64[e].
    """
    overlap = builder.index.lexical.name_overlap(found.entities, signals.token_ids)
    probes = np.stack([signals.vector, _rest(builder, signals, found.entities, overlap), *parts])  # (5, D)
    facts = _FactValues(builder, found, probes)
    edges = _edge_inputs(builder, found, facts)
    nodes = _node_inputs(builder, signals, found, probes, overlap, facts)
    data = Data(
        node_input=torch.from_numpy(nodes),
        edge_input=torch.from_numpy(edges),
        edge_kind=torch.from_numpy(found.edge_kind.astype(np.int64)),
        edge_index=torch.from_numpy(found.edge_index.astype(np.int64)),
        node_kind=torch.from_numpy((np.arange(len(nodes)) >= len(found.entities)).astype(np.int64)),
        node_number=torch.from_numpy(np.concatenate([found.entities, found.passages])),
        edge_triple=torch.from_numpy(builder.graph.edge_triple[found.edge].astype(np.int64)),
    )
    data.num_nodes = len(nodes)
    return data


def standardise(values: np.ndarray) -> np.ndarray:
    """(x - mean) / standard deviation by column, clipped to [-6, 6]; zeros where a column's values are equal."""
    if not len(values):
        return values
    spread = values.std(axis=0)
    centred = values - values.mean(axis=0)
    return np.clip(np.where(spread < _EPSILON, 0.0, centred / np.maximum(spread, _EPSILON)), -6.0, 6.0).astype(
        np.float32
    )


def _rest(builder: CandidateBuilder, signals: Signals, entities: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """The question's vector with the names in it projected out, float32[D], unit norm.

    A question says whom it is about and what it asks of them; with the names taken out, facts about anybody that state
    what is asked come near, also those about people it does not name. The names are the rarest that stand in it whole.
    """
    named = np.flatnonzero(overlap >= NAMED)
    if not len(named):
        return signals.vector
    rarity = builder.graph.entity_df[entities[named]]
    names = builder.index.entity_vectors.rows[entities[named[np.lexsort((named, rarity))[:_MAX_NAMED]]]]
    basis, _ = np.linalg.qr(names.T.astype(np.float64))
    rest = signals.vector - basis @ (basis.T @ signals.vector)
    norm = float(np.linalg.norm(rest))
    return signals.vector if norm < 0.1 else (rest / norm).astype(np.float32)


class _FactValues:
    """Similarities of every fact of the subgraph with the question, with its rest and with its parts.

    Attributes:
        edge_fact: int64[e], the fact of each edge, -1 for others.
        passage_fact: int64[·], facts of the candidate passages; ``passage_owner`` says whose, in local passage numbers.
        value: float32[F, 7]: cosine, its z-score, cosine with the rest, its z-score, z-scores of the cosines with the
            three parts; only rows of these facts are set.
    """

    def __init__(self, builder: CandidateBuilder, found: Candidates, probes: np.ndarray):
        self.edge_fact = builder.edge_fact[found.edge]
        positions, self.passage_owner = expand(builder.passage_fact_ptr, found.passages)
        self.passage_fact = builder.passage_fact[positions]
        wanted = np.zeros(builder.graph.num_facts, dtype=bool)
        wanted[self.passage_fact] = True
        wanted[self.edge_fact[self.edge_fact >= 0]] = True
        facts = np.flatnonzero(wanted)
        cosine = builder.index.fact_vectors.cosines(facts, probes)  # (facts, 5)
        self.value = np.zeros((builder.graph.num_facts, 7), dtype=np.float32)
        self.value[facts] = _beside(cosine, standardise(cosine))


def _beside(raw: np.ndarray, z: np.ndarray) -> np.ndarray:
    """(m, 5) and (m, 5) to (m, 7): of whole and rest, value and z-score in turn; of the parts, the z-score."""
    return np.concatenate([raw, z], axis=1)[:, [0, 5, 1, 6, 7, 8, 9]]


def _edge_inputs(builder: CandidateBuilder, found: Candidates, facts: _FactValues) -> np.ndarray:
    """float32[e, 8]."""
    is_fact = facts.edge_fact >= 0
    out = np.zeros((len(is_fact), len(EDGE_INPUTS)), dtype=np.float32)
    out[is_fact, :7] = facts.value[facts.edge_fact[is_fact]]
    out[:, 7] = builder.graph.edge_weight[found.edge]
    subject = np.flatnonzero(np.isin(found.edge_kind, (SUBJECT, INVERSE_SUBJECT)))
    about = found.entities[found.edge_index[:, subject].min(axis=0)]  # entities have the smaller local numbers
    out[subject, 7] = 1.0 / np.maximum(builder.subject_count[about + 1], 1)
    return out


def _node_inputs(
    builder: CandidateBuilder,
    signals: Signals,
    found: Candidates,
    probes: np.ndarray,
    overlap: np.ndarray,
    facts: _FactValues,
) -> np.ndarray:
    """float32[n, 25]."""
    graph, index = builder.graph, builder.index
    n_e, n = len(found.entities), len(found.hop)
    entity, passage = slice(0, n_e), slice(n_e, n)
    nodes = np.concatenate([found.entities, found.passages + graph.num_entities])
    out = np.zeros((n, len(NODE_INPUTS)), dtype=np.float32)
    column = {name: i for i, name in enumerate(NODE_INPUTS)}
    best = _best_facts(found, facts)
    mass = np.log(signals.pagerank[nodes] + 1e-7)[:, None]
    for part, vectors, numbers in (
        (entity, index.entity_vectors, found.entities),
        (passage, index.passage_vectors, found.passages),
    ):
        raw = np.concatenate([vectors.cosines(numbers, probes), best[part], mass[part]], axis=1)  # (·, 11)
        z = standardise(raw)
        near, near_fact = _beside(raw[:, :5], z[:, :5]), _beside(raw[:, 5:10], z[:, 5:10])
        out[part, :14] = np.concatenate([near[:, :4], near_fact[:, :4], near[:, 4:], near_fact[:, 4:]], axis=1)
        out[part, column["pagerank_z"]] = z[:, 10]
    subject = index.subjects[found.passages]
    bm25 = signals.bm25[found.passages]
    out[passage, column["bm25"]] = bm25 / max(float(signals.bm25.max(initial=0.0)), _EPSILON)
    out[passage, column["bm25_z"]] = standardise(bm25)
    out[entity, column["overlap"]] = overlap
    out[passage, column["overlap"]] = index.lexical.coverage(signals.token_ids, found.passages)
    out[passage, column["passage"]] = 1.0
    for hop, name in ((0, "hop_0"), (1, "hop_1"), (2, "hop_2"), (NO_HOP, "no_hop")):
        out[:, column[name]] = found.hop == hop
    out[:, column["log_degree"]] = builder.log_degree[nodes] / 10.0
    df = np.concatenate([graph.entity_df[found.entities], np.where(subject < 0, 1, builder.subject_count[subject + 1])])
    out[:, column["inverse_sqrt_df"]] = 1.0 / np.sqrt(np.maximum(df, 1))
    return out


def _best_facts(found: Candidates, facts: _FactValues) -> np.ndarray:
    """Best similarities of a fact at each node, float32[n, 5]: a passage's own facts, an entity's edges; 0 without."""
    n_e, n = len(found.entities), len(found.hop)
    is_fact = facts.edge_fact >= 0
    node = np.concatenate([found.edge_index[1, is_fact], n_e + facts.passage_owner])
    value = facts.value[np.concatenate([facts.edge_fact[is_fact], facts.passage_fact])][:, [0, 2, 4, 5, 6]]
    best = np.full((n, 5), -np.inf, dtype=np.float32)
    np.maximum.at(best, node, value)
    return np.where(np.isfinite(best), best, 0.0)
