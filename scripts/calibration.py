"""What the network's scores are worth as chances: the share of gold among items of like score.

    python scripts/calibration.py INDEX SET [--questions 200] [--checkpoint FOLDER] [--seed 0]

One table a kind, over all candidates of the questions: passages are gold as the set says, entities and facts by the
weak labels of `gfm.train.labels`. Below each is the expected calibration error, the mean distance of score and share
over the rows (Guo et al., 2017), and the same of the items that score 0.1 or more, for nearly all others are far below.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from gfm.eval.beir import load_dataset
from gfm.eval.bench import questions
from gfm.index.index import GraphIndex
from gfm.retrieve.gnn import GNNRetriever
from gfm.train.labels import label

EDGES = np.array([0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def table(kind: str, score: np.ndarray, gold: np.ndarray) -> str:
    """Rows of like scores (m,) with their share of gold, bool (m,)."""
    row = np.clip(np.searchsorted(EDGES, score, side="right") - 1, 0, len(EDGES) - 2)
    count = np.bincount(row, minlength=len(EDGES) - 1)
    mean = np.bincount(row, score, len(EDGES) - 1) / np.maximum(count, 1)
    share = np.bincount(row, gold, len(EDGES) - 1) / np.maximum(count, 1)
    lines = [
        f"{kind}: {len(score):,} items, {int(gold.sum()):,} gold",
        f"{'score':>12}{'items':>9}{'mean':>8}{'gold':>8}",
    ]
    for i in np.flatnonzero(count):
        lines.append(f"{EDGES[i]:5.2f} - {EDGES[i + 1]:4.2f}{count[i]:9,}{mean[i]:8.3f}{share[i]:8.3f}")
    high = EDGES[:-1] >= 0.1
    for name, of in (("all", count), ("of 0.1 or more", count * high)):
        lines.append(f"calibration error, {name}: {float((of * abs(mean - share)).sum() / max(of.sum(), 1)):.4f}")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("set", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    index, dataset = GraphIndex.open(given.index), load_dataset(given.set)
    retriever = GNNRetriever.from_pretrained(index, given.checkpoint)
    seen: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"passages": [], "entities": [], "facts": []}
    for query in questions(dataset, given.questions, given.seed):
        done = retriever.explain(query)
        data = label(done.data, index, set(dataset.qrels[query.id]), query.metadata)
        y, edge_y, kind = data.y.numpy(), data.edge_y.numpy(), data.node_kind.numpy()
        seen["passages"].append((done.node[kind == 1], y[kind == 1]))
        seen["entities"].append((done.node[kind == 0], y[kind == 0]))
        seen["facts"].append((done.edge, edge_y))
    for name, parts in seen.items():
        score, gold = (np.concatenate(part) for part in zip(*parts, strict=True))
        print(table(name, score[gold >= 0], gold[gold >= 0] == 1), end="\n\n")


if __name__ == "__main__":
    main()
