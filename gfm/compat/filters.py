"""Metadata filters in AutoFlow's form: equal values, all of them, and never a filter that is passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from gfm.index.filters import METADATA
from gfm.index.index import GraphIndex
from gfm.index.part import fitting_passages
from gfm.types import GfmError


def passing_passages(index: GraphIndex, filters: Mapping[str, Any]) -> np.ndarray:
    """Whether the document of each passage has all the given metadata, bool[P].

    Args:
        index: Whose documents.
        filters: Key → value, equal in value and kind (1 is neither "1" nor true).

    Raises:
        GfmError: An empty value, or a key or a kind of value that no document has.
    """
    for name, value in filters.items():
        if value is None or (isinstance(value, Sized) and not len(value)):
            raise GfmError(f"filters: expected a value of {name!r}, found {value!r}; leave the key out, or give one")
    return fitting_passages(index, {METADATA + name: {"$eq": value} for name, value in filters.items()})
