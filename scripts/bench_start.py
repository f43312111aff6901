"""Processor seconds from a command's start to its answer, each command in new processes: the median of several.

Run: ``python scripts/bench_start.py [INDEX] [--times 5]``; without INDEX the demo texts are indexed first. The commands
take turns, so that a busy minute falls on all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "Which composer led the orchestra that is named after a cloth hall?"


def seconds(arguments: list[str]) -> float:
    """User and system time of one run of ``gfm`` and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "gfm.cli", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one JSON object: command → median of its processor seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", nargs="?")
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = asked.index or str(Path(folder) / "index")
        if not asked.index:
            seconds(["index", str(ROOT / "data" / "demo" / "corpus.jsonl"), "--out", index])
        commands = {
            "--help": ["--help"],
            "stats": ["stats", index],
            "search --retriever bm25": ["search", index, QUESTION, "--retriever", "bm25"],
            "search --retriever dense": ["search", index, QUESTION, "--retriever", "dense"],
            "search": ["search", index, QUESTION],
        }
        found: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(asked.times):
            for name, arguments in commands.items():
                found[name].append(seconds(arguments))
    print(json.dumps({name: round(median(times), 2) for name, times in found.items()}, indent=1))


if __name__ == "__main__":
    main()
