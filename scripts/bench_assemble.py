"""How long it takes to put a graph of many facts together from the cache: no text is parsed and none is encoded.

    python scripts/bench_assemble.py [FACTS]

The demo corpus is multiplied: in each copy the names are spelt otherwise, with as many letters, so that what spaCy said
of the first copy fits all. 300,000 facts should take less than 60 seconds on two cores.
"""

from __future__ import annotations

import re
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gfm.extract.extraction import Extraction
from gfm.extract.spacy_facts import SpacyExtractor
from gfm.graph.assemble import assemble
from gfm.index.cache import Cache
from gfm.index.documents import read_documents
from gfm.resources import demo_folder
from gfm.types import Passage

_NAME = re.compile(r"\b([A-Z])([a-z])([a-z])(?=[a-z])")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spelt(text: str, copy: int) -> str:
    """The text with other letters in its names; ``copy`` 0 … 675 gives as many spellings."""
    first, second = divmod(copy, 26)
    shift = lambda letter, by: _LETTERS[(_LETTERS.index(letter) + by) % 26]  # noqa: E731
    return _NAME.sub(lambda m: m[1] + shift(m[2], first) + shift(m[3], second), text)


class Known:
    """What spaCy said of the first copy, said of the others."""

    name, cached, rows = "known", True, ()
    settings = "known-1"

    def __init__(self, extractions: Sequence[Extraction]):
        self._extractions = extractions

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """By the number at the end of the id."""
        return [self._extractions[int(p.id.rpartition("/")[2])] for p in passages]


def main() -> None:
    """Fill a cache, then time reading it and assembling."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    demo = read_documents(demo_folder()).documents
    first = [Passage(d.id, d.id, d.title, d.text, 0, len(d.text)) for d in demo]
    extractions = SpacyExtractor().extract(first)
    copies = 1 + wanted // len(assemble(first, extractions).facts)
    passages = [
        replace(
            p, id=f"{copy:03}/{i}", document_id=f"{copy:03}/{i}", title=spelt(p.title, copy), text=spelt(p.text, copy)
        )
        for copy in range(copies)
        for i, p in enumerate(first)
    ]
    passages.sort(key=lambda p: p.id)
    with tempfile.TemporaryDirectory() as name:
        cache = Cache(Path(name) / "cache.sqlite")
        cache.extractions(passages, Known(extractions))
        start, cpu = time.perf_counter(), time.process_time()
        found = cache.extractions(passages, Known([]))
        read = time.perf_counter() - start
        parts = assemble(passages, found)
        wall = time.perf_counter() - start
        cache.close()
    cpu = time.process_time() - cpu
    size = f"{len(parts.facts)} facts, {len(passages)} passages, {len(parts.entities)} entities"
    sys.stdout.write(
        f"{size}: read {read:.1f} s, assembled {wall - read:.1f} s, together {wall:.1f} s ({cpu:.1f} s of processor); "
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB\n"
    )


if __name__ == "__main__":
    main()
