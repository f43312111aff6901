"""Filters over documents, in the form that R2R's have; what cannot be meant is an error, and is never passed over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import numpy as np

from gfm.types import GfmError

DOCUMENT_ID = "document_id"
METADATA = "metadata."
ABOUT = 'Only what documents with these fields support, as in {"metadata.year": {"$gt": 1990}}.'
COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$overlap")
COMBINATIONS = ("$and", "$or")
_PLAIN = {"string", "number", "true or false"}
_ORDERED = {"string", "number"}
_ORDER = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_LIST_OF = "list of "


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison.

    Attributes:
        field: ``document_id``, or ``metadata.`` and a key.
        operator: One of `COMPARISONS`.
        value: What the field is compared with.
    """

    field: str
    operator: str
    value: Any

    def holds(self, found: Any) -> bool:
        """Whether it holds where the field is ``found``; never where that is None (no such field), ``$ne`` included."""
        if found is None:
            return False
        match self.operator:
            case "$eq":
                return _same(found, self.value)
            case "$ne":
                return not _same(found, self.value)
            case "$gt" | "$gte" | "$lt" | "$lte":
                return _kind(found) == _kind(self.value) and bool(_ORDER[self.operator](found, self.value))
            case "$in":
                return any(_same(found, x) for x in self.value)
            case _:
                return isinstance(found, list) and any(_same(x, y) for x in found for y in self.value)


@dataclass(frozen=True, slots=True)
class Combination:
    """All of several filters (``$and``), or at least one of them (``$or``)."""

    operator: str
    parts: tuple[Filter, ...]


Filter: TypeAlias = Condition | Combination


def read_filters(text: str) -> dict[str, Any]:
    """Filters that were given as JSON.

    Raises:
        GfmError: It is no JSON object.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        found = error
    if not isinstance(found, dict):
        raise GfmError(
            f'filters: expected a JSON object such as {{"metadata.year": {{"$gt": 1990}}}}, found {text!r}'
            + (f" ({found})" if isinstance(found, ValueError) else "")
        )
    return found


class DocumentFilters:
    """Reads filters, and says which documents they let through.

    Args:
        metadata: By document id, in the order in which `matching` answers.
    """

    def __init__(self, metadata: Mapping[str, Mapping[str, Any]]):
        self._documents = [
            {DOCUMENT_ID: document, **{METADATA + key: value for key, value in fields.items()}}
            for document, fields in metadata.items()
        ]
        self._kinds: dict[str, set[str]] = defaultdict(set)
        for fields in self._documents:
            for field, value in fields.items():
                is_list = isinstance(value, list)
                self._kinds[field] |= {_LIST_OF + _kind(x) for x in value} if is_list else {_kind(value)}

    def parse(self, filters: Any) -> Filter:
        """A filter from its written form.

        ``{"metadata.year": {"$gt": 1990}, "document_id": "d1"}``: fields with their conditions, all of which must hold;
        a bare value means ``$eq``. ``{"$or": [filter, …]}`` and ``{"$and": [filter, …]}`` combine.

        ``$eq`` and ``$ne`` take a string, a number or a truth value, which never equal each other; ``$gt``, ``$gte``,
        ``$lt`` and ``$lte`` a string or a number; ``$in`` and ``$overlap`` a list. ``$overlap`` is for fields that
        hold lists.

        Raises:
            GfmError: A field or an operator that is not known, a value of a kind that no document has there, or nothing
                to filter by.
        """
        if not isinstance(filters, Mapping) or not filters:
            raise GfmError(f'filters: expected fields with conditions, as {{"{DOCUMENT_ID}": "d1"}}, found {filters!r}')
        parts = tuple(part for name, value in filters.items() for part in self._parts(name, value))
        return parts[0] if len(parts) == 1 else Combination("$and", parts)

    def matching(self, wanted: Filter) -> np.ndarray:
        """Which documents fit, bool[number of documents]."""
        if isinstance(wanted, Condition):
            return np.array([wanted.holds(fields.get(wanted.field)) for fields in self._documents], dtype=bool)
        masks = np.stack([self.matching(part) for part in wanted.parts])  # (parts, documents)
        return np.asarray(masks.all(axis=0) if wanted.operator == "$and" else masks.any(axis=0))

    def _parts(self, name: Any, value: Any) -> Iterator[Filter]:
        """What one entry of a mapping stands for."""
        if name in COMBINATIONS:
            if not isinstance(value, list | tuple) or not value:
                raise GfmError(f"filters: {name}: expected a list of filters, found {value!r}")
            yield Combination(name, tuple(self.parse(part) for part in value))
            return
        if name not in self._kinds:
            known = ", ".join((*sorted(self._kinds), *COMBINATIONS))
            raise GfmError(f"filters: expected some of {known}, found {name!r}")
        conditions = value if isinstance(value, Mapping) else {"$eq": value}
        unknown = [operator for operator in conditions if operator not in COMPARISONS]
        if unknown or not conditions:
            found = ", ".join(map(repr, unknown)) or "none"
            raise GfmError(f"filters: {name}: expected some of {', '.join(COMPARISONS)}, found {found}")
        for operator, wanted in conditions.items():
            self._check(name, operator, wanted)
            yield Condition(name, operator, wanted)

    def _check(self, field: str, operator: str, wanted: Any) -> None:
        """Refuse a value that no document could have in the field."""
        where, here = f"filters: {field}: {operator}", self._kinds[field]
        known = here & (_ORDERED if operator in _ORDER else _PLAIN)
        values = [wanted]
        if operator in ("$in", "$overlap"):
            if not isinstance(wanted, list | tuple) or not wanted:
                raise GfmError(f"{where}: expected a list of values, found {wanted!r}")
            values = list(wanted)
        if operator == "$overlap":
            known = {kind.removeprefix(_LIST_OF) for kind in here if kind.startswith(_LIST_OF)} & _PLAIN
        for value in values:
            if _kind(value) not in known:
                raise GfmError(
                    f"{where}: expected {' or '.join(sorted(known)) or 'another operator'} (the documents have "
                    f"{', '.join(sorted(here)) or 'empty lists'} there), found {value!r}"
                )


def _kind(value: Any) -> str:
    """What a value is to a filter; kinds outside `_PLAIN` are named for messages alone."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number" if isfinite(value) else "not finite"
    if isinstance(value, str):
        return "string"
    return "null" if value is None else "list" if isinstance(value, list | tuple) else "object"


def _same(a: Any, b: Any) -> bool:
    return _kind(a) == _kind(b) and bool(a == b)
