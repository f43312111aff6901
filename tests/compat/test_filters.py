from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gfm.compat.filters import passing_passages
from gfm.types import GfmError

World = Callable[..., SimpleNamespace]
ROWS = [{"lang": "en", "year": 1911}, {"lang": "de", "year": 1911}, {"lang": "en", "year": "1911"}, {"draft": True}]


@pytest.fixture
def index(world: World) -> Any:
    return world(passages=[1.0] * 4, metadata=ROWS)


@pytest.mark.parametrize(
    ("filters", "passing"),
    [
        ({"lang": "en"}, [0, 2]),
        ({"lang": "en", "year": 1911}, [0]),
        ({"year": "1911"}, [2]),
        ({"draft": True}, [3]),
        ({"lang": "en", "draft": True}, []),
        ({"year": 0}, []),
        ({"draft": False}, []),
    ],
)
def test_all_must_be_equal(index: Any, filters: dict[str, Any], passing: list[int]) -> None:
    assert [i for i, passes in enumerate(passing_passages(index, filters)) if passes] == passing


@pytest.mark.parametrize("filters", [{"lang": "en", "language": "en"}, {"draft": 1}, {"year": True}, {"lang": ["en"]}])
def test_what_no_document_could_have_is_no_filter_that_all_pass(index: Any, filters: dict[str, Any]) -> None:
    with pytest.raises(GfmError, match=rf"filters: .*{next(reversed(filters))}"):
        passing_passages(index, filters)


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_an_empty_value_is_refused(index: Any, value: Any) -> None:
    with pytest.raises(GfmError, match=r"filters: expected a value of 'lang', found .*; leave the key out"):
        passing_passages(index, {"lang": value})
