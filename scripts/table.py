"""The table of docs/results.md: strict recall of every retriever on question sets in BEIR layout, in one run.

    python scripts/table.py --data FOLDER/2wiki FOLDER/hotpotqa --work runs [--checkpoint FOLDER]

Indexes are built below ``--work`` where they are missing. Beside the retrievers stands the ceiling: the share of
gold documents among the candidates of the learnt one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

import numpy as np

from gfm import GraphIndex
from gfm.eval.beir import Dataset, load_dataset
from gfm.eval.compare import ALL, Figures, compare
from gfm.eval.run import best_documents, open_retriever, write_json
from gfm.retrieve.gnn import GNNRetriever
from gfm.retrievers import NAMES, TRAINED


def main() -> None:
    """Read arguments, measure, print Markdown."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", nargs="+", type=Path, required=True, help="folders in BEIR layout")
    arguments.add_argument("--work", type=Path, default=Path("runs"), help="indexes, cache and run files")
    arguments.add_argument("--checkpoint", help="a trained network; the shipped one unless given")
    given = arguments.parse_args()
    print("| questions, passages | " + " | ".join(NAMES) + " | ceiling | ms a question (gfm) |")
    print("|---|" + "---|" * (len(NAMES) + 2))
    for folder in given.data:
        dataset = load_dataset(folder)
        name = "-".join(folder.absolute().parts[-2:])
        index = open_or_build(dataset, given.work / "index" / name, given.work / "cache.sqlite")
        retrievers = {n: open_retriever(index, {"name": n}, given.checkpoint if n in TRAINED else None) for n in NAMES}
        figures = compare(dataset, retrievers)
        for n, found in figures.items():
            run = {query: best_documents(result, 20) for query, result in found.results.items()}
            write_json(given.work / "runs" / f"{name}-{n}.json", run)
        print(row(name, dataset, index, figures, ceiling(dataset, retrievers["gfm"])), flush=True)


def open_or_build(dataset: Dataset, path: Path, cache: Path) -> GraphIndex:
    """The index of a set's corpus, with the default encoder and extractor."""
    if (path / "CURRENT").is_file():
        return GraphIndex.open(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return GraphIndex.build(dataset.corpus, path, cache=cache)


def ceiling(dataset: Dataset, retriever: object) -> float:
    """Mean share of gold documents among the candidates."""
    assert isinstance(retriever, GNNRetriever)
    index, shares = retriever.index, []
    documents = np.array(index.document_ids)
    for query in dataset.judged():
        found = retriever.builder.build(retriever.builder.signals(query.text, index.encode([query.text])[0]))
        gold = dataset.qrels[query.id].keys()
        shares.append(len(gold & set(documents[found.passages])) / len(gold))
    return fmean(shares)


def row(name: str, dataset: Dataset, index: GraphIndex, figures: dict[str, Figures], reached: float) -> str:
    """One line of the table: R@2 / R@5 in percent, the best of each in bold."""
    cells = {n: [100 * f.recall[ALL][m] for m in ("R@2", "R@5")] for n, f in figures.items()}
    best = [max(c[i] for c in cells.values()) for i in range(2)]
    shown = [" / ".join(f"**{x:.1f}**" if x == best[i] else f"{x:.1f}" for i, x in enumerate(cells[n])) for n in NAMES]
    ms = figures["gfm"].retrieval_ms
    count = f"{len(dataset.judged())} of {name}, {index.graph.num_passages:,} passages"
    return f"| {count} | " + " | ".join(shown) + f" | {100 * reached:.1f} | {ms:.1f} |"


if __name__ == "__main__":
    main()
