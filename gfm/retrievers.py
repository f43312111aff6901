"""All retrievers by name: `load_retriever` is the one place that knows them all."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

from gfm.types import GfmError

if TYPE_CHECKING:  # the names alone must stay cheap: the command line offers them before anything is loaded
    from gfm.index.index import GraphIndex
    from gfm.retrieve.base import Retriever

# Name → module and maker; a module is imported when its retriever is asked for.
_MAKERS = {
    "gfm": ("gfm.retrieve.gnn", "GNNRetriever.from_pretrained"),
    "dense": ("gfm.retrieve.dense", "DenseRetriever"),
    "bm25": ("gfm.retrieve.bm25", "BM25Retriever"),
    "hybrid": ("gfm.retrieve.hybrid", "HybridRetriever"),
    "band_quota": ("gfm.compat.band_quota", "BandQuotaRetriever"),
}
NAMES = tuple(_MAKERS)


def load_retriever(name: str, index: GraphIndex, **settings: Any) -> Retriever:
    """A retriever by name.

    Args:
        name: One of `NAMES`: ``gfm`` (the learnt one), ``dense``, ``bm25``, ``hybrid``, …
        index: Where to search.
        settings: Passed to the retriever.

    Raises:
        GfmError: An unknown name or setting.
    """
    if name not in _MAKERS:
        raise GfmError(f"retriever {name!r}: expected one of {', '.join(NAMES)}")
    make = _maker(name)
    try:
        signature(make).bind(index, **settings)
    except TypeError as error:
        raise GfmError(f"retriever {name!r}: {error}") from error
    return make(index, **settings)


def _maker(name: str) -> Callable[..., Retriever]:
    module, path = _MAKERS[name]
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    maker: Callable[..., Retriever] = found
    return maker
