"""The demo set, end to end: build an index, answer every question with four retrievers, measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfm.eval.beir import Dataset, load_dataset
from gfm.eval.compare import Figures, compare, type_counts
from gfm.eval.run import best_documents, open_retriever
from gfm.index.index import GraphIndex
from gfm.resources import demo_folder
from gfm.types import Query, Retrieval

RETRIEVERS = ("gfm", "dense", "bm25", "hybrid")
_SHOWN_TYPE = "multi_hop"


@dataclass(frozen=True, slots=True)
class Demo:
    """What a run of the demo made and measured.

    Attributes:
        index: The index of the demo corpus.
        dataset: The demo set.
        figures: By retriever.
        seconds: Wall time of the build and of the questions.
    """

    index: GraphIndex
    dataset: Dataset
    figures: dict[str, Figures]
    seconds: dict[str, float]

    def shown(self) -> tuple[Query, Retrieval, list[str]]:
        """The question to show, its result by the learnt retriever, and its gold documents.

        The first multi-hop question with every gold document in the first five; the first of all where there is none.
        """
        results = self.figures["gfm"].results
        asked = [q for q in self.dataset.judged() if q.metadata.get("type") == _SHOWN_TYPE] or self.dataset.judged()
        whole = (q for q in asked if self.dataset.qrels[q.id].keys() <= best_documents(results[q.id], 5).keys())
        query = next(whole, asked[0])
        return query, results[query.id], sorted(self.dataset.qrels[query.id])

    def as_json(self) -> dict[str, Any]:
        """The figures, ready for `json.dumps`."""
        return {
            "counts": self.index.manifest["counts"],
            "encoder": self.index.fingerprint.name,
            "questions": type_counts(self.dataset),
            "retrievers": {
                name: {"recall": f.recall, "retrieval_ms": f.retrieval_ms, "encode_ms": f.encode_ms}
                for name, f in self.figures.items()
            },
            "seconds": self.seconds,
        }


def run_demo(
    out: Path, encoder: str, checkpoint: str | None = None, say: Callable[[str], None] = lambda line: None
) -> Demo:
    """Build the demo index in ``out`` (from its cache where it has been built before) and answer all questions.

    Args:
        out: Folder of the index.
        encoder: Name of the encoder.
        checkpoint: Folder of a network; the shipped one unless given.
        say: Told what happens next.

    Raises:
        GfmError: ``out`` holds something else, or there is no checkpoint or encoder.
    """
    folder = demo_folder()
    dataset = load_dataset(folder)
    say(f"Building an index of {folder / 'corpus.jsonl'} in {out.absolute()}")
    clock = time.perf_counter()
    index = GraphIndex.build(dataset.corpus, out, encoder=encoder)
    built = time.perf_counter() - clock
    retrievers = {name: open_retriever(index, {"name": name}, _checkpoint(name, checkpoint)) for name in RETRIEVERS}
    say(f"Answering {len(dataset.judged())} questions with {', '.join(RETRIEVERS)}")
    clock = time.perf_counter()
    figures = compare(dataset, retrievers)
    return Demo(index, dataset, figures, {"build": built, "questions": time.perf_counter() - clock})


def _checkpoint(name: str, checkpoint: str | None) -> str | None:
    return checkpoint if name == "gfm" else None


def table_rows(figures: Mapping[str, Figures], counts: Mapping[str, int]) -> list[tuple[str, list[str]]]:
    """Rows of the table: a label, and one cell a retriever; a row without cells is a heading."""
    rows: list[tuple[str, list[str]]] = []
    for metric, title in (("R@2", "strict recall@2, %"), ("R@5", "strict recall@5, %")):
        rows.append((title, []))
        for group, count in counts.items():
            cells = [f"{100 * f.recall[group][metric]:.1f}" for f in figures.values()]
            rows.append((f"  {group} ({count})", cells))
    rows.append(("median ms a question", []))
    rows.append(("  retrieval", [f"{f.retrieval_ms:.1f}" for f in figures.values()]))
    rows.append(("  query encoding", [f"{f.encode_ms:.1f}" if f.encode_ms else "-" for f in figures.values()]))
    return rows
