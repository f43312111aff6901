"""Imports that wait: parts of a library that it imports and we do not use load when something first asks for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class _Waiting:
    """A finder of modules that load on first use of an attribute, in the way of the standard library's `LazyLoader`."""

    def __init__(self, names: Sequence[str]):
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own specification, its loader put off."""
        spec = PathFinder.find_spec(name, path, target) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Within, ``import`` of these modules gives modules that are whole, but load when first used.

    ``from module import name`` is such a use, so it loads at once.

    Args:
        names: Dotted names. One that is imported already, or does not exist, is nothing special.
    """
    finder = _Waiting(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
