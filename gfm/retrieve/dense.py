"""Vector search alone: passages by cosine with the question."""

from __future__ import annotations

from typing import Self

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Stopwatch, as_query, passage_hits, query_vector
from gfm.types import Query, Retrieval


class DenseRetriever:
    """Passages nearest to the question by cosine (FAISS)."""

    def __init__(self, index: GraphIndex):
        self.index = index

    def over(self, index: GraphIndex) -> Self:
        """The same over another index."""
        return type(self)(index)

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        """The ``top_k`` nearest passages."""
        query, clock = as_query(query, top_k), Stopwatch()
        vector = query_vector(self.index, query, clock)
        with clock.stage("search"):
            ids, scores = self.index.passage_vectors.search(vector[None], top_k)
            hits = passage_hits(self.index, ids[0], scores[0], top_k)
        return Retrieval(query, [], [], hits, "cosine", trace={"retriever": "dense"}, seconds=clock.seconds)
