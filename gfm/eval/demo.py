"""The demo set, end to end: build an index, answer every question with four retrievers, measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfm.eval.beir import Dataset, load_dataset
from gfm.eval.bench import bench_set
from gfm.eval.run import open_retriever
from gfm.eval.settings import BenchSettings, entries
from gfm.eval.tables import percent
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
        figures: Of the set, as `bench_set` reports them.
        query: The question to show: the first multi-hop one with every gold document in the first five; the first of
            all where there is none.
        found: What the learnt retriever finds for it.
        seconds: Wall time of the build and of the questions.
    """

    index: GraphIndex
    dataset: Dataset
    figures: dict[str, Any]
    query: Query
    found: Retrieval
    seconds: dict[str, float]

    def shown(self) -> tuple[Query, Retrieval, list[str]]:
        """The question to show, what the learnt retriever finds for it, and its gold documents."""
        return self.query, self.found, sorted(self.dataset.qrels[self.query.id])

    def as_json(self) -> dict[str, Any]:
        """The figures, ready for `json.dumps`."""
        return {
            "counts": self.index.manifest["counts"],
            "encoder": self.index.fingerprint.name,
            "figures": self.figures,
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
    say(f"Answering {len(dataset.judged())} questions with {', '.join(RETRIEVERS)}")
    clock = time.perf_counter()
    chosen = entries(",".join(RETRIEVERS), checkpoint)
    settings = BenchSettings((str(folder),), tuple(chosen), pictures=False, apart=False)
    figures, runs = bench_set(dataset, index, settings)
    query = _shown(dataset, runs["gfm"])
    found = open_retriever(index, {"name": "gfm"}, checkpoint).retrieve(query, 5)
    return Demo(index, dataset, figures, query, found, {"build": built, "questions": time.perf_counter() - clock})


def _shown(dataset: Dataset, run: Mapping[str, Mapping[str, float]]) -> Query:
    asked = [q for q in dataset.judged() if q.metadata.get("type") == _SHOWN_TYPE] or dataset.judged()
    whole = (q for q in asked if dataset.qrels[q.id].keys() <= set(list(run[q.id])[:5]))
    return next(whole, asked[0])


def table_rows(figures: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Rows of the table: a label, and one cell a retriever; a row without cells is a heading."""
    of = list(figures["retrievers"].values())
    groups = [("all", figures["data"]["questions"], [row["quality"] for row in of])]
    groups += [(g, n, [row["by"]["type"][g] for row in of]) for g, n in figures["groups"]["type"].items()]
    rows: list[tuple[str, list[str]]] = []
    for metric, title in (("R@2", "strict recall@2, %"), ("R@5", "strict recall@5, %")):
        rows.append((title, []))
        rows += [(f"  {group} ({n})", [percent(q[metric]["mean"]) for q in cells]) for group, n, cells in groups]
    rows.append(("median ms a question", []))
    rows.append(("  retrieval", [f"{row['time']['retrieval_ms']['median']:.1f}" for row in of]))
    rows.append(("  query encoding", [_encoding(row, figures["encode_ms"]) for row in of]))
    return rows


def _encoding(row: Mapping[str, Any], milliseconds: Mapping[str, float]) -> str:
    if "encode" not in row["time"]["stages_ms"]:
        return "-"
    return f"{milliseconds['with_parts' if row['weights'] else 'alone']:.1f}"
