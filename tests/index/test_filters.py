from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.index.filters import Combination, Condition, DocumentFilters
from gfm.types import GfmError

METADATA: dict[str, dict[str, Any]] = {
    "d1": {"year": 1911, "lang": "en", "tags": ["mill", "water"], "open": True},
    "d2": {"year": 1950.5, "lang": "is", "tags": ["harbour"], "open": False},
    "d3": {"year": "unknown", "lang": "en", "tags": []},
    "d4": {"lang": None, "place": {"name": "Isk"}},
    "1": {"year": 1},
}
FILTERS = DocumentFilters(METADATA)


def matching(written: Any) -> list[str]:
    mask = FILTERS.matching(FILTERS.parse(written))
    assert mask.dtype == bool
    return [document for document, fits in zip(METADATA, mask, strict=True) if fits]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"document_id": "d2"}, ["d2"]),
        ({"document_id": {"$eq": "1"}}, ["1"]),
        ({"document_id": {"$eq": "nobody"}}, []),
        ({"document_id": {"$ne": "d1"}}, ["d2", "d3", "d4", "1"]),
        ({"document_id": {"$in": ["d4", "d1", "nobody"]}}, ["d1", "d4"]),
        ({"document_id": {"$gt": "d2"}}, ["d3", "d4"]),
        ({"metadata.lang": "en"}, ["d1", "d3"]),
        ({"metadata.lang": {"$ne": "en"}}, ["d2"]),  # never where the field is missing or null
        ({"metadata.year": 1911.0}, ["d1"]),
        ({"metadata.year": "unknown"}, ["d3"]),
        ({"metadata.year": {"$gt": 1911}}, ["d2"]),
        ({"metadata.year": {"$gte": 1911}}, ["d1", "d2"]),
        ({"metadata.year": {"$lt": 1911}}, ["1"]),
        ({"metadata.year": {"$lte": 1911}}, ["d1", "1"]),
        ({"metadata.year": {"$gt": 0, "$ne": 1}}, ["d1", "d2"]),
        ({"metadata.year": {"$in": [1, "unknown"]}}, ["d3", "1"]),
        ({"metadata.open": True}, ["d1"]),  # which is not the number 1
        ({"metadata.year": 1}, ["1"]),
        ({"metadata.tags": {"$overlap": ["water", "harbour", "sea"]}}, ["d1", "d2"]),
        ({"metadata.tags": {"$overlap": ("sea",)}}, []),
        ({"metadata.lang": "en", "document_id": {"$ne": "d1"}}, ["d3"]),
        ({"$or": [{"metadata.lang": "is"}, {"document_id": "d4"}]}, ["d2", "d4"]),
        ({"$and": [{"metadata.lang": "en"}, {"$or": [{"document_id": "d3"}, {"document_id": "d2"}]}]}, ["d3"]),
        ({"$or": [{"document_id": "d1"}, {"document_id": "d2"}], "metadata.lang": "en"}, ["d1"]),
    ],
)
def test_which_documents_fit(written: Any, expected: list[str]) -> None:
    assert matching(written) == expected


def test_a_filter_is_read_into_conditions_and_combinations() -> None:
    assert FILTERS.parse({"document_id": "d1"}) == Condition("document_id", "$eq", "d1")
    written = {"metadata.year": {"$gt": 1, "$ne": 5}, "$or": [{"document_id": "d1"}]}
    assert FILTERS.parse(written) == Combination(
        "$and",
        (
            Condition("metadata.year", "$gt", 1),
            Condition("metadata.year", "$ne", 5),
            Combination("$or", (Condition("document_id", "$eq", "d1"),)),
        ),
    )


KNOWN = "document_id, metadata.lang, metadata.open, metadata.place, metadata.tags, metadata.year, \\$and, \\$or"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"metadata.colour": "red"}, rf"filters: expected some of {KNOWN}, found 'metadata.colour'"),
        ({"year": 1911}, rf"filters: expected some of {KNOWN}, found 'year'"),
        ({"$not": []}, rf"filters: expected some of {KNOWN}, found '\$not'"),
        ({3: 4}, rf"filters: expected some of {KNOWN}, found 3"),
        (
            {"metadata.year": {"$near": 5}},
            r"filters: metadata.year: expected some of \$eq, \$ne, \$gt, .*, \$in, \$overlap, found '\$near'",
        ),
        ({"metadata.year": {}}, r"filters: metadata.year: expected some of \$eq, .*, found none"),
        (
            {"metadata.lang": 5},
            r"filters: metadata.lang: \$eq: expected string \(the documents have null, string there\), found 5",
        ),
        ({"metadata.open": 1}, r"metadata.open: \$eq: expected true or false .*, found 1"),
        ({"metadata.open": {"$gt": False}}, r"metadata.open: \$gt: expected another operator .*, found False"),
        ({"metadata.lang": None}, r"metadata.lang: \$eq: expected string .*, found None"),
        ({"metadata.place": "Isk"}, r"metadata.place: \$eq: expected another operator .*have object.*, found 'Isk'"),
        ({"metadata.year": float("nan")}, r"metadata.year: \$eq: expected number or string .*, found nan"),
        ({"metadata.year": {"$gt": [1]}}, r"metadata.year: \$gt: expected number or string .*, found \[1\]"),
        ({"metadata.year": {"$in": 1911}}, r"metadata.year: \$in: expected a list of values, found 1911"),
        ({"metadata.year": {"$in": []}}, r"metadata.year: \$in: expected a list of values, found \[\]"),
        ({"metadata.year": {"$in": [1911, None]}}, r"metadata.year: \$in: expected number or string .*, found None"),
        ({"metadata.lang": {"$overlap": ["en"]}}, r"metadata.lang: \$overlap: expected another operator .*found 'en'"),
        ({"metadata.tags": "mill"}, r"metadata.tags: \$eq: expected another operator .*have list of string"),
        ({"metadata.tags": {"$overlap": [7]}}, r"metadata.tags: \$overlap: expected string .*, found 7"),
        ({"document_id": 1}, r"document_id: \$eq: expected string .*, found 1"),
        ({"$or": {"document_id": "d1"}}, r"filters: \$or: expected a list of filters, found \{"),
        ({"$and": []}, r"filters: \$and: expected a list of filters, found \[\]"),
        ({"$and": ["d1"]}, r"filters: expected fields with conditions, .*, found 'd1'"),
        ({"$or": [{"document_id": "d1"}, {}]}, r"filters: expected fields with conditions, .*, found \{\}"),
        ({}, r"filters: expected fields with conditions, .*, found \{\}"),
        ([], r"filters: expected fields with conditions, .*, found \[\]"),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_names_it(written: Any, message: str) -> None:
    with pytest.raises(GfmError, match=message):
        FILTERS.parse(written)


leaf = st.one_of(
    st.sampled_from([*METADATA, "nobody"]).map(lambda i: {"document_id": i}),
    st.sampled_from([0, 1, 1911, 2000]).map(lambda n: {"metadata.year": {"$gt": n}}),
    st.sampled_from(["en", "is"]).map(lambda x: {"metadata.lang": {"$ne": x}}),
    st.lists(st.sampled_from(["mill", "harbour", "sea"]), min_size=1).map(lambda x: {"metadata.tags": {"$overlap": x}}),
)
written_filters = st.recursive(
    leaf,
    lambda inner: st.tuples(st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: {pair[0]: pair[1]}
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(written_filters, min_size=1, max_size=3))
def test_combinations_are_those_of_sets(parts: list[dict[str, Any]]) -> None:
    found = [set(matching(part)) for part in parts]
    assert set(matching({"$and": parts})) == set.intersection(*found)
    assert set(matching({"$or": parts})) == set.union(*found)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*METADATA, "nobody"]), min_size=1))
def test_in_is_any_of_equal(ids: list[str]) -> None:
    assert matching({"document_id": {"$in": ids}}) == matching({"$or": [{"document_id": i} for i in ids]})


def test_no_documents() -> None:
    with pytest.raises(GfmError, match=r"expected some of \$and, \$or, found 'document_id'"):
        DocumentFilters({}).parse({"document_id": "d1"})
    assert DocumentFilters({}).matching(Condition("document_id", "$eq", "d1")).tolist() == np.zeros(0).tolist()
