from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gfm.text.content import KINDS, NoTextError, read_content
from gfm.types import GfmError, Section


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_the_text_of_a_plain_file_is_its_own(tmp_path: Path) -> None:
    found = read_content(write(tmp_path, "x.TXT", b"\xef\xbb\xbf# Tarn Mill\r\n <b>stands</b>.\n"), "x")
    assert (found.title, found.text, found.encoding) == ("x", "# Tarn Mill\n <b>stands</b>.\n", "UTF-8")
    assert (found.sections, found.metadata) == ((), {})


@pytest.mark.parametrize("ending", ["md", "markdown"])
def test_markdown(tmp_path: Path, ending: str) -> None:
    data = "---\nyear: 1911\n---\n# Tarn Mill\n\nBuilt – *then*.".encode("cp1252")
    found = read_content(write(tmp_path, f"x.{ending}", data), "x")
    assert (found.title, found.text) == ("Tarn Mill", "Tarn Mill\n\nBuilt – then.")
    assert found.sections == (Section("Tarn Mill", 11, 24),)
    assert (found.metadata, found.encoding) == ({"front_matter": "year: 1911"}, "windows-1252 (detected)")


@pytest.mark.parametrize("ending", ["html", "HTM"])
def test_html_in_a_given_encoding(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, f"x.{ending}", "<title>Łódź</title><p>text".encode("iso-8859-2"))
    found = read_content(path, "x", "iso-8859-2")
    assert (found.title, found.text, found.encoding) == ("Łódź", "text", "iso-8859-2")


def test_pdf(tmp_path: Path, make_pdf: Any) -> None:
    found = read_content(write(tmp_path, "x.pdf", make_pdf(["One."], ["Two."])), "x")
    assert (found.title, found.text, found.encoding) == ("x", "One.\n\nTwo.", "")
    assert found.metadata == {"pages": [0, 6]}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("data", [b"", b"\n\t ", b"\xef\xbb\xbf\n"])
def test_a_file_of_blanks_has_no_text(tmp_path: Path, kind: str, data: bytes) -> None:
    error = GfmError if kind == ".pdf" and data else NoTextError
    with pytest.raises(error, match=r"^no text$" if error is NoTextError else "expected a PDF"):
        read_content(write(tmp_path, f"x{kind}", data), "x")


def test_pages_without_text(tmp_path: Path, make_pdf: Any) -> None:
    with pytest.raises(NoTextError, match=r"^no text: pictures alone on its 2 pages; run OCR"):
        read_content(write(tmp_path, "x.pdf", make_pdf([], [])), "x")
    with pytest.raises(NoTextError, match=r"^no text$"):
        read_content(write(tmp_path, "x.html", b"<script>1</script><img src=x>"), "x")
