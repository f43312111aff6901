"""What a request asks for, as plain values; the same as the commands give with --json."""

from __future__ import annotations

from typing import Any

from gfm.answer.answer import Answerer, AnswerSettings
from gfm.context import build_context
from gfm.llm.port import LLM
from gfm.report import as_json
from gfm.retrieve.base import Retriever
from gfm.retrieve.gnn import GNNRetriever
from gfm.viewer.graph import explanation

Done = tuple[dict[str, Any], dict[str, float]]  # the values, and the seconds by stage of retrieval


def search(retriever: Retriever, question: str, top_k: int, max_tokens: int) -> Done:
    """As `gfm search`: passages, facts, entities, paths, and the context for a language model."""
    found = retriever.retrieve(question, top_k)
    return as_json(found, build_context(found, max_tokens)), found.seconds


def ask(retriever: Retriever, question: str, top_k: int, max_tokens: int, llm: LLM | None) -> Done:
    """As `gfm ask`: an answer with its sources; in the words of the sources where there is no model."""
    answer = Answerer(retriever, llm, AnswerSettings(top_k, max_tokens)).ask(question)
    return answer.as_json(), answer.retrieval.seconds


def explain(retriever: GNNRetriever, question: str, top_k: int) -> Done:
    """As `gfm explain`: what `search` gives without a context, and the whole candidate graph."""
    explained = retriever.explain(question, top_k)
    return explanation(retriever.index, explained), explained.result.seconds
