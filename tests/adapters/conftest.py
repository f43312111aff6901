"""One question over Corpus Z, for all adapters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.gnn import GNNRetriever


@pytest.fixture(scope="session")
def retriever(placed_index: Callable[..., GraphIndex], untrained: object) -> GNNRetriever:
    """A network of random weights over four passages in a chain, of which one has free fields."""
    from tests.conftest import CORPUS_Z, TRIPLES_Z

    index = placed_index(CORPUS_Z, TRIPLES_Z, metadata={"p3": {"title": "Port Isk", "year": 1911, "path": "kept"}})
    return GNNRetriever.from_pretrained(index, str(untrained))
