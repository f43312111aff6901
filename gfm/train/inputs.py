"""Groups of inputs that a network can be trained without, to learn what each is worth."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from gfm.nn.model import GraphRetrieverModel
from gfm.types import GfmError

# Patterns of names, of nodes and of edges alike; each input is in one group.
GROUPS = {
    "question": ("cosine*",),  # similarity with the question
    "rest": ("rest*", "fact_rest*"),  # with what is left of it without its names
    "parts": ("first_z", "middle_z", "last_z", "fact_first_z", "fact_middle_z", "fact_last_z"),  # with parts of it
    "facts": ("fact_cosine*",),  # of facts, at nodes and on edges
    "words": ("bm25*", "overlap*"),
    "pagerank": ("pagerank*",),
    "hops": ("hop_*", "no_hop"),
    "degree": ("log_degree", "inverse_sqrt_df", "weight"),
    "kind": ("passage",),
}


def group_of(name: str) -> str:
    """The group of an input.

    Raises:
        GfmError: It is in none, or in several.
    """
    found = [group for group, patterns in GROUPS.items() if any(fnmatchcase(name, p) for p in patterns)]
    if len(found) != 1:
        raise GfmError(f"input {name!r}: expected one group in gfm/train/inputs.py, found {', '.join(found) or 'none'}")
    return found[0]


def parse_groups(text: str | None) -> tuple[str, ...]:
    """Groups of a setting, which has ``+`` between them.

    Raises:
        GfmError: There is no such group.
    """
    groups = tuple(text.split("+")) if text else ()
    for group in groups:
        if group not in GROUPS:
            raise GfmError(f"leave_out: expected {', '.join(GROUPS)}, or several with + between, found {text!r}")
    return groups


def blind(model: GraphRetrieverModel, groups: Sequence[str]) -> None:
    """Cut a network off from some of its inputs, for good.

    The weights that read them are set to zero and get no gradient, so they stay zero in training; the trained network
    is then one like any other, and its checkpoint needs no note of it.

    Args:
        model: Changed in place.
        groups: Of `GROUPS`.
    """
    if not groups:
        return
    settings = model.settings
    first = model.node_net[0]
    assert isinstance(first, nn.Linear)
    for layer, names in ((first, settings.node_inputs), (model.edge_net, settings.edge_inputs)):
        seen = torch.tensor([group_of(name) not in groups for name in names], dtype=layer.weight.dtype)  # (inputs,)
        with torch.no_grad():
            layer.weight *= seen
        layer.weight.register_hook(_Masked(seen))  # type: ignore[no-untyped-call]


class _Masked:
    """Gradient hook: columns of unseen inputs get none."""

    def __init__(self, seen: Tensor):
        self._seen = seen

    def __call__(self, gradient: Tensor) -> Tensor:
        return gradient * self._seen.to(gradient.device)
