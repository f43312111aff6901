"""Word search alone: passages by BM25 (bm25s, the Lucene variant, k1 = 1.5, b = 0.75)."""

from __future__ import annotations

from typing import Self

import numpy as np

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Stopwatch, as_query, passage_hits
from gfm.retrieve.candidates import top
from gfm.types import Query, Retrieval


class BM25Retriever:
    """Passages by BM25; those that share no word with the question are no results."""

    def __init__(self, index: GraphIndex):
        self.index = index

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` best passages."""
        query, clock = as_query(query, top_k), Stopwatch()
        with clock.stage("search"):
            scores = self.index.lexical.bm25(self.index.lexical.token_ids(query.text))
            best: np.ndarray = top(scores, top_k)
            best = best[scores[best] > 0]
            hits = passage_hits(self.index, best, scores[best], top_k)
        return Retrieval(query, [], [], hits, "BM25", trace={"retriever": "bm25"}, seconds=clock.seconds)
