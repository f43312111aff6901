"""An answer without a language model: the sentences of the sources that are nearest to the question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfm.index.index import GraphIndex
from gfm.text.chunk import embedded_text
from gfm.text.normalise import clean
from gfm.text.sentences import sentence_spans
from gfm.types import Context, Retrieval

_LEAST = 3  # visible characters of a sentence


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of a source.

    Attributes:
        n: Number of the source.
        text: The sentence.
        score: Cosine with the question.
    """

    n: int
    text: str
    score: float


def best_sentences(index: GraphIndex, retrieval: Retrieval, context: Context, count: int) -> list[Quotation]:
    """The sentences that are nearest to the question, best first; equal ones by source and place.

    Args:
        index: Its encoder judges.
        retrieval: The question and the passages.
        context: The sources that may be quoted.
        count: How many sentences.
    """
    passages = {hit.item.id: hit.item for hit in retrieval.passages}
    rows: dict[str, tuple[int, str]] = {}
    for source in context.sources:
        passage = passages[source.passage_id]
        for start, end in sentence_spans(passage.text):
            sentence = clean(passage.text[start:end])
            if len(sentence) >= _LEAST:
                rows.setdefault(embedded_text(passage.title, sentence), (source.n, sentence))
    if not rows:
        return []
    question = index.encode([retrieval.query.text])[0]  # (D,)
    scores = index.encoder.encode(list(rows)) @ question  # (sentences,)
    order = np.argsort(-scores, kind="stable")[:count]
    found = list(rows.values())
    return [Quotation(*found[i], score=float(scores[i])) for i in order.tolist()]
