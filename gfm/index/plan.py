"""What a build will ask a language model, and what that costs, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfm.extract.llm import LLMExtractor
from gfm.index.builder import split_all
from gfm.index.cache import Cache
from gfm.index.recipe import BuildSettings
from gfm.llm.budget import dollars
from gfm.text.encoder import Encoder
from gfm.text.estimate import estimate_tokens
from gfm.types import Document, Passage

# A reply repeats the sentences of its passage as evidence, and names their ends.
_REPLY_SHARE, _REPLY_LEAST = 2.0, 50


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate, in the tokens of a cautious counter.

    Attributes:
        passages: All of the corpus.
        calls: Requests, one for each text that the cache lacks; a useless reply is asked for once more.
        input_tokens: Read by the model, if every reply is of use.
        output_tokens: Written by it, if replies have the usual length.
        most_tokens: Read and written, if every reply is as long as it may be and the first of no use.
        usd: Price of the former; None where the prices are not known.
        most_usd: Price of the latter.
    """

    passages: int
    calls: int
    input_tokens: int
    output_tokens: int
    most_tokens: int
    usd: float | None
    most_usd: float | None

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {name: getattr(self, name) for name in self.__slots__}

    def text(self) -> str:
        """One line for people."""
        if not self.calls:
            return f"language model: nothing to ask, all {self.passages:,} passages are known"
        known = self.passages - self.calls  # or copies of a text that is asked about
        price = dollars(None) if self.usd is None else f"about {dollars(self.usd)}, at most {dollars(self.most_usd)}"
        return (
            f"language model: {self.calls:,} calls ({known:,} of {self.passages:,} passages are known), about "
            f"{self.input_tokens:,} tokens read and {self.output_tokens:,} written, {price}"
        )


def plan_extraction(
    documents: Sequence[Document],
    encoder: Encoder,
    settings: BuildSettings,
    extractor: LLMExtractor,
    cache_path: Path,
) -> Plan:
    """What a build would ask.

    Args:
        documents: All of the corpus.
        encoder: Its tokenizer splits them.
        settings: So.
        extractor: Asks.
        cache_path: Of the index; there may be none yet, and none is made.

    Raises:
        GfmError: Bad documents, or a file that is no cache.
    """
    passages = split_all(documents, encoder, settings)
    if not cache_path.is_file():
        return plan_unread(len(passages), list({p.text: p for p in passages}.values()), extractor)
    cache = Cache(cache_path)
    try:
        return plan_unread(len(passages), cache.unread(passages, extractor), extractor)
    finally:
        cache.close()


def plan_unread(passages: int, unread: Sequence[Passage], extractor: LLMExtractor) -> Plan:
    """What is asked about the passages ``unread``, of so many in all."""
    limits = extractor.llm.settings
    read = sum(extractor.input_tokens(p.text) for p in unread)
    usual = (int(_REPLY_SHARE * estimate_tokens(p.text)) + _REPLY_LEAST for p in unread)
    written = sum(min(limits.reply_tokens, tokens) for tokens in usual)
    most = len(unread) * limits.reply_tokens
    return Plan(
        passages=passages,
        calls=len(unread),
        input_tokens=read,
        output_tokens=written,
        most_tokens=2 * read + 3 * most,  # the second request repeats the first reply
        usd=limits.usd(read, written),
        most_usd=limits.usd(2 * read + most, 2 * most),
    )
