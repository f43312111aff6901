from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from gfm.llm.budget import Budget, BudgetError, Spending, dollars
from gfm.llm.errors import RequestError
from gfm.llm.port import LLM
from gfm.llm.session import Session
from gfm.llm.settings import LLMSettings
from tests.fake_llm import Answer, FakeLLM

MakePort = Callable[..., LLM]
HELLO = [{"role": "user", "content": "Hello"}]


def test_a_budget_is_never_exceeded(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Hi")
    llm = port(budget_tokens=1000, reply_tokens=200, concurrency=2)  # 110 a reply, up to 206 while under way

    async def work(session: Session, number: int) -> str:
        try:
            return (await session.complete(HELLO)).text
        except RequestError as error:
            return str(error)

    said = [text for _, text in llm.each(work, 30)]
    assert 7 <= said.count("Hi") <= 8
    assert {text for text in said if text != "Hi"} == {
        "budget_tokens: the next request might go beyond 1,000 tokens; raise it to go on"
    }
    assert llm.spent.input_tokens + llm.spent.output_tokens <= 1000


def test_threads_never_find_room_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, sent, stopped = Budget(LLMSettings(model="m", budget_tokens=1000)), [], []
    check = budget._check

    def slow(*tokens: int) -> None:
        check(*tokens)
        time.sleep(0.005)  # so that threads overlap where they may

    monkeypatch.setattr(budget, "_check", slow)

    def work() -> None:
        try:
            with budget.request(60, 40) as cost:
                cost.input_tokens, cost.output_tokens = 60, 40
                sent.append(cost)
        except BudgetError as error:
            stopped.append(error)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(sent), len(stopped)) == (10, 10)
    assert budget.spent == Spending(10, 600, 400)


def test_a_budget_in_dollars(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Hi")
    llm = port(price_input=1e4, price_output=1e4, reply_tokens=10, budget_usd=2.3)
    llm.complete(HELLO)  # 110 tokens, $1.10
    llm.complete(HELLO)
    with pytest.raises(RequestError, match=r"budget_usd: .* beyond \$2.3000"):
        llm.complete(HELLO)


def test_tokens_are_estimated_where_the_server_does_not_count(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("Hi there", usage=False))
    llm = port()
    llm.complete(HELLO)
    assert 0 < llm.spent.output_tokens < 10
    assert 0 < llm.spent.input_tokens < 20


def test_a_price_for_people() -> None:
    assert dollars(1234.5) == "$1,234.5000"
    assert dollars(None).startswith("price unknown")
