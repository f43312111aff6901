"""HTML and Markdown to plain text: what a reader sees, block by block, with the sections that its headings make."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString
from markdown_it import MarkdownIt

from gfm.text.normalise import clean
from gfm.text.reading import one_line, printable, short_title
from gfm.types import Section

# Signs that no text holds once it is `printable`: the ends of blocks, of lines and of cells, and a space to be kept.
_BLOCK, _LINE, _CELL, _SPACE = "\0", "\1", "\2", "\3"
_HEADING = re.compile("\4([1-6])(.*)", re.DOTALL)
_EXACTLY = str.maketrans({"\n": _LINE, " ": _SPACE, "\t": _SPACE * 4})
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl"),
    *("dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr"),
    *("html", "legend", "li", "main", "ol", "p", "pre", "search", "section", "summary", "table", "tr", "ul"),
}
_BEFORE = {**dict.fromkeys(_BLOCKS, _BLOCK), **{f"h{n}": f"{_BLOCK}\4{n}" for n in range(1, 7)}}
_AFTER = {**dict.fromkeys(_BLOCKS, _BLOCK), "br": _LINE, "td": _CELL, "th": _CELL}
_UNSEEN = {
    *("audio", "button", "canvas", "embed", "head", "iframe", "input", "map", "nav", "noscript", "object", "script"),
    *("select", "style", "svg", "template", "textarea", "title", "video"),
}
_MENUS = {"navigation", "banner", "contentinfo", "search"}
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE_LINE = re.compile(r"^title:[ \t]*(['\"]?)(.+?)\1[ \t]*$", re.MULTILINE)
_COMMONMARK = MarkdownIt("commonmark").enable("table")
_BRACKETS = str.maketrans("()\uff08\uff09", "[][]")  # the second pair is full-width


@dataclass(frozen=True, slots=True)
class Markup:
    """A text with its markup taken away.

    Attributes:
        title: Its first heading of level one, or else what the file calls it, or else what the caller does.
        text: Blocks (paragraphs, headings, rows of tables), divided by blank lines.
        sections: See `Document`; empty where there is no heading.
        front_matter: The YAML at the head of a Markdown file, as it stands there.
    """

    title: str
    text: str
    sections: tuple[Section, ...]
    front_matter: str = ""


def read_markdown(text: str, title: str) -> Markup:
    """Markdown (CommonMark with tables) as plain text.

    Args:
        text: The file's text.
        title: Where the text gives none.
    """
    text = printable(text)  # line ends are \n from here on
    front = _FRONT_MATTER.match(text)
    if front:
        text = text[front.end() :]
        named = _TITLE_LINE.search(front[1])
        title = one_line(named[2]) if named else title
    found = _markup(_parsed(_COMMONMARK.render(text)), title)
    return Markup(found.title, found.text, found.sections, front[1].strip() if front else "")


def read_html(text: str, title: str) -> Markup:
    """HTML as plain text: the main part where the page marks one; no scripts, menus, forms or hidden parts.

    Args:
        text: The file's text.
        title: Where the page has neither a heading of level one nor a title.
    """
    soup = _parsed(text)
    named = one_line(soup.title.get_text()) if soup.title else ""
    found = _markup(soup.find("main") or soup, named or title)
    return found if found.text else _markup(_parsed(text), named or title)  # an empty main part is none


def _parsed(html: str) -> BeautifulSoup:
    # What begins with a tag of HTML is taken for a file name, an address or XML by nobody.
    return BeautifulSoup(f"<html>{html}", "html.parser")


def _markup(root: Tag, title: str) -> Markup:
    blocks = list(_blocks(root))
    title = next((text for level, text in blocks if level == 1), title)
    text = "\n\n".join(block for _, block in blocks)
    return Markup(short_title(title), text, tuple(_sections(blocks, title)))


def _blocks(root: Tag) -> Iterator[tuple[int, str]]:
    """(level of the heading, or 0; text) of each block that has text."""
    for block in "".join(_pieces(root)).split(_BLOCK):
        heading = _HEADING.match(block)
        text = _visible(heading[2] if heading else block)
        if text:
            yield (int(heading[1]), one_line(text)) if heading else (0, text)


def _pieces(root: Tag) -> Iterator[str]:
    """Strings and signs, in order. A stack, not calls: pages nest deeper than Python's calls may."""
    inside = [(root, iter(root.contents), False)]
    while inside:
        tag, children, exact = inside[-1]
        child = next(children, None)
        if child is None:
            inside.pop()
            yield _AFTER.get(tag.name, "")
        elif isinstance(child, Tag):
            if not _is_unseen(child):
                inside.append((child, iter(child.contents), exact or child.name == "pre"))
                yield _BEFORE.get(child.name, "")
        elif isinstance(child, NavigableString) and not isinstance(child, PreformattedString):  # no comment
            text = printable(child)  # a character reference can name any character
            yield text.translate(_EXACTLY) if exact else text


def _is_unseen(tag: Tag) -> bool:
    if tag.name in _UNSEEN or tag.has_attr("hidden") or tag.get("aria-hidden") == "true":
        return True
    if str(tag.get("role")) in _MENUS or re.search(r"display:\s*none", str(tag.get("style", ""))):
        return True
    return tag.name == "footer" and not tag.find_parent(("main", "article", "section", "blockquote"))


def _visible(block: str) -> str:
    """A block with white space collapsed as a browser does it; cells of a row divided by bars."""
    cells = ("\n".join(" ".join(line.split()) for line in cell.split(_LINE)) for cell in block.split(_CELL))
    text = " | ".join(cell for cell in cells if cell.strip()).replace(_SPACE, " ").strip("\n")
    return text if clean(text) else ""


def _sections(blocks: Sequence[tuple[int, str]], title: str) -> Iterator[Section]:
    """A section for each heading with something under it, and for what stands before the first one.

    A heading that has neither text nor a deeper heading under it is all that is said there, so it is a section itself.
    """
    if not any(level for level, _ in blocks):
        return
    path: dict[int, str] = {}
    start = end = place = 0  # of the section that is open, whose end is 0 while it is empty, and of the block
    for number, (level, block) in enumerate(blocks):
        stop = place + len(block)
        if level:
            if end:
                yield Section(_section_title(path, title), start, end)
            path = {depth: text for depth, text in path.items() if depth < level} | {level: block}
            end = 0
            following = blocks[number + 1][0] if number + 1 < len(blocks) else 1
            if following and following <= level:
                yield Section(_section_title(path, title), place, stop)
        else:
            start, end = (start if end else place), stop
        place = stop + 2
    if end:
        yield Section(_section_title(path, title), start, end)


def _section_title(path: dict[int, str], title: str) -> str:
    """``Tarn Mill (History: The fire)``: the last heading of level one, or the title, and the deeper headings."""
    inner = ": ".join(text for level, text in path.items() if level > 1).translate(_BRACKETS)
    root = short_title(path.get(1, title))
    return f"{root} ({short_title(inner)})" if inner and inner != root else root
