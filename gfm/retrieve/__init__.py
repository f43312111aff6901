"""Retrievers by name: `load_retriever` is the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Retriever
from gfm.types import GfmError

NAMES = ("gfm", "dense", "bm25", "hybrid")


def load_retriever(name: str, index: GraphIndex, **settings: Any) -> Retriever:
    """A retriever by name.

    Args:
        name: ``gfm`` (the learnt one), ``dense``, ``bm25`` or ``hybrid``.
        index: Where to search.
        settings: Passed to the retriever.

    Raises:
        GfmError: An unknown name or setting.
    """
    from gfm.retrieve.bm25 import BM25Retriever
    from gfm.retrieve.dense import DenseRetriever
    from gfm.retrieve.gnn import GNNRetriever
    from gfm.retrieve.hybrid import HybridRetriever

    makers: dict[str, Callable[..., Retriever]] = {
        "gfm": GNNRetriever.from_pretrained,
        "dense": DenseRetriever,
        "bm25": BM25Retriever,
        "hybrid": HybridRetriever,
    }
    if name not in makers:
        raise GfmError(f"retriever {name!r}: expected one of {', '.join(NAMES)}")
    make = makers[name]
    try:
        signature(make).bind(index, **settings)
    except TypeError as error:
        raise GfmError(f"retriever {name!r}: {error}") from error
    return make(index, **settings)
