"""An answer without a language model: the facts that the retriever ranks first, then the nearest sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfm.index.index import GraphIndex
from gfm.text.chunk import embedded_text
from gfm.text.normalise import clean
from gfm.text.sentences import sentence_spans
from gfm.types import Context, Retrieval

_LEAST = 3  # characters of a sentence


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of a source, with the source's number."""

    n: int
    text: str


def best_sentences(index: GraphIndex, retrieval: Retrieval, context: Context, count: int) -> list[Quotation]:
    """What the sources say on a question, best first.

    Facts come first, as the retriever ranked them, but the best of each source before the second of any: an answer of
    several steps stands in several sources. On training questions of MuSiQue three of them held the answer more often
    than three sentences near the question. Sentences fill up what is missing.

    Args:
        index: Its encoder judges the sentences.
        retrieval: The question, the passages and the facts.
        context: The sources that may be quoted.
        count: How many sentences.
    """
    found = _facts(retrieval, context)[:count]
    if len(found) < count:
        said = "\n".join(quoted.text for quoted in found)
        found += [quoted for quoted in _nearest(index, retrieval, context) if quoted.text not in said]
    return found[:count]


def _facts(retrieval: Retrieval, context: Context) -> list[Quotation]:
    number = {s.passage_id: s.n for s in reversed(context.sources)}
    rows: dict[str, int] = {}
    for hit in sorted(retrieval.triples, key=lambda hit: hit.rank):
        if sources := [number[p] for p in hit.item.passage_ids if p in number]:
            rows.setdefault(clean(hit.item.text), min(sources))
    found = [Quotation(n, text) for text, n in rows.items()]
    first = {quoted.n: quoted for quoted in reversed(found)}.values()
    return sorted(found, key=lambda quoted: quoted not in first)  # stable


def _nearest(index: GraphIndex, retrieval: Retrieval, context: Context) -> list[Quotation]:
    """All sentences of the sources, the nearest to the question first; equal ones by source and place."""
    passages = {hit.item.id: hit.item for hit in retrieval.passages}
    rows: dict[str, Quotation] = {}
    for source in context.sources:
        passage = passages[source.passage_id]
        for start, end in sentence_spans(passage.text):
            sentence = clean(passage.text[start:end])
            if len(sentence) >= _LEAST:
                rows.setdefault(embedded_text(passage.title, sentence), Quotation(source.n, sentence))
    if not rows:
        return []
    question = index.encode([retrieval.query.text])[0]  # (D,)
    scores = index.encoder.encode(list(rows)) @ question  # (sentences,)
    order = np.argsort(-scores, kind="stable")
    found = list(rows.values())
    return [found[i] for i in order.tolist()]
