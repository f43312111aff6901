"""What a question needs of its candidate subgraph: gold passages, and the entities and facts that they imply."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gfm.index.index import GraphIndex
from gfm.text.normalise import name_key


def gold_names(metadata: dict[str, Any]) -> set[str]:
    """Keys of the names that a benchmark gives with a question: ends of evidence triples, and answers."""
    answer = metadata.get("answers", metadata.get("answer", []))
    names = [answer] if isinstance(answer, str) else list(answer)
    for head, _, tail in metadata.get("evidences", []):
        names += [head, tail]
    return {key for name in names if isinstance(name, str) and (key := name_key(name)) not in {"", "yes", "no"}}


def label(data: Data, index: GraphIndex, gold_documents: Collection[str], metadata: dict[str, Any]) -> Data:
    """Add y (n,) and edge_y (e,), 1 gold, 0 not, -1 unknown, and document (n,), the number of each passage's document.

    Entities: the subjects of gold passages and the names of `gold_names`. Facts: weak labels, gold where a fact of a
    gold passage joins two gold entities. Where a question has no gold of a kind, that kind is unknown.
    """
    graph = index.graph
    is_passage = data.node_kind.numpy() == 1
    number = data.node_number.numpy()
    gold_passage = np.array([d in gold_documents for d in index.document_ids])
    y = np.zeros(len(number), dtype=np.int64)
    y[is_passage] = gold_passage[number[is_passage]] if gold_documents else -1
    names = gold_names(metadata)
    gold_entity = np.array([entity.key in names for entity in index.entities(number[~is_passage])], dtype=bool)
    gold_entity |= np.isin(number[~is_passage], index.subjects[gold_passage])
    y[~is_passage] = gold_entity
    source, target = data.edge_index.numpy()
    triple = data.edge_triple.numpy()
    edge_y = np.full(len(triple), -1, dtype=np.int64)
    is_fact = triple >= 0
    fact = graph.triple_fact[triple[is_fact]]
    first_source = graph.fact_passage[graph.fact_passage_ptr[fact]]
    edge_y[is_fact] = gold_passage[first_source] & (y[source[is_fact]] == 1) & (y[target[is_fact]] == 1)
    if not gold_entity.any():
        y[~is_passage] = -1
    if not (edge_y == 1).any():
        edge_y[:] = -1
    documents = {d: i for i, d in enumerate(dict.fromkeys(index.document_ids))}
    document = np.full(len(number), -1, dtype=np.int64)
    document[is_passage] = [documents[index.document_ids[p]] for p in number[is_passage]]
    data.document = torch.from_numpy(document)
    data.y, data.edge_y = torch.from_numpy(y), torch.from_numpy(edge_y)
    return data
