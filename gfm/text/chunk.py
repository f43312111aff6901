"""Documents to passages: whole sentences, within the encoder's own token limit, spans that slice back exactly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

import regex as re  # knows letters of every script
from semantic_text_splitter import TextSplitter

from gfm.text.encoder import Encoder
from gfm.text.normalise import encodable
from gfm.types import Document, GfmError, Passage, Section

_LEAST_ROOM = 16
# Full lines of text that somebody or an editor wrapped; narrower ones are lists, wider ones whole paragraphs.
_LEAST_WIDTH, _MOST_WIDTH = 40, 160
_MOST_RUN = 2000  # characters
_RUN = re.compile(rf"[^\s\p{{P}}]{{{_MOST_RUN + 1},}}")
_BLANK_LINE = re.compile(r"(\n\s*\n)")
_GOES_ON = re.compile(r"(?!(?:\p{N}{1,3}|\p{L})[.)]\s)[\p{L}\p{N}\p{Ps}\p{Pi}\"']")  # no mark or number of a list


def embedded_text(title: str, text: str) -> str:
    """What is encoded for a passage."""
    return f"{title}. {text}" if title.strip() else text


def split(document: Document, encoder: Encoder, max_tokens: int = 256, overlap: int = 0) -> list[Passage]:
    """Passages of a document; a document that fits, or makes one section that fits, is one passage under its own id.

    Passages lose the blanks at their ends, nothing else: together they hold every other character of the text, or of
    its sections where it has headings.

    Args:
        document: What to split.
        encoder: Its tokenizer counts, and its own limit caps ``max_tokens``.
        max_tokens: Most tokens of a passage together with its title and the special tokens.
        overlap: Most tokens that neighbouring passages share, in whole sentences.

    Raises:
        GfmError: The title leaves no room for text.
    """
    limit = min(max_tokens, encoder.max_tokens) - 2
    whole = Section(document.title, 0, len(document.text))
    sections = document.sections or (whole,)
    found: list[Section] = []
    for section in chain.from_iterable(_without_long_runs(s, document.text) for s in sections):
        text = document.text[section.start : section.end]
        if encoder.count_tokens(embedded_text(section.title, text)) <= limit:
            found.append(section)
            continue
        room = limit - encoder.count_tokens(embedded_text(section.title, ""))
        if room < _LEAST_ROOM or not 0 <= overlap < room:
            raise GfmError(
                f"document {document.id!r}: its title leaves {room} tokens of {limit} for text, expected at least "
                f"{_LEAST_ROOM} and more than the overlap ({overlap}); shorten the title or raise --chunk-tokens"
            )
        found += (
            Section(section.title, section.start + start, section.start + end)
            for start, end in _spans(text, encoder, room, overlap)
        )
    whole_ids = found == list(sections) and len(found) == 1
    return [
        Passage(
            document.id if whole_ids else f"{document.id}#{k}",
            document.id,
            part.title,
            document.text[part.start : part.end],
            part.start,
            part.end,
        )
        for k, part in enumerate(found)
    ]


def _without_long_runs(section: Section, text: str) -> Iterator[Section]:
    """The section, cut within every run of characters that is too long to be a word, such as an embedded picture.

    To a tokenizer a run of any length may be one unknown word, or hours of work.
    """
    start = section.start
    for run in _RUN.finditer(text, section.start, section.end):
        for cut in range(run.start() + _MOST_RUN, run.end(), _MOST_RUN):
            yield Section(section.title, start, cut)
            start = cut
    yield Section(section.title, start, section.end)


def _spans(text: str, encoder: Encoder, room: int, overlap: int) -> Iterator[tuple[int, int]]:
    splitter = TextSplitter.from_callback(encoder.count_tokens, room, overlap=overlap)
    for start, piece in splitter.chunk_indices(unwrapped(encodable(text))):
        yield start, start + len(piece)


def unwrapped(text: str) -> str:
    """The text with a space for each line break that stands inside a sentence only because a line was full.

    The splitter prefers line breaks to ends of sentences, so it would cut such sentences in two. The length stays, and
    so do all spans.
    """
    pieces = _BLANK_LINE.split(text)
    pieces[::2] = map(_unwrapped_paragraph, pieces[::2])
    return "".join(pieces)


def _unwrapped_paragraph(paragraph: str) -> str:
    lines = paragraph.split("\n")
    width = max(map(len, lines))
    if len(lines) == 1 or not _LEAST_WIDTH <= width <= _MOST_WIDTH:
        return paragraph
    pieces = [lines[0]]
    for line, following in pairwise(lines):
        pieces += [" " if is_wrapped(line, following, width) else "\n", following]
    return "".join(pieces)


def is_wrapped(line: str, following: str, width: float) -> bool:
    """Whether a line goes on in the one after it: in lower case, or with a word that had no room before it.

    Args:
        line: Of a paragraph.
        following: The line after it.
        width: Of a full line, in characters.
    """
    if not _GOES_ON.match(following):
        return False
    is_full = len(line.rstrip()) + 1 + len(following.split(maxsplit=1)[0]) > width >= _LEAST_WIDTH
    return is_full or following[0].islower()
