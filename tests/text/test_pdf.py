from __future__ import annotations

from typing import Any

import pytest

from gfm.text.pdf import read_pdf
from gfm.types import GfmError

PARAGRAPH = [
    "Tarn Mill was built by Orla Venn in 1911. It stands by the Halder Sea,",
    "where the water freezes each winter, and people of Port Isk come there",
    "to skate.",
]


def test_lines_are_joined_into_paragraphs_again(make_pdf: Any) -> None:
    text, pages = read_pdf(make_pdf(["Tarn Mill", *PARAGRAPH, "Owners", "It belongs to Abel Works."]))
    assert text == f"Tarn Mill\n\n{' '.join(PARAGRAPH)}\n\nOwners\n\nIt belongs to Abel Works."
    assert pages == [0]


def test_each_page_has_its_place_in_the_text(make_pdf: Any) -> None:
    text, pages = read_pdf(make_pdf(["First (page)."], [], ["Second \\ page, caf\xe9."]))
    assert text == "First (page).\n\nSecond \\ page, caf\xe9."
    assert [text[start:].split("\n")[0] for start in pages] == ["First (page).", "", "Second \\ page, caf\xe9."]


def test_a_sentence_goes_on_over_the_page(make_pdf: Any) -> None:
    text, pages = read_pdf(make_pdf(PARAGRAPH[:1], PARAGRAPH[1:]))
    assert text == " ".join(PARAGRAPH)
    assert text[pages[1] :].startswith("where the water")


def test_a_word_that_was_split_at_the_end_of_a_line_is_whole_again(make_pdf: Any) -> None:
    text, _ = read_pdf(make_pdf(["The mill was a good invest-", "ment of the North-", "East line."]))
    assert text == "The mill was a good investment of the North-East line."


def test_a_pdf_of_pictures_is_blank(make_pdf: Any) -> None:
    assert read_pdf(make_pdf([], [])) == ("", [0, 0])


def test_an_encrypted_pdf_says_so(make_pdf: Any) -> None:
    with pytest.raises(GfmError, match=r"^encrypted: "):
        read_pdf(make_pdf(PARAGRAPH, encrypted=True))


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.4\n" * 9])
def test_what_is_no_pdf_says_so(data: bytes) -> None:
    with pytest.raises(GfmError, match=r"^expected a PDF that can be read; "):
        read_pdf(data)
