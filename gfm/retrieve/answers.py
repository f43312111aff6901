"""Entities as answers: what a question over a bare graph of facts asks for."""

from __future__ import annotations

from typing import Protocol

from gfm.index.index import GraphIndex
from gfm.retrieve.base import as_query
from gfm.types import Entity, Hit, Query


class EntityRanker(Protocol):
    """A retriever that ranks entities too: the learnt one, ``ppr`` and ``ppr_entity``."""

    index: GraphIndex

    def rank_entities(self, query: str | Query, top_k: int = 10) -> list[Hit[Entity]]:
        """The best entities for a question, in total order."""


def answer_entities(retriever: EntityRanker, query: str | Query, top_k: int = 10) -> list[Hit[Entity]]:
    """The entities that answer a question best, from the question alone.

    An entity that the question names (`Lexical.named`) is never its answer, whichever retriever is asked: who asks
    "what films did Orla Venn direct" is not told Orla Venn. Ranks count from 1 among the others.

    Raises:
        GfmError: A blank question, or a top_k below 1.
    """
    query = as_query(query, top_k)
    index = retriever.index
    named = {index.entity_key(int(i)) for i in index.lexical.named(index.lexical.token_ids(query.text))}
    hits = retriever.rank_entities(query, top_k + len(named))
    left = [hit for hit in hits if hit.item.key not in named][:top_k]
    return [Hit(hit.item, hit.score, rank) for rank, hit in enumerate(left, start=1)]
