"""What we use of PyTorch Geometric; the rest of it, which takes longer to import than torch, loads if it is used."""

from __future__ import annotations

from gfm.deferred import deferred

# Each imports half a library: datasets those of language models, and the check for compiled models torch's compiler.
with deferred("torch._dynamo", "torch_geometric.datasets", "torch_geometric.explain", "torch_geometric.profile"):
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import MessagePassing

__all__ = ["Batch", "Data", "MessagePassing"]
