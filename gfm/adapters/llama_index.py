"""Any of our retrievers as a retriever of LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gfm.adapters.passages import passage_metadata
from gfm.extras import extra
from gfm.retrieve.base import Retriever, within

with extra("llama-index"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks.base import CallbackManager
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

_SHOWN = "title"  # LlamaIndex puts metadata into prompts and vectors unless told otherwise


class GraphRetriever(BaseRetriever):
    """A retriever that query engines take: ``retrieve``, and ``aretrieve`` (in a thread of its own).

    A node's id is the passage's, its source the document, its span that in the document; for its metadata see
    `passage_metadata`. Only the title goes into prompts and vectors.

    Args:
        retriever: From `load_retriever`, `GNNRetriever.from_pretrained`, ….
        top_k: Passages to return.
        callback_manager: LlamaIndex's.
        filters: Only what documents with these fields support, see `gfm.index.part.where`.
    """

    def __init__(
        self,
        retriever: Retriever,
        top_k: int = 5,
        callback_manager: CallbackManager | None = None,
        filters: Mapping[str, Any] | None = None,
    ):
        super().__init__(callback_manager)
        self.retriever, self.top_k, self.filters = retriever, top_k, filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        retriever = within(self.retriever, self.filters)
        found = retriever.retrieve(query_bundle.query_str, self.top_k)
        out = []
        for hit, row in zip(found.passages, passage_metadata(retriever.index, found), strict=True):
            hidden = [name for name in row if name != _SHOWN]
            node = TextNode(
                id_=hit.item.id,
                text=hit.item.text,
                metadata=row,
                start_char_idx=hit.item.start,
                end_char_idx=hit.item.end,
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=hidden,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=hit.item.document_id)},
            )
            out.append(NodeWithScore(node=node, score=hit.score))
        return out

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
