"""Documents to passages: whole sentences, within the encoder's own token limit, spans that slice back exactly."""

from __future__ import annotations

from semantic_text_splitter import TextSplitter

from gfm.text.encoder import Encoder
from gfm.text.normalise import encodable
from gfm.types import Document, GfmError, Passage


def embedded_text(title: str, text: str) -> str:
    """What is encoded for a passage."""
    return f"{title}. {text}" if title.strip() else text


def split(document: Document, encoder: Encoder, max_tokens: int = 256, overlap: int = 0) -> list[Passage]:
    """Passages of a document; a document that fits is one passage under its own id.

    Passages lose the blanks at their ends, nothing else: together they hold every other character of the text.

    Args:
        document: What to split.
        encoder: Its tokenizer counts, and its own limit caps ``max_tokens``.
        max_tokens: Most tokens of a passage together with its title and the special tokens.
        overlap: Tokens that neighbouring passages share.

    Raises:
        GfmError: The title leaves no room for text.
    """
    limit = min(max_tokens, encoder.max_tokens) - 2
    if encoder.count_tokens(embedded_text(document.title, document.text)) <= limit:
        return [Passage(document.id, document.id, document.title, document.text, 0, len(document.text))]
    room = limit - encoder.count_tokens(embedded_text(document.title, ""))
    if room < 16 or not 0 <= overlap < room:
        raise GfmError(
            f"document {document.id!r}: its title leaves {room} tokens of {limit} for text, expected at least 16 and "
            f"more than the overlap ({overlap}); shorten the title or raise --chunk-tokens"
        )
    splitter = TextSplitter.from_callback(encoder.count_tokens, room, overlap=overlap)
    spans = [(start, start + len(piece)) for start, piece in splitter.chunk_indices(encodable(document.text))]
    return [
        Passage(f"{document.id}#{k}", document.id, document.title, document.text[start:end], start, end)
        for k, (start, end) in enumerate(spans)
    ]
