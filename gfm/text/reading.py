"""Reading what people hand in: text fit to be stored, JSON lines and tables, errors by file and line."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gfm.text.encoding import UTF8_BOM, decode, not_utf8, read_bytes
from gfm.text.normalise import is_visible
from gfm.types import GfmError

_DROPPED = ("Cc", "Cs")
_MAX_TITLE = 120
_COLUMNS = {"text", "id", "_id", "title"}


def printable(text: str) -> str:
    r"""Text that every format can store: control characters and lone surrogates dropped, all but ``\n`` and ``\t``.

    CRLF and CR become ``\n``; other white control characters (a form feed between two pages) become a space. Joiners
    that a script needs (the zero-width non-joiner of Persian) stay; a byte-order mark inside the text goes.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    if text.replace("\n", "").replace("\t", "").isprintable():  # so is nearly every text, and this is fast
        return text
    if all(c in "\n\t" or unicodedata.category(c) not in _DROPPED for c in text):
        return text
    seen = (" " if c.isspace() and c not in "\n\t" and unicodedata.category(c) == "Cc" else c for c in text)
    return "".join(c for c in seen if c in "\n\t" or unicodedata.category(c) not in _DROPPED)


def one_line(text: str) -> str:
    """`printable` text with every run of white space collapsed to one space: for titles and questions."""
    return " ".join(printable(text).split())


def short_title(title: str) -> str:
    """A title on one line, cut after some 120 characters: what is longer is no title."""
    line = one_line(title)
    return line if len(line) <= _MAX_TITLE else line[:_MAX_TITLE].rsplit(" ", 1)[0] + "…"


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen (white space, control and zero-width characters alone)."""
    return not any(is_visible(c) for c in text)


def is_identifier(text: str) -> bool:
    """Whether the text can name something in every file of the project: not blank, no control character."""
    return not is_blank(text) and not any(unicodedata.category(c) in _DROPPED for c in text)


def read_text(path: Path) -> str:
    """A whole file of UTF-8, its byte-order mark dropped.

    Raises:
        GfmError: The file cannot be opened or is not UTF-8.
    """
    try:
        data = read_bytes(path)
    except GfmError as error:
        raise GfmError(f"{path}: {error}") from error
    return utf8_text(data, str(path))


def utf8_text(data: bytes, place: str) -> str:
    """A file's bytes as text, its byte-order mark dropped; ``place`` names it in messages.

    Raises:
        GfmError: It is not UTF-8.
    """
    mark = len(UTF8_BOM) if data.startswith(UTF8_BOM) else 0
    return _utf8(data[mark:], place, mark)


def read_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    r"""Numbered lines (from 1) that are not blank, split on ``\n`` only, so that U+2028 inside a text ends no line.

    Args:
        path: The file.
        encoding: Of the file; UTF-8, with or without a byte-order mark, unless given.

    Raises:
        GfmError: The file cannot be opened or is not in that encoding.
    """
    for number, line in enumerate(_utf8_lines(path) if encoding is None else _lines(path, encoding), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _utf8_lines(path: Path) -> Iterator[str]:
    """Line by line: a corpus may be larger than the memory."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                mark = len(UTF8_BOM) if number == 1 and raw.startswith(UTF8_BOM) else 0
                yield _utf8(raw[mark:], f"{path}:{number}", offset + mark)
                offset += len(raw)
    except OSError as error:
        raise GfmError(f"{path}: expected a readable file; {error.strerror}") from error


def _utf8(raw: bytes, place: str, offset: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GfmError(
            f"{place}: {not_utf8(raw, error, offset)}; expected UTF-8 text: save the file again as UTF-8, for example "
            "with: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from error


def _lines(path: Path, encoding: str) -> list[str]:
    try:
        return decode(read_bytes(path), encoding)[0].split("\n")
    except GfmError as error:
        raise GfmError(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of a JSONL file or one row of a table, with its place for messages."""

    path: Path
    line: int
    fields: dict[str, Any]

    def fail(self, message: str) -> NoReturn:
        """Raise a `GfmError` that begins with the file and the line."""
        raise GfmError(f"{self.path}:{self.line}: {message}")

    def required(self, *names: str) -> str:
        """The string under the first of ``names`` that the row has.

        Raises:
            GfmError: The row has none of them, or it is not a string, or nothing of it can be seen.
        """
        name = self._first(names)
        if name is None:
            found = ", ".join(map(repr, self.fields)) or "no field"
            self.fail(f"expected the field {' or '.join(map(repr, names))}; found {found}")
        value = self.fields[name]
        if not isinstance(value, str):
            self.fail(f"{name!r}: expected a string, found {_kind(value)}")
        if is_blank(value):
            self.fail(f"{name!r} is blank; fill it in or delete the line")
        return value

    def optional(self, name: str) -> str:
        """The string under ``name``; empty where the row lacks it or has null.

        Raises:
            GfmError: It is not a string.
        """
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            self.fail(f"{name!r}: expected a string, found {_kind(value)}")
        return value or ""

    def identifier(self, *names: str) -> str | None:
        """The id under the first of ``names`` that the row has, whole numbers as text; None where it has none.

        Raises:
            GfmError: It is neither a string nor a whole number, or it is blank or holds a control character.
        """
        name = self._first(names)
        if name is None:
            return None
        value = self.fields[name]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            self.fail(f"{name!r}: expected a string or a whole number, found {_kind(value)}")
        if not is_identifier(value):
            self.fail(f"{name!r}: expected an id that is not blank and has no control characters, found {value!r}")
        return value

    def metadata(self, *used: tuple[str, ...]) -> dict[str, Any]:
        """Every other field than the one that was read of each group of names in ``used``.

        An object under ``metadata`` is opened; where it and the row share a name, the row's own field stands.
        """
        taken = {self._first(names) for names in used} | {n for g in used for n in g if self.fields.get(n) is None}
        rest = {name: value for name, value in self.fields.items() if name not in taken}
        inner = rest.get("metadata")
        if isinstance(inner, dict):
            del rest["metadata"]
            return {**inner, **rest}
        return rest

    def _first(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if self.fields.get(name) is not None), None)


def read_rows(path: Path, encoding: str | None = None) -> Iterator[Row]:
    """The objects of a JSONL file, one a line; blank lines are passed over.

    Args:
        path: The file.
        encoding: See `read_lines`.

    Raises:
        GfmError: A line is not JSON or not an object, or the file is not in its encoding.
    """
    for number, line in read_lines(path, encoding):
        try:
            value = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise GfmError(f"{path}:{number}: expected one JSON object on the line; {error}") from error
        if not isinstance(value, dict):
            raise GfmError(f"{path}:{number}: expected a JSON object, found {_kind(value)}")
        yield Row(path, number, value)


def read_table(path: Path, text: str) -> Iterator[Row]:
    """The rows of a CSV file under its header line; blank lines are passed over.

    The delimiter is a comma, or else the semicolon or tab with which spreadsheets of many countries write. Empty cells
    count as missing. The names ``text``, ``id``, ``_id`` and ``title`` may be written in capitals.

    Args:
        path: The file, for messages.
        text: All of it.

    Raises:
        GfmError: No column ``text``, a name twice, a row of another length than the header, or quotes that do not
            close; by file and line.
    """
    csv.field_size_limit(1 << 30)  # the library's own limit is far below a long document
    names, delimiter = _header(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for number, cells in enumerate(reader):
            if number and cells:
                row = Row(path, line, {n: c for n, c in zip(names, cells, strict=False) if c or n == "text"})
                if len(cells) != len(names):
                    row.fail(
                        f"expected {len(names)} cells as in the header, found {len(cells)}; put quotes round a "
                        f"cell that holds {delimiter!r} or a line break"
                    )
                yield row
            line = reader.line_num + 1
    except csv.Error as error:
        raise GfmError(f"{path}:{line}: expected a row of a CSV file; {error}") from error


def _header(path: Path, text: str) -> tuple[list[str], str]:
    """Names of the columns, and the delimiter under which one of them is ``text``."""
    first = ""
    for delimiter in ",;\t":
        try:
            cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        names = [_column(name, number) for number, name in enumerate(map(one_line, cells), start=1)]
        first = first or ", ".join(map(repr, names))
        if "text" in names:
            if len(set(names)) < len(names):
                raise GfmError(f"{path}:1: expected a name of its own for each column, found {names}")
            return names, delimiter
    raise GfmError(f"{path}:1: expected a header line with a column 'text'; found {first or 'no line'}")


def _column(name: str, number: int) -> str:
    return name.casefold() if name.casefold() in _COLUMNS else name or f"column {number}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _kind(value: object) -> str:
    """The JSON name of a value's type."""
    names: dict[type, str] = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
