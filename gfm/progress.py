"""One progress bar for everything that takes longer than two seconds; silent where nobody watches.

A terminal that cannot go back in a line (``TERM=dumb``: editors, logs of build servers) gets whole lines instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_EVERY = 10.0  # seconds between two whole lines


def watched() -> bool:
    """Whether standard error is a terminal (a program started without a console has none at all)."""
    return sys.stderr is not None and sys.stderr.isatty()


def track(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Yield ``items`` under a bar with the time left, on standard error; no bar without a title or a terminal.

    Args:
        items: To work on.
        total: How many they are.
        title: What is done with them.
    """
    if not title or not watched():
        yield from items
        return
    if os.environ.get("TERM") == "dumb":
        yield from _in_lines(items, total, title)
        return
    from tqdm import tqdm

    yield from tqdm(items, total=total, desc=title, delay=2, file=sys.stderr, leave=False)


def _in_lines(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    start = told = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - told >= _EVERY:
            told = now
            left = (now - start) / done * (total - done)
            print(f"{title}: {done:,} of {total:,}, {left:.0f} s left", file=sys.stderr, flush=True)
        yield item
