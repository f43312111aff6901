"""The generation of an index that is in force, as long as there are readers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from gfm.index import store
from gfm.retrieve.base import Retriever
from gfm.types import GfmError

_LOG = logging.getLogger(__name__)


class Live:
    """A retriever over the generation in force.

    A new generation is opened beside the old one and then takes its place: whoever reads the old one goes on with it.

    Args:
        load: Opens the index and makes the retriever; ready to answer when it returns.

    Attributes:
        retriever: To be read once for each request.
        reloads: How often a new generation took the old one's place.
        stale: Whether the generation in force does not open, so that the one before it is served.

    Raises:
        GfmError: What ``load`` raises the first time.
    """

    def __init__(self, load: Callable[[], Retriever]):
        self._load, self._loading = load, Lock()
        self._refused: str | None = None
        self.retriever = load()
        self.reloads, self.stale = 0, False

    @property
    def generation(self) -> str:
        """Name of the generation that is served."""
        return self.retriever.index.generation

    def refresh(self) -> bool:
        """Open the generation in force where it is another one; for a thread of its own.

        One that does not open is tried once; the old one is served until there is another.

        Returns:
            Whether another generation is served now.
        """
        with self._loading:
            name = store.current(self.retriever.index.path)
            if name == self.generation:
                self._refused, self.stale = None, False
            if name in (self.generation, self._refused):
                return False
            try:
                opened = self._load()
            except (GfmError, OSError) as error:
                self._refused, self.stale = name, True
                _LOG.error("%s does not open, still serving %s: %s", name or "no generation", self.generation, error)
                return False
            self._refused, self.stale = None, False
            self.reloads += 1
            self.retriever = opened
            _LOG.info("serving %s", self.generation)
            return True
