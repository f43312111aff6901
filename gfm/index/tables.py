"""The tables of a generation, read a column at a time: nobody pays for texts that nobody looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from gfm.index import store

_NAMES = ("documents", "passages", "entities", "facts", "triples")
_NEWER = ("forms", "aliases")  # an index of an earlier version has none


class Tables:
    """Columns by table and name; threads may share one.

    Args:
        folder: A generation whose files were verified; every table is opened, so that none is looked for by name later.
    """

    def __init__(self, folder: Path):
        names = (*_NAMES, *(name for name in _NEWER if (folder / f"{name}.parquet").is_file()))
        self._tables = {name: store.open_table(folder / f"{name}.parquet") for name in names}
        self._columns: dict[tuple[str, str], Any] = {}
        self._readers: dict[tuple[str, str], tuple[int, Callable[[np.ndarray], list[Any]]]] = {}
        self._reading = Lock()

    def has(self, table: str, name: str) -> bool:
        """Whether there is such a column."""
        return table in self._tables and name in self._tables[table].schema_arrow.names

    def whole(self, table: str, name: str) -> list[Any]:
        """A whole column."""
        values: list[Any] = self._column(table, name).to_pylist()
        return values

    def values(self, table: str, name: str, numbers: np.ndarray) -> list[Any]:
        """A column's values at the given row numbers."""
        if (table, name) not in self._readers:
            self._readers[table, name] = _reader(self._column(table, name))
        length, read = self._readers[table, name]
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < length:
            wrong = numbers[(numbers < 0) | (numbers >= length)]
            raise IndexError(f"{table}: expected numbers from 0 to {length - 1}, found {wrong[0]}")
        return read(numbers)

    def rows(self, chosen: Mapping[str, np.ndarray]) -> Tables:
        """The same tables with some of their rows, int64[·] by table; those of the others are not to be read."""
        return _Rows(self, chosen)

    def _column(self, table: str, name: str) -> Any:
        """One column as an Arrow array, read on first use."""
        with self._reading:
            if (table, name) not in self._columns:
                self._columns[table, name] = self._read(table, name)
            return self._columns[table, name]

    def _read(self, table: str, name: str) -> Any:
        column = self._tables[table].read(columns=[name], use_threads=False)[name]
        return column.chunk(0) if column.num_chunks == 1 else column


class _Rows(Tables):
    def __init__(self, whole: Tables, chosen: Mapping[str, np.ndarray]):
        self._whole, self._chosen = whole, chosen
        self._tables = {name: table for name, table in whole._tables.items() if name in chosen}
        self._columns, self._readers, self._reading = {}, {}, Lock()

    def _read(self, table: str, name: str) -> Any:
        return self._whole._column(table, name).take(pa.array(self._chosen[table], pa.int64()))


def _reader(column: Any) -> tuple[int, Callable[[np.ndarray], list[Any]]]:
    """Length of an Arrow column, and what reads its values at row numbers."""
    if not pa.types.is_string(column.type) or isinstance(column, pa.ChunkedArray):
        return len(column), lambda numbers: column.take(pa.array(numbers, pa.int64())).to_pylist()
    # Cut from the column's bytes by hand: for a few values, Arrow takes ten times as long to make them Python's.
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset :]
    text = memoryview(data or b"")

    def read(numbers: np.ndarray) -> list[Any]:
        ends = zip(bounds[numbers].tolist(), bounds[numbers + 1].tolist(), strict=True)
        return [str(text[start:end], "utf-8") for start, end in ends]

    return len(column), read
