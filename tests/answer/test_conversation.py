from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gfm.answer.answer import Answerer, AnswerSettings
from gfm.answer.conversation import Conversation
from gfm.index.index import GraphIndex
from gfm.llm.port import LLM
from gfm.llm.settings import LLMSettings
from gfm.retrieve.base import Retriever
from gfm.retrieve.gnn import GNNRetriever
from gfm.types import Query, Retrieval
from tests.fake_llm import FakeLLM


class Noted:
    """A retriever that keeps the questions that it is asked."""

    def __init__(self, beneath: Retriever):
        self.index, self._beneath = beneath.index, beneath
        self.asked: list[str] = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        self.asked.append(query if isinstance(query, str) else query.text)
        return self._beneath.retrieve(query, top_k)


@pytest.fixture
def retriever(z_index: Path, untrained: Path) -> Noted:
    return Noted(GNNRetriever.from_pretrained(GraphIndex.open(z_index), untrained))


def talk(retriever: Retriever, fake: FakeLLM | None, threshold: float = -1.0) -> Conversation:
    port = fake and LLM(LLMSettings(model="m", base_url=fake.url))
    return Conversation(Answerer(retriever, port, AnswerSettings(threshold=threshold), lambda: date(2026, 12, 1)))


def rewrites(to: str) -> Any:
    """Answers, and rewrites every question to one."""
    return lambda body, n: "Orla Venn built Tarn Mill [1]." if body.get("stream") else to


def test_the_rewritten_question_is_searched_and_answered(retriever: Noted, fake_llm: FakeLLM) -> None:
    chat = talk(retriever, fake_llm)
    fake_llm.behave = rewrites("Who built Tarn Mill?")
    chat.ask("Who built it?")
    fake_llm.behave = rewrites("Where was Orla Venn born?")
    answer = chat.ask("And where was she born last year?")
    assert (answer.question, answer.searched) == ("And where was she born last year?", "Where was Orla Venn born?")
    assert retriever.asked[-1] == "Where was Orla Venn born?"
    assert "<question>\nWhere was Orla Venn born?\n</question>" in fake_llm.said()
    assert [t.searched for t in chat.turns] == ["Who built Tarn Mill?", "Where was Orla Venn born?"]


def test_it_is_rewritten_with_the_graph_the_turns_and_the_date(retriever: Noted, fake_llm: FakeLLM) -> None:
    chat = talk(retriever, fake_llm)
    fake_llm.behave = rewrites("Who built Tarn Mill?")
    chat.ask("Who built Tarn Mill?")
    chat.ask("Where was she born?")
    system, user = fake_llm.requests[2]["messages"]
    assert "Today is 2026-12-01." in system["content"]
    assert "Orla Venn" in user["content"].split("Facts:")[0]  # among the names
    assert "Orla Venn born in Port Isk" in user["content"].split("Conversation:")[0]
    assert "Question: Who built Tarn Mill?\nAnswer: Orla Venn built Tarn Mill [1]." in user["content"]
    assert user["content"].endswith("Last question:\nWhere was she born?")
    assert retriever.asked[2] == "Who built Tarn Mill? Where was she born?"


@pytest.mark.parametrize("reply", ["", "Sure!\nWho built Tarn Mill?", "x" * 501, "<think>hm</think>"])
def test_a_useless_rewriting_is_told_and_the_question_searched_as_it_is(
    retriever: Noted, fake_llm: FakeLLM, reply: str
) -> None:
    fake_llm.behave = rewrites(reply)
    answer = talk(retriever, fake_llm).ask("Who built Tarn Mill?")
    assert answer.searched == "Who built Tarn Mill?"
    (note,) = answer.notes
    assert note.startswith("the question was searched as it is")


def test_a_thought_and_quotes_round_the_question_are_dropped(retriever: Noted, fake_llm: FakeLLM) -> None:
    fake_llm.behave = rewrites('<think>she is Orla</think>\n"Where was Orla Venn born?"\n')
    assert talk(retriever, fake_llm).ask("Where was she born?").searched == "Where was Orla Venn born?"


def test_without_a_model_the_question_before_goes_in_front(retriever: Noted) -> None:
    chat = talk(retriever, None)
    assert chat.ask("Who built Tarn Mill?").searched == "Who built Tarn Mill?"
    assert chat.ask("Where was she born?").searched == "Who built Tarn Mill? Where was she born?"
    assert chat.ask("And the sea?").searched == "Where was she born? And the sea?"


def test_what_has_no_evidence_is_no_turn_to_build_upon(retriever: Noted) -> None:
    chat = talk(retriever, None, threshold=0.999)
    assert chat.ask("Who won the 1987 Brandle regatta?").kind == "no evidence"
    assert chat.turns == []
