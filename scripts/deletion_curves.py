"""How faithful the contributions of links are: what is left of a passage's score when the links named first are gone.

    python scripts/deletion_curves.py INDEX SET [--questions 50] [--checkpoint FOLDER] [--seed 0]

For the first three passages of each question, kept links are deleted from the subgraph in several orders, and the
network is asked again. A table has the mean fall of the logit after k links, its mean over k (the area under the
curve), and the fall after as many links as the evidence path has. The higher, the better an order knows what the score
rests on.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from gfm.eval.beir import load_dataset
from gfm.eval.bench import questions
from gfm.index.index import GraphIndex
from gfm.nn.attribution import edge_contributions
from gfm.retrieve.gnn import Explained, GNNRetriever

KS = (1, 2, 3, 5, 8, 12, 20)
_STEPS = {"gradient": 1, "integrated": 8}


def without(data: Data, gone: np.ndarray) -> Data:
    """The subgraph without some of its edges, bool[e]."""
    left, out = torch.from_numpy(~gone), data.clone()
    out.edge_index = data.edge_index[:, left]
    for key in ("edge_input", "edge_kind", "edge_triple"):
        out[key] = data[key][left]
    return out


def orders(
    explained: Explained, node: int, link: np.ndarray, added: dict[str, np.ndarray], seed: int
) -> dict[str, list[int]]:
    """Kept links in the order of each method, by name."""
    kept = np.unique(link[explained.kept.edge])
    at_passage = np.unique(link[explained.kept.edge & (explained.found.edge_index == node).any(axis=0)])
    random = np.random.default_rng(seed)
    shuffled, near = random.permutation(kept).tolist(), random.permutation(at_passage).tolist()
    path = list(dict.fromkeys(link[explained.paths[node]].tolist()))
    out = {
        name: kept[np.argsort(-np.bincount(link, values)[kept], kind="stable")].tolist()
        for name, values in added.items()
    }
    out["path"] = [*path, *(n for n in shuffled if n not in path)]
    out["at the passage"] = [*near, *(n for n in shuffled if n not in near)]
    out["random"] = shuffled
    return out


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("set", type=Path)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    retriever = GNNRetriever.from_pretrained(GraphIndex.open(given.index), given.checkpoint)
    falls: dict[str, list[list[float]]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    for number, query in enumerate(questions(load_dataset(given.set), given.questions, given.seed)):
        explained = retriever.explain(query, 3)
        link, _ = retriever.links(explained.found)
        with torch.inference_mode():
            whole = retriever.model(explained.data).node
        for node in explained.paths:
            added = {}
            for name, steps in _STEPS.items():
                start = time.perf_counter()
                added[name] = edge_contributions(retriever.model, explained.data, [node], steps)[0].numpy()
                seconds[name].append(time.perf_counter() - start)
            length = len(set(link[explained.paths[node]].tolist()))
            for name, order in orders(explained, node, link, added, number).items():
                row = []
                for k in (*KS, length):
                    with torch.inference_mode():
                        left = retriever.model(without(explained.data, np.isin(link, order[:k]))).node
                    row.append(float(whole[node] - left[node]))
                falls[name].append(row)
    print(
        f"{len(falls['path'])} passages; fall of the logit\n{'':16}" + "".join(f"{k:>7}" for k in KS) + "   area   path"
    )
    for name, rows in falls.items():
        mean = np.mean(rows, axis=0)
        area = np.trapezoid([0.0, *mean[:-1]], [0, *KS]) / KS[-1]
        print(f"{name:16}" + "".join(f"{v:7.2f}" for v in mean[:-1]) + f"{area:7.2f}{mean[-1]:7.2f}")
    for name, values in seconds.items():
        print(f"{name}: {1000 * np.median(values):.0f} ms a passage")


if __name__ == "__main__":
    main()
