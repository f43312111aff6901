"""The text of a PDF, its lines joined into paragraphs again."""

from __future__ import annotations

import regex as re  # knows upper and lower case of every script

from gfm.text.chunk import is_wrapped
from gfm.text.reading import printable
from gfm.types import GfmError

# PDFium writes U+FFFE for a hyphen at the end of a line, and joins the two halves of the word.
_SPLIT_WORD = re.compile("(?<=\\p{L})\ufffe(?=\\p{Ll})|(?<=\\p{Lu})\ufffe(?=\\p{Lu})")
_FULL = 0.8  # of the most letters in a line of the page; letters differ in width, so full lines differ in number


def read_pdf(data: bytes) -> tuple[str, list[int]]:
    """The text of a PDF; blank where its pages hold pictures alone.

    Args:
        data: The file.

    Returns:
        Paragraphs, divided by blank lines, and the place in the text at which each page starts.

    Raises:
        GfmError: It asks for a password, or is no PDF that can be read; the message leaves its name to the caller.
    """
    import pypdfium2  # only for those who need it: it loads PDFium

    try:
        with pypdfium2.PdfDocument(data) as pdf:
            pages = [_lines(pdf[number].get_textpage().get_text_range()) for number in range(len(pdf))]
    except pypdfium2.PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise GfmError("encrypted: it opens with a password only; save a copy without one") from error
        raise GfmError(f"expected a PDF that can be read; {error}") from error
    return _joined(pages)


def _lines(page: str) -> list[str]:
    text = _SPLIT_WORD.sub("", page).replace("\ufffe", "-")
    return [line.strip() for line in printable(text).split("\n") if line.strip()]


def _joined(pages: list[list[str]]) -> tuple[str, list[int]]:
    pieces: list[str] = []
    starts: list[int] = []
    last, width, length = "", 0.0, 0
    for lines in pages:
        starts.append(length)
        for number, line in enumerate(lines):
            between = "" if not pieces else " " if is_wrapped(last, line, width) else "\n\n"
            pieces += [between, line]
            length += len(between) + len(line)
            if number == 0:
                starts[-1] = length - len(line)
                width = _FULL * max(map(len, lines))
            last = line
    return "".join(pieces), starts
