from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gfm.index import store
from gfm.index.tables import Tables

COLUMNS: dict[str, dict[str, list[object]]] = {
    "documents": {"id": []},
    "passages": {"id": ["p1", "p2", "p3"], "start": [0, 7, 9]},
    "entities": {"name": ["Tarn Mill", "李明", ""]},
    "facts": {"text": []},
    "triples": {"relation": ["", "met"]},
}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    for name, columns in COLUMNS.items():
        store.write_table(tmp_path / f"{name}.parquet", columns)
    return Tables(tmp_path)


def test_values_by_number(tables: Tables) -> None:
    assert tables.values("entities", "name", np.array([1, 0, 1, 2])) == ["李明", "Tarn Mill", "李明", ""]
    assert tables.values("passages", "start", np.array([2, 0])) == [9, 0]
    assert tables.values("entities", "name", np.zeros(0, dtype=np.int64)) == []
    assert tables.values("facts", "text", np.zeros(0, dtype=np.int64)) == []


@pytest.mark.parametrize("numbers", [[0, 3], [-1, 0], [0, -1, 3]])
def test_no_such_number(tables: Tables, numbers: list[int]) -> None:
    wrong = next(n for n in numbers if not 0 <= n < 3)
    with pytest.raises(IndexError, match=rf"passages: expected numbers from 0 to 2, found {wrong}$"):
        tables.values("passages", "id", np.array(numbers))


def test_whole_columns(tables: Tables) -> None:
    assert tables.whole("passages", "id") == ["p1", "p2", "p3"]
    assert tables.whole("facts", "text") == []


def test_what_there_is(tables: Tables, tmp_path: Path) -> None:
    assert tables.has("entities", "name")
    assert not tables.has("entities", "type")
    assert not tables.has("aliases", "alias")
    store.write_table(tmp_path / "aliases.parquet", {"alias": ["IBM"], "name": ["Big Blue"]})
    assert Tables(tmp_path).has("aliases", "alias")
