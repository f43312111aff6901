"""All retrievers by name: `load_retriever` is the one place that knows them all."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from gfm.types import GfmError

if TYPE_CHECKING:  # the names alone must stay cheap: the command line offers them before anything is loaded
    from gfm.index.index import GraphIndex
    from gfm.retrieve.base import Retriever
    from gfm.retrieve.fusion import FusionRetriever

# Name → module and maker; a module is imported when its retriever is asked for.
_MAKERS = {
    "gfm": ("gfm.retrieve.gnn", "GNNRetriever.from_pretrained"),
    "dense": ("gfm.retrieve.dense", "DenseRetriever"),
    "bm25": ("gfm.retrieve.bm25", "BM25Retriever"),
    "hybrid": ("gfm.retrievers", "hybrid"),
    "fusion": ("gfm.retrievers", "fusion"),
    "ppr": ("gfm.compat.ppr", "PPRRetriever"),
    "ppr_entity": ("gfm.compat.ppr", "EntityPPRRetriever"),
    "gfm_entity": ("gfm.compat.gfm_entity", "EntityGNNRetriever.from_pretrained"),
    "vector_graph": ("gfm.compat.vector_graph", "VectorGraphRetriever"),
    "graph_search": ("gfm.compat.graph_search", "GraphSearchRetriever"),
    "band_quota": ("gfm.compat.band_quota", "BandQuotaRetriever"),
}
NAMES = tuple(_MAKERS)
TRAINED = ("gfm", "gfm_entity")  # their setting ``path`` names a checkpoint


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


def fusion(
    index: GraphIndex,
    retrievers: Sequence[str] = ("ppr", "dense", "bm25"),
    k: int = 60,
    depth: int = 100,
    weights: Mapping[str, float] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> FusionRetriever:
    """Reciprocal rank fusion of retrievers by name, see `FusionRetriever`.

    Args:
        index: Where to search.
        retrievers: Names of two or more, without ``fusion``.
        k: Flattens the top of each list.
        depth: How many results of each list are fused, at least.
        weights: By name, 1 unless given.
        settings: By name, the settings of that retriever.

    Raises:
        GfmError: A name that is unknown, twice there or ``fusion``, or a setting that cannot be meant.
    """
    others = [name for name in NAMES if name != "fusion"]
    if isinstance(retrievers, str) or len(set(retrievers)) < len(retrievers) or not set(retrievers) <= set(others):
        raise GfmError(f"fusion retrievers: expected distinct ones of {', '.join(others)}, found {retrievers!r}")
    chosen = dict(settings or {})
    if unused := sorted(set(chosen) - set(retrievers)):
        raise GfmError(f"fusion settings: expected some of {', '.join(retrievers)}, found {', '.join(unused)}")
    return _fused("fusion", index, {name: chosen.get(name, {}) for name in retrievers}, k, depth, weights)


def hybrid(
    index: GraphIndex, k: int = 60, depth: int = 100, weights: Mapping[str, float] | None = None
) -> FusionRetriever:
    """Reciprocal rank fusion of ``dense`` and ``bm25``, see `fusion`."""
    return _fused("hybrid", index, {"dense": {}, "bm25": {}}, k, depth, weights)


def _fused(
    name: str,
    index: GraphIndex,
    parts: Mapping[str, Mapping[str, Any]],
    k: int,
    depth: int,
    weights: Mapping[str, float] | None,
) -> FusionRetriever:
    from gfm.retrieve.fusion import FusionRetriever

    loaded = {part: load_retriever(part, index, **settings) for part, settings in parts.items()}
    return FusionRetriever(loaded, k, depth, weights, name)


def _maker(name: str) -> Callable[..., Retriever]:
    module, path = _MAKERS[name]
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    maker: Callable[..., Retriever] = found
    return maker
