"""One progress bar for everything that takes longer than two seconds; silent where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def watched() -> bool:
    """Whether standard error is a terminal (a program started without a console has none at all)."""
    return sys.stderr is not None and sys.stderr.isatty()


def track(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Yield ``items`` under a bar with the time left, on standard error; no bar without a title or a terminal."""
    if not title or not watched():
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(items, total=total, desc=title, delay=2, file=sys.stderr, leave=False)
