"""Query-relative inputs of the network: no raw embedding, so that one checkpoint serves any encoder and subject."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from gfm.graph.knowledge_graph import expand
from gfm.retrieve.candidates import NO_HOP, CandidateBuilder, Candidates, Signals

ENTITY, PASSAGE = 0, 1
NODE_INPUTS = (
    "cosine",  # with the question
    "cosine_z",  # standardised among the candidates of the node's kind
    "fact_cosine",  # best fact of a passage, best candidate fact at an entity
    "fact_cosine_z",
    "bm25",  # of a passage, share of the best score in the index
    "bm25_z",
    "overlap",  # idf-weighted share of a name's tokens that stand in the question; for a passage, of the question's in it
    "pagerank_z",  # log mass, standardised
    "passage",  # kind of node
    "hop_0",
    "hop_1",
    "hop_2",
    "no_hop",
    "log_degree",
    "inverse_sqrt_df",
)
EDGE_INPUTS = (
    "fact_cosine",  # of a fact edge; of a mention, the best candidate fact of the passage that names the entity
    "fact_cosine_z",
    "weight",
)
_EPSILON = 1e-6


def standardise(values: np.ndarray) -> np.ndarray:
    """(x - mean) / standard deviation, clipped to [-6, 6]; zeros where all values are equal."""
    if not len(values):
        return values
    spread = float(values.std())
    if spread < _EPSILON:
        return np.zeros_like(values)
    return np.clip((values - values.mean()) / spread, -6.0, 6.0)


def subgraph(builder: CandidateBuilder, signals: Signals, found: Candidates) -> Data:
    """The network's input for one question.

    Returns:
        `Data` with node_input float32[n, 15], edge_input float32[e, 3], edge_kind int64[e], edge_index int64[2, e] sorted
        by target, node_kind int64[n], node_index int64[n] (entity or passage number), edge_triple int64[e].
    """
    edge_cosine, edge_z = _edge_cosines(builder, signals, found)
    nodes = _node_inputs(builder, signals, found, edge_cosine)
    weight = builder.graph.edge_weight[found.edge]
    data = Data(
        node_input=torch.from_numpy(nodes),
        edge_input=torch.from_numpy(np.stack([edge_cosine, edge_z, weight], axis=1).astype(np.float32)),
        edge_kind=torch.from_numpy(found.edge_kind.astype(np.int64)),
        edge_index=torch.from_numpy(found.edge_index.astype(np.int64)),
        node_kind=torch.from_numpy((np.arange(len(nodes)) >= len(found.entities)).astype(np.int64)),
        node_index=torch.from_numpy(np.concatenate([found.entities, found.passages])),
        edge_triple=torch.from_numpy(builder.graph.edge_triple[found.edge].astype(np.int64)),
    )
    data.num_nodes = len(nodes)
    return data


def _edge_cosines(builder: CandidateBuilder, signals: Signals, found: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Cosine of each edge's fact, and its z-score over the distinct candidate facts; float32[e] each, 0 for synonyms."""
    graph = builder.graph
    triple = graph.edge_triple[found.edge]
    is_fact = triple >= 0
    cosine = np.zeros(len(triple), dtype=np.float32)
    z = np.zeros(len(triple), dtype=np.float32)
    fact = graph.triple_fact[triple[is_fact]] if is_fact.any() else np.zeros(0, dtype=np.int64)
    facts, group = np.unique(fact, return_inverse=True)
    values = builder.index.fact_vectors.cosine(facts, signals.vector)
    cosine[is_fact] = values[group]
    z[is_fact] = standardise(values)[group]
    n = len(found.hop)
    best, best_z = _mention_cosines(builder, found, facts, values, standardise(values), n)
    key = found.edge_index[0].astype(np.int64) * n + found.edge_index[1]
    cosine[~is_fact] = best(key[~is_fact])
    z[~is_fact] = best_z(key[~is_fact])
    return cosine, z


def _mention_cosines(builder, found, facts, values, z, n):  # noqa: ANN001, ANN202
    """For a passage and an entity in it: the best candidate fact of the passage that has the entity as an end."""
    graph = builder.graph
    local = np.zeros(graph.num_nodes, dtype=np.int32)
    local[found.entities] = np.arange(1, len(found.entities) + 1)
    local[found.passages + graph.num_entities] = np.arange(len(found.entities) + 1, n + 1)
    triples, owner_t = expand(graph.fact_triple_ptr, facts)
    sources, owner_s = expand(graph.fact_passage_ptr, facts)
    # A fact has few sources (nearly always one): pair the k-th source of each fact with all its triples.
    keys, scores, zs = [], [], []
    count = np.diff(graph.fact_passage_ptr)[facts] if len(facts) else np.zeros(0, dtype=np.int64)
    first = graph.fact_passage_ptr[facts] if len(facts) else count
    for k in range(int(count.max(initial=0))):
        has = count[owner_t] > k
        t, o = triples[has], owner_t[has]
        passage = local[graph.fact_passage[first[o] + k] + graph.num_entities].astype(np.int64) - 1
        for end in (graph.triple_head[t], graph.triple_tail[t]):
            entity = local[end].astype(np.int64) - 1
            ok = (passage >= 0) & (entity >= 0)
            keys += [passage[ok] * n + entity[ok], entity[ok] * n + passage[ok]]
            scores += [values[o[ok]]] * 2
            zs += [z[o[ok]]] * 2
        if k >= 8:
            break
    key = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    score = np.concatenate(scores) if keys else np.zeros(0, dtype=np.float32)
    zscore = np.concatenate(zs) if keys else np.zeros(0, dtype=np.float32)
    order = np.lexsort((-score, key))
    key, score, zscore = key[order], score[order], zscore[order]
    is_first = np.ones(len(key), dtype=bool)
    is_first[1:] = key[1:] != key[:-1]
    key, score, zscore = key[is_first], score[is_first], zscore[is_first]

    def look(table):  # noqa: ANN001, ANN202
        def find(wanted):  # noqa: ANN001, ANN202
            if not len(key):
                return np.zeros(len(wanted), dtype=np.float32)
            at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            return np.where(key[at] == wanted, table[at], 0.0).astype(np.float32)

        return find

    return look(score), look(zscore)


def _node_inputs(builder: CandidateBuilder, signals: Signals, found: Candidates, edge_cosine: np.ndarray) -> np.ndarray:
    graph, index = builder.graph, builder.index
    n_e, n = len(found.entities), len(found.hop)
    column = {name: np.zeros(n, dtype=np.float32) for name in NODE_INPUTS}
    entity, passage = slice(0, n_e), slice(n_e, n)
    column["cosine"][entity] = index.entity_vectors.cosine(found.entities, signals.vector)
    column["cosine"][passage] = index.passage_vectors.cosine(found.passages, signals.vector)
    best = np.zeros(n, dtype=np.float32)
    np.maximum.at(best, found.edge_index[1], edge_cosine)
    column["fact_cosine"] = best
    bm25 = signals.bm25[found.passages]
    column["bm25"][passage] = bm25 / max(float(signals.bm25.max(initial=0.0)), _EPSILON)
    column["bm25_z"][passage] = standardise(bm25)
    column["overlap"][entity] = _name_overlap(builder, signals, found.entities)
    nodes = np.concatenate([found.entities, found.passages + graph.num_entities])
    mass = np.log(signals.pagerank[nodes] + 1e-7).astype(np.float32)
    for part in (entity, passage):
        column["cosine_z"][part] = standardise(column["cosine"][part])
        column["fact_cosine_z"][part] = standardise(best[part])
        column["pagerank_z"][part] = standardise(mass[part])
    column["passage"][passage] = 1.0
    for hop, name in ((0, "hop_0"), (1, "hop_1"), (2, "hop_2"), (NO_HOP, "no_hop")):
        column[name][found.hop == hop] = 1.0
    column["log_degree"] = builder.log_degree[nodes] / 10.0
    column["inverse_sqrt_df"][entity] = 1.0 / np.sqrt(np.maximum(graph.entity_df[found.entities], 1))
    return np.stack([column[name] for name in NODE_INPUTS], axis=1).astype(np.float32)


def _name_overlap(builder: CandidateBuilder, signals: Signals, entities: np.ndarray) -> np.ndarray:
    lexical = builder.index.lexical
    positions, owner = expand(lexical.name_ptr, entities)
    token = lexical.name_token[positions]
    idf = lexical.idf[token]
    shared = np.isin(token, signals.token_ids)
    total = np.bincount(owner, weights=idf, minlength=len(entities))
    found = np.bincount(owner[shared], weights=idf[shared], minlength=len(entities))
    return (found / np.maximum(total, _EPSILON)).astype(np.float32)
