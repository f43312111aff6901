"""Metadata filters: equal values, all of them, and never a filter that is passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from gfm.index.index import GraphIndex
from gfm.types import GfmError


def passing_passages(index: GraphIndex, filters: Mapping[str, Any]) -> np.ndarray:
    """Whether the document of each passage has all the given metadata, bool[P].

    Args:
        index: Whose documents.
        filters: Field → value, equal in value and kind (1 is neither "1" nor true).

    Raises:
        GfmError: A field that no document has, or a value that is empty.
    """
    known = sorted({name for fields in index.document_metadata.values() for name in fields})
    for name, value in filters.items():
        if name not in known:
            raise GfmError(f"filters: expected fields among {', '.join(known) or '(none)'}, found {name!r}")
        if value is None or (isinstance(value, Sized) and not len(value)):
            raise GfmError(f"filters: expected a value of {name!r}, found {value!r}; leave the field out, or give one")
    passes = {
        document: all(name in fields and _equal(fields[name], value) for name, value in filters.items())
        for document, fields in index.document_metadata.items()
    }
    return np.array([passes[document] for document in index.document_ids], dtype=bool)


def _equal(found: Any, value: Any) -> bool:
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)
