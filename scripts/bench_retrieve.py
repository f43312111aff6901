"""Where the time of a question goes: milliseconds a stage over an index, median and 95th percentile.

python scripts/bench_retrieve.py INDEX queries.jsonl [--checkpoint FOLDER] [--limit 200]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from gfm import GraphIndex
from gfm.eval.beir import read_queries
from gfm.eval.run import open_retriever


def main() -> None:
    """Retrieve for every question, one at a time, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("index", type=Path)
    arguments.add_argument("queries", type=Path)
    arguments.add_argument("--checkpoint")
    arguments.add_argument("--limit", type=int, default=200)
    given = arguments.parse_args()
    retriever = open_retriever(GraphIndex.open(given.index), {"name": "gfm"}, given.checkpoint)
    queries = read_queries(given.queries)[: given.limit]
    for query in queries[:10]:
        retriever.retrieve(query)
    rows = [retriever.retrieve(query).seconds for query in queries]
    stages = {stage: np.array([row[stage] for row in rows]) for stage in rows[0]}
    stages["after encoding"] = sum(ms for stage, ms in stages.items() if stage != "encode")
    counts = retriever.index.manifest["counts"]
    print(f"{counts['entities']:,} entities, {counts['passages']:,} passages, {len(rows)} questions")
    for stage, seconds in stages.items():
        print(
            f"{stage:>16}  median {1000 * np.median(seconds):6.2f} ms  p95 {1000 * np.percentile(seconds, 95):6.2f} ms"
        )


if __name__ == "__main__":
    main()
