"""One file of prose to its text: plain text, Markdown, HTML or PDF, by the ending of its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfm.text.encoding import decode, read_bytes
from gfm.text.reading import is_blank, printable, short_title
from gfm.types import GfmError, Section

if TYPE_CHECKING:
    from gfm.text.markup import Markup

_MARKDOWN = {".md", ".markdown"}
_HTML = {".html", ".htm"}
KINDS = {".txt", ".pdf"} | _MARKDOWN | _HTML


class NoTextError(GfmError):
    """There is nothing to index in a file, and nothing wrong with it."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file says.

    Attributes:
        title: What it is about.
        text: All of it; never blank.
        encoding: What its bytes were read in, in words; empty for a PDF.
        sections: See `Document`.
        metadata: ``pages`` of a PDF (where in the text each starts), ``front_matter`` of a Markdown file.
    """

    title: str
    text: str
    encoding: str
    sections: tuple[Section, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


def read_content(path: Path, title: str, encoding: str | None = None) -> Content:
    """Read a file of one of the `KINDS`.

    Args:
        path: The file.
        title: Where the file names none of its own.
        encoding: Of its bytes; found out unless given.

    Raises:
        NoTextError: It has no text.
        GfmError: It cannot be read. Both messages leave the file's name to the caller.
    """
    data = read_bytes(path)
    kind = path.suffix.lower()
    if kind == ".pdf" and data:
        from gfm.text.pdf import read_pdf

        text, pages = read_pdf(data)
        content = Content(short_title(title), text, "", metadata={"pages": pages})
        problem = f"no text: pictures alone on its {len(pages)} page{'s' * (len(pages) != 1)}; run OCR over it first"
    else:
        text, stated = decode(data, encoding)
        content = _plain(kind, text, title, stated)
        problem = "no text"
    if is_blank(content.text):
        raise NoTextError(problem)
    return content


def _plain(kind: str, text: str, title: str, stated: str) -> Content:
    if kind not in _MARKDOWN | _HTML:
        return Content(short_title(title), printable(text), stated)
    from gfm.text.markup import read_html, read_markdown  # its libraries are for those who index such files

    return _from_markup((read_html if kind in _HTML else read_markdown)(text, title), stated)


def _from_markup(found: Markup, stated: str) -> Content:
    metadata = {"front_matter": found.front_matter} if found.front_matter else {}
    return Content(found.title, found.text, stated, found.sections, metadata)
