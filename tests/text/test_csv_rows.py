from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.text.csv_rows import csv_header, csv_text, list_cell, read_csv_rows
from gfm.types import GfmError


def file(folder: Path, data: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_byte_order_mark_crlf_quotes_and_lines_of_rows(tmp_path: Path) -> None:
    """B06."""
    data = b"\xef\xbb\xbfHead,rel,tail \r\n" + '"A, ""B""\nC",r,x\u2028y\r\n\r\nD,,E\r\n'.encode()
    rows = list(read_csv_rows(file(tmp_path, data)))
    assert [(row.line, row.fields) for row in rows] == [
        (2, {"head": 'A, "B"\nC', "rel": "r", "tail": "x\u2028y"}),
        (5, {"head": "D", "tail": "E"}),
    ]
    assert csv_header(tmp_path / "t.csv") == ["head", "rel", "tail"]


def test_lists_and_numbers(tmp_path: Path) -> None:
    path = file(tmp_path, 'ids,w\nA; B,2.5\n"[""A"",""B""]",\n')
    assert [row.fields for row in read_csv_rows(path, ("ids",), ("w",))] == [
        {"ids": ["A; B"], "w": 2.5},
        {"ids": ["A", "B"]},
    ]


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        ("", "", "expected a header line"),
        ("a,a\n", ":1", "'a' twice"),
        ("a,b\n1,2\n1\n", ":3", "expected 2 cells (a, b), found 1"),
        ('a,b\n"x\ny",2\n1,2,3\n', ":4", "found 3"),
        ('a,b\n1,2\n"x,2\n', ":3", "unexpected end of data"),
        ("ids\n[1\n", ":2", "'ids': expected one value or a JSON array"),
        ("w\nx\n", ":2", "'w': expected a number, found 'x'"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, data: str, place: str, words: str) -> None:
    path = file(tmp_path, data)
    with pytest.raises(GfmError) as error:
        list(read_csv_rows(path, ("ids",), ("w",)))
    assert str(error.value).startswith(f"{path}{place}: ")
    assert words in str(error.value)


def test_a_long_cell(tmp_path: Path) -> None:
    (row,) = read_csv_rows(file(tmp_path, f"text\n{'x' * 300_000}\n"))
    assert len(row.fields["text"]) == 300_000


def test_what_is_written_is_plain_csv() -> None:
    text = csv_text(["a", "b"], [["x,y", 'q"'], ["", "z\nw"]])
    assert text == 'a,b\n"x,y","q"""\n,"z\nw"\n'
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], ["x,y", 'q"'], ["", "z\nw"]]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1), max_size=3))
def test_a_list_goes_both_ways(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "list.csv"
    path.write_text(csv_text(["v", "x"], [[list_cell(values), "1"]]), encoding="utf-8", newline="\n")
    (row,) = read_csv_rows(path, ("v",))
    assert row.fields.get("v", []) == values
