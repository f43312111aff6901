"""gfm: a trained graph retriever for retrieval-augmented generation.

The names below are the public doors; they load on first use, so that ``import gfm`` stays cheap.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

# A busy 2-core machine encodes several times faster when idle OpenMP threads sleep instead of spinning.
# OpenMP reads this once, when torch loads, so it has to stand before any import of torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

_DOORS = {
    "GraphIndex": "gfm.index.index",
    "GNNRetriever": "gfm.retrieve.gnn",
    "load_retriever": "gfm.retrievers",
    "build_context": "gfm.context",
    "Query": "gfm.types",
    "Retrieval": "gfm.types",
    "GfmError": "gfm.types",
}

__all__ = [*_DOORS, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _DOORS:
        raise AttributeError(f"module 'gfm' has no attribute {name!r}; it exports {', '.join(_DOORS)}")
    return getattr(importlib.import_module(_DOORS[name]), name)
