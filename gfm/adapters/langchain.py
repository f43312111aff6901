"""Any of our retrievers as a retriever of LangChain."""

from __future__ import annotations

from typing import Any

from gfm.adapters.passages import passage_metadata
from gfm.extras import extra
from gfm.retrieve.base import within

with extra("langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class GraphRetriever(BaseRetriever):
    """A retriever that chains take: ``invoke`` and ``batch``, ``ainvoke`` and ``abatch`` (in a thread of their own).

    A document's id is the passage's, its text the passage's; for its metadata see `passage_metadata`.

    Attributes:
        retriever: From `load_retriever`, `GNNRetriever.from_pretrained`, ….
        top_k: Passages to return.
        filters: Only what documents with these fields support, see `gfm.index.part.where`.
    """

    retriever: Any
    top_k: int = 5
    filters: dict[str, Any] | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        retriever = within(self.retriever, self.filters)
        found = retriever.retrieve(query, self.top_k)
        rows = passage_metadata(retriever.index, found)
        return [
            Document(page_content=hit.item.text, id=hit.item.id, metadata=row)
            for hit, row in zip(found.passages, rows, strict=True)
        ]
