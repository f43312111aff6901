from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.exchange.rdf import Statement, Term, line, literal, local_name, read_statements
from gfm.types import GfmError


def file(folder: Path, text: str) -> Path:
    path = folder / "g.nt"
    path.write_bytes(text.encode())
    return path


def test_terms_of_every_kind(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "# a comment\n"
        "<urn:a> <urn:b> <urn:c> .\n"
        "_:x1<urn:b>_:y.1.# end\r\n"
        '<urn:a> <urn:b> "caf\\u00e9 \\U0001F680 \\"q\\"\\n\\\\"@en-GB .\n'
        '<urn:\\u00e9> <urn:b> "7"^^<urn:int> .\n',
    )
    assert list(read_statements(path)) == [
        Statement("urn:a", "urn:b", Term("urn:c"), f"{path}:2"),
        Statement("_:x1", "urn:b", Term("_:y.1"), f"{path}:3"),
        Statement("urn:a", "urn:b", Term('café 🚀 "q"\n\\', True, "en-gb"), f"{path}:4"),
        Statement("urn:é", "urn:b", Term("7", True), f"{path}:5"),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "<urn:a> <urn:b> .",
        "<urn:a> <urn:b> <urn:c>",
        '"x" <urn:b> <urn:c> .',
        "<urn:a> _:b <urn:c> .",
        '<urn:a> <urn:b> "x .',
        '<urn:a> <urn:b> "\\q" .',
        '<urn:a> <urn:b> "\\UFFFFFFFF" .',
        "<urn:a b> <urn:b> <urn:c> .",
        "@prefix a: <urn:a> .",
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, bad: str) -> None:
    path = file(tmp_path, f"<urn:a> <urn:b> <urn:c> .\n\n{bad}\n")
    with pytest.raises(GfmError) as error:
        list(read_statements(path))
    assert str(error.value).startswith(f"{path}:3: expected ")


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://x.org/resource/Tarn_Mill", "Tarn Mill"),
        ("http://x.org/o#birthPlace", "birth Place"),
        ("urn:gfm:entity/%E6%9D%8E", "李"),
        ("http://x.org/a/", "a"),
    ],
)
def test_what_people_read_in_an_iri(iri: str, name: str) -> None:
    assert local_name(iri) == name


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_a_literal_goes_both_ways(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.nt"
    path.write_bytes(line("urn:a", "urn:b", literal(text)).encode())
    (found,) = read_statements(path)
    assert found.object == Term(text, True)
