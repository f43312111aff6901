"""Candidate subgraphs of a question set, built once per (index, settings, questions) and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

from gfm.index.index import GraphIndex
from gfm.progress import track
from gfm.retrieve.candidates import CandidateBuilder
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS, question_parts, subgraph
from gfm.retrieve.signals import CandidateSettings
from gfm.train.labels import gold_names, label
from gfm.types import GfmError, Query

_NODE_KEYS = ("node_input", "node_kind", "node_number", "y", "document")
_EDGE_KEYS = ("edge_input", "edge_kind", "edge_index", "edge_triple", "edge_y")
# Raise when the meaning of an input or of a label changes: old files are then built anew.
_VERSION = 7


def make_subgraphs(
    index: GraphIndex,
    queries: Sequence[Query],
    qrels: dict[str, dict[str, int]],
    settings: CandidateSettings,
    title: str = "",
) -> list[Data]:
    """One labelled subgraph for each question of ``qrels``, in the order of ``queries``.

    Each carries ``num_gold``, the number of gold documents, in the candidates or not; of a question without any, whose
    gold is entities, the number of its answers.
    """
    builder = CandidateBuilder(index, settings)
    asked = [q for q in queries if q.id in qrels]
    vectors = index.encode([text for q in asked for text in (q.text, *question_parts(q.text))])
    out = []
    for query, (vector, *parts) in track(
        zip(asked, vectors.reshape(len(asked), 4, vectors.shape[1]), strict=True), len(asked), title
    ):
        signals = builder.signals(query.text, vector)
        data = subgraph(builder, signals, builder.build(signals), np.stack(parts))
        gold = {d for d, score in qrels[query.id].items() if score > 0}
        label(data, index, gold, query.metadata)
        data.num_gold = torch.tensor([len(gold or gold_names(query.metadata))])
        out.append(data)
    return out


def save_subgraphs(path: Path, subgraphs: Sequence[Data]) -> None:
    """Write subgraphs as one safetensors file, atomically."""
    tensors = {k: torch.cat([d[k] for d in subgraphs]) for k in (*_NODE_KEYS, "num_gold")}
    for key in _EDGE_KEYS:
        tensors[key] = torch.cat([d[key] for d in subgraphs], dim=1 if key == "edge_index" else 0).contiguous()
    tensors["nodes"] = torch.tensor([d.num_nodes for d in subgraphs])
    tensors["edges"] = torch.tensor([d.edge_index.shape[1] for d in subgraphs])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.part")
    save_file(tensors, temporary)
    temporary.replace(path)


def load_subgraphs(path: Path) -> list[Data]:
    """The inverse of `save_subgraphs`."""
    tensors = load_file(path)
    nodes, edges = tensors.pop("nodes").tolist(), tensors.pop("edges").tolist()
    gold = tensors.pop("num_gold")
    parts = {
        k: torch.split(t, edges if k in _EDGE_KEYS else nodes, dim=int(k == "edge_index")) for k, t in tensors.items()
    }
    out = []
    for i, count in enumerate(nodes):
        data = Data(**{k: rows[i] for k, rows in parts.items()}, num_gold=gold[i : i + 1])
        data.num_nodes = count
        out.append(data)
    return out


def cached_subgraphs(
    folder: Path,
    index: GraphIndex,
    queries: Sequence[Query],
    qrels: dict[str, dict[str, int]],
    settings: CandidateSettings,
    title: str = "",
) -> list[Data]:
    """Load the subgraphs of these questions over this index from ``folder``, or build and keep them.

    Raises:
        GfmError: No question has gold.
    """
    asked = [[q.id, q.text, sorted(qrels.get(q.id, {}).items()), q.metadata] for q in queries]
    key = json.dumps(
        [_VERSION, NODE_INPUTS, EDGE_INPUTS, index.generation, asdict(settings), asked], sort_keys=True, default=str
    )
    path = folder / f"subgraphs-{hashlib.sha256(key.encode()).hexdigest()[:16]}.safetensors"
    if path.is_file():
        return load_subgraphs(path)
    made = make_subgraphs(index, queries, qrels, settings, title)
    if not made:
        raise GfmError(f"{title or folder}: expected questions with gold passages (qrels), found none")
    save_subgraphs(path, made)
    return made


def reach(subgraphs: Sequence[Data]) -> float:
    """Mean share of gold documents that are among the candidates: the ceiling of recall."""
    found = [len(d.document[(d.node_kind == 1) & (d.y == 1)].unique()) for d in subgraphs]
    return float(np.mean([count / int(d.num_gold) for count, d in zip(found, subgraphs, strict=True)]))
