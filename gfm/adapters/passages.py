"""What every adapter tells of a passage that was found, besides its text."""

from __future__ import annotations

from typing import Any

from gfm.index.index import GraphIndex
from gfm.report import as_json
from gfm.types import Retrieval


def passage_metadata(index: GraphIndex, found: Retrieval) -> list[dict[str, Any]]:
    """Of each passage, best first, plain values.

    ``passage_id``, ``document_id``, ``title``, ``start`` and ``end`` (the span in the document), ``rank`` (from 1),
    ``score`` and ``score_unit``, ``path`` (the evidence path from an entity of the question, one mapping a step; empty
    where the retriever has none), ``document`` (the document's own free fields), and ``fallback`` (null, or what ranked
    them where the graph was of no help).

    Args:
        index: Where it was found.
        found: From any retriever.
    """
    row = as_json(found)
    return [
        {
            "passage_id": hit["id"],
            **{name: hit[name] for name in ("document_id", "title", "start", "end", "rank", "score")},
            "score_unit": found.score_unit,
            "path": row["paths"].get(hit["id"], []),
            "document": index.document_metadata[hit["document_id"]],
            "fallback": found.trace.get("fallback"),
        }
        for hit in row["passages"]
    ]
