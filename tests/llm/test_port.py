from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gfm.llm.errors import RequestError, ServerError
from gfm.llm.port import LLM
from gfm.llm.session import Session
from tests.fake_llm import Answer, FakeClock, FakeLLM

MakePort = Callable[..., LLM]
HELLO = [{"role": "user", "content": "Hello"}]


async def _hello(session: Session, number: int) -> str:
    return (await session.complete(HELLO)).text


def test_requests_run_together_up_to_the_limit(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.behave = lambda body, n: Answer("Hi", hang=0.03)
    llm = port(concurrency=3)
    assert dict(llm.each(_hello, 12)) == dict.fromkeys(range(12), "Hi")
    assert fake_llm.most_at_once == 3


def test_a_dead_server_is_given_up_and_what_came_is_handed_out(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.behave = lambda body, n: "Hi" if n < 5 else Answer("dead", 500)
    got: list[int] = []

    async def work(session: Session, number: int) -> str:
        try:
            return await _hello(session, number)
        except ServerError:
            raise
        except RequestError:
            return "failed"

    results = port(FakeClock(), concurrency=1, tries=1).each(work, 100)
    with pytest.raises(ServerError, match="8 requests in a row"):
        got.extend(number for number, _ in results)
    assert len(got) == 13
    assert len(fake_llm.requests) == 13


def test_whoever_stops_listening_ends_what_is_under_way(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.behave = lambda body, n: "Hi" if n == 0 else Answer("late", hang=30)
    results = port(concurrency=2, timeout=60.0).each(_hello, 5)
    start = time.monotonic()
    assert next(results)[1] == "Hi"
    results.close()
    assert time.monotonic() - start < 20
