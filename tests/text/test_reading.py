from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.reading import is_blank, read_lines, read_rows, read_table, short_title
from gfm.types import GfmError

FILE = Path("t.csv")


def rows(text: str) -> list[tuple[int, dict[str, str]]]:
    return [(row.line, row.fields) for row in read_table(FILE, text)]


def test_a_table_with_quotes_and_line_breaks_in_its_cells() -> None:
    text = 'id,text,year\r\n1,"Tarn ""Mill"", built\r\nin 1911",1911\r\n\r\n2,Orla Venn,\r\n'
    assert rows(text) == [
        (2, {"id": "1", "text": 'Tarn "Mill", built\r\nin 1911', "year": "1911"}),
        (5, {"id": "2", "text": "Orla Venn"}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_the_one_that_finds_the_text(delimiter: str) -> None:
    table = delimiter.join(["Title", "TEXT", "Year"]) + "\n" + delimiter.join("abc")
    assert rows(table) == [(2, {"title": "a", "text": "b", "Year": "c"})]


def test_a_column_without_a_name_is_kept() -> None:
    assert rows("text,,\nx,y,\n") == [(2, {"text": "x", "column 2": "y"})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "head,rel,tail\nA,r,B\n",
            r"t.csv:1: expected a header line with a column 'text'; found 'head', 'rel', 'tail'",
        ),
        ("", r"t.csv:1: .*found no line"),
        ("text,year,year\n", r"t.csv:1: expected a name of its own for each column"),
        ("text,Text\n", r"t.csv:1: expected a name of its own for each column"),
        ("text,id\nx\n", r"t.csv:2: expected 2 cells as in the header, found 1; put quotes round"),
        ('id,text\n1,"x\ny"\n2,a,b\n', r"t.csv:4: expected 2 cells as in the header, found 3"),
        ('text\nfine\n"open\n', r"t.csv:3: expected a row of a CSV file; unexpected end of data"),
        ('text\n"a"b\n', r"t.csv:2: expected a row of a CSV file"),
    ],
)
def test_a_bad_table_is_told_by_its_line(text: str, message: str) -> None:
    with pytest.raises(GfmError, match=message):
        rows(text)


def test_a_blank_text_is_told_by_its_line() -> None:
    (row,) = read_table(FILE, "text,id\n,7\n")
    with pytest.raises(GfmError, match=r"t.csv:2: 'text' is blank"):
        row.required("text")


def test_a_cell_may_be_longer_than_the_library_likes() -> None:
    assert len(rows("text\n" + "x" * 200_000)[0][1]["text"]) == 200_000


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2, max_size=2)
    )
)
def test_what_a_spreadsheet_wrote_comes_back(cells: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("text", "note"), *cells])
    assert [fields for _, fields in rows(out.getvalue())] == [
        {"text": text, **({"note": note} if note else {})} for text, note in cells
    ]


def test_lines_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"text":"Łódź\u2028"}\r\n\r\n{"text":"x"}'.encode("utf-16"))
    assert list(read_lines(path, "UTF-16")) == [(1, '{"text":"Łódź\u2028"}'), (3, '{"text":"x"}')]
    assert [row.fields["text"] for row in read_rows(path, "utf-16")] == ["Łódź\u2028", "x"]
    with pytest.raises(GfmError, match=r"x.jsonl: byte 0 is not ascii"):
        list(read_lines(path, "ascii"))
    with pytest.raises(GfmError, match=r"x.jsonl:1: byte 0 is not UTF-8 .*as UTF-8, for example with: iconv"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), (" \n\u200b\u200d\0", True), ("\u200b.", False), ("\u3164", False)]
)
def test_blank_is_what_nobody_sees(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


def test_a_title_is_one_short_line() -> None:
    assert short_title(" Tarn\n Mill ") == "Tarn Mill"
    assert short_title("word " * 40) == "word " * 23 + "word…"
    assert len(short_title("x" * 500)) == 121
