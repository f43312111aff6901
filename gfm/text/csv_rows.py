"""CSV files as rows with their place: UTF-8, a header line, RFC 4180 quoting."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gfm.text.reading import Row, read_text
from gfm.types import GfmError

_LARGEST_CELL = 2**31 - 1  # the module's own limit of 128 kB is smaller than a long passage


def read_csv_rows(path: Path, lists: Collection[str] = (), numbers: Collection[str] = ()) -> Iterator[Row]:
    """The rows of a CSV file by the names of its header, in lower case; empty cells are left out.

    Args:
        path: The file.
        lists: Columns of several values: a JSON array, or one value as it is.
        numbers: Columns of numbers.

    Raises:
        GfmError: No header, a row of another width, a quote that is never closed, or a cell that is not what it should
            be; the message names file and line.
    """
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    header: list[str] = []
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise GfmError(f"{path}:{line}: expected a row of CSV, found: {error}") from error
        if not header:
            header = _header(path, line, cells)
        elif any(cell.strip() for cell in cells):
            yield _row(path, line, header, cells, lists, numbers)
        line = reader.line_num + 1
    if not header:
        raise GfmError(f"{path}: expected a header line with the names of the columns, found an empty file")


def csv_header(path: Path) -> list[str]:
    """The names of the columns, in lower case; none where the file is empty.

    Raises:
        GfmError: The file cannot be read, or the header is not one.
    """
    first = next(csv.reader(io.StringIO(read_text(path), newline="")), [])
    return _header(path, 1, first) if first else []


def csv_text(header: list[str], rows: list[list[str]]) -> str:
    r"""Header and rows as CSV with ``\n`` at the ends of lines."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def list_cell(values: Collection[str]) -> str:
    """Values as one cell, read back by `read_csv_rows`: empty, the only value as it is, or a JSON array."""
    items = list(values)
    if len(items) == 1 and not items[0].lstrip().startswith("["):
        return items[0]
    return json.dumps(items, ensure_ascii=False) if items else ""


def _header(path: Path, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip().lower() for cell in cells]
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise GfmError(f"{path}:{line}: expected names of columns that differ, found {double!r} twice")
    return names


def _row(
    path: Path, line: int, header: list[str], cells: list[str], lists: Collection[str], numbers: Collection[str]
) -> Row:
    if len(cells) != len(header):
        raise GfmError(f"{path}:{line}: expected {len(header)} cells ({', '.join(header)}), found {len(cells)}")
    row = Row(path, line, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""})
    for name in row.fields:
        if name in lists:
            row.fields[name] = _list(row, name)
        elif name in numbers:
            row.fields[name] = _number(row, name)
    return row


def _list(row: Row, name: str) -> Any:
    cell = row.fields[name]
    if not cell.lstrip().startswith("["):
        return [cell]
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        row.fail(f"{name!r}: expected one value or a JSON array of values, found {cell[:60]!r} ({error})")


def _number(row: Row, name: str) -> float:
    try:
        return float(row.fields[name])
    except ValueError:
        row.fail(f"{name!r}: expected a number, found {row.fields[name][:60]!r}")
