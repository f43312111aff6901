from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from gfm.llm.errors import BrokenOffError, RequestError, ServerError
from gfm.llm.pace import Clock
from gfm.llm.port import LLM
from gfm.llm.session import Reply, Session
from gfm.llm.settings import LLMSettings
from gfm.types import GfmError
from tests.fake_llm import Answer, FakeClock, FakeLLM

KEY = "sk-secret-1234567890"
HELLO = [{"role": "user", "content": "Hello"}]


def port(fake: FakeLLM, clock: FakeClock | None = None, **settings: Any) -> LLM:
    chosen = LLMSettings(**{"model": "m", "base_url": fake.url, "api_key": KEY, "timeout": 20.0, **settings})
    return LLM(chosen, Clock(clock.now, clock.sleep) if clock else None)


def test_a_reply_comes_with_the_settings_that_draw_it(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Hi")
    llm = port(fake_llm, seed=3, reply_tokens=9, extra={"think": False})
    assert llm.complete(HELLO, {"type": "object"}) == Reply("Hi")
    (body,) = fake_llm.requests
    assert body["messages"] == HELLO
    assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == ("m", 0.0, 3, 9)
    assert body["think"] is False
    assert body["response_format"] == {"type": "json_object"}
    assert fake_llm.keys == [f"Bearer {KEY}"]
    assert vars(llm.spent) == {"calls": 1, "input_tokens": 100, "output_tokens": 10}


def test_what_is_null_is_not_sent(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Hi")
    port(
        fake_llm, seed=None, temperature=None, response_format="text", reply_tokens_name="max_completion_tokens"
    ).complete(HELLO, {"type": "object"})
    assert set(fake_llm.requests[0]) == {"model", "messages", "max_completion_tokens"}


def test_a_server_that_asks_to_wait_is_obeyed(fake_llm: FakeLLM) -> None:
    busy = Answer("slow down", 429, {"Retry-After": "7"})
    fake_llm.answers(busy, busy, busy, "Hi")
    clock = FakeClock()
    assert port(fake_llm, clock).complete(HELLO) == Reply("Hi")
    assert len(fake_llm.requests) == 4
    assert sum(clock.waits) == pytest.approx(21)


def test_a_date_to_wait_for_is_understood(fake_llm: FakeLLM) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    fake_llm.answers(Answer("busy", 503, {"Retry-After": at}), "Hi")
    clock = FakeClock()
    port(fake_llm, clock).complete(HELLO)
    assert 30 < sum(clock.waits) <= 50


def test_waits_double_where_none_is_asked_for(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("broken", 500))
    clock = FakeClock()
    with pytest.raises(RequestError, match=r"HTTP 500: .*broken.* \(tried 4 times\)"):
        port(fake_llm, clock, tries=4).complete(HELLO)
    waits = [w for w in clock.waits if w > 0]
    assert [0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(waits)] == [True] * 3


def test_a_wait_beyond_patience_ends_the_run(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("tomorrow", 429, {"Retry-After": "86400"}))
    with pytest.raises(ServerError, match="asks to wait 86,400 seconds"):
        port(fake_llm, FakeClock()).complete(HELLO)
    assert len(fake_llm.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_never_repeated(fake_llm: FakeLLM, status: int) -> None:
    fake_llm.answers(Answer(f"Incorrect API key provided: {KEY}", status))
    with pytest.raises(ServerError, match=f"HTTP {status}, access denied; check the key") as error:
        port(fake_llm, FakeClock()).complete(HELLO)
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None
    assert len(fake_llm.requests) == 1


@pytest.mark.parametrize("answer", [Answer(f"who is {KEY}?", 400), Answer(f"who is {KEY}?", 500), Answer({"is": KEY})])
def test_no_message_shows_the_key(fake_llm: FakeLLM, answer: Answer) -> None:
    fake_llm.answers(answer)
    llm = port(fake_llm, FakeClock(), tries=2)
    with pytest.raises(RequestError) as error:
        llm.complete(HELLO)
    assert KEY not in str(error.value)
    assert KEY not in repr(llm.settings)


def test_an_unknown_model_and_an_empty_account_end_the_run(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("no model m", 404), Answer("pay first", 429, {"x-code": "insufficient_quota"}))
    with pytest.raises(ServerError, match=r"HTTP 404: .*no model m.*check base_url and the model's name"):
        port(fake_llm, FakeClock()).complete(HELLO)
    with pytest.raises(ServerError, match=r"pay first.*see your account"):
        port(fake_llm, FakeClock()).complete(HELLO)
    assert len(fake_llm.requests) == 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "expected a chat completion"),
        (b"<html>gateway</html>", "expected a chat completion"),
        (b"{}", "expected a chat completion"),
        (b'{"choices": []}', "expected a chat completion"),
        (b'{"choices": 7}', "expected a chat completion"),
        (b'{"choices": [null]}', "expected a chat completion"),
        (b'{"error": {"message": "overloaded"}}', "overloaded"),
        (b'{"choices": [{"message": {"content": 7}}]}', "expected a text"),
        (b"[1, 2", "expected a chat completion"),
    ],
)
def test_a_body_that_is_no_completion_is_asked_for_again(fake_llm: FakeLLM, body: bytes, told: str) -> None:
    fake_llm.answers(Answer(body=body))
    with pytest.raises(RequestError, match=told):
        port(fake_llm, FakeClock(), tries=2).complete(HELLO)
    assert len(fake_llm.requests) == 2
    fake_llm.answers("Hi")
    assert port(fake_llm, FakeClock(), tries=2).complete(HELLO) == Reply("Hi")


def test_a_content_in_parts_is_joined(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]))
    assert port(fake_llm).complete(HELLO) == Reply("Hi there")


def test_a_server_that_hangs_is_left_and_asked_again(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("late", hang=30), "Hi")
    llm = port(fake_llm, FakeClock(), timeout=0.3)
    assert llm.complete(HELLO) == Reply("Hi")
    assert llm.spent.calls == 2
    assert llm.spent.input_tokens > 100  # the one that was left may be charged


def test_no_server_at_all(fake_llm: FakeLLM) -> None:
    llm = port(fake_llm, FakeClock(), base_url="http://127.0.0.1:9/v1", tries=2)
    with pytest.raises(RequestError, match=r"http://127.0.0.1:9/v1: no connection \(.+\) \(tried 2 times\)"):
        llm.complete(HELLO)


def test_a_request_that_the_server_calls_bad_is_not_repeated(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("context length exceeded", 400))
    with pytest.raises(RequestError, match=r"HTTP 400: .*context length exceeded"):
        port(fake_llm, FakeClock()).complete(HELLO)
    assert len(fake_llm.requests) == 1


def test_requests_run_together_up_to_the_limit(fake_llm: FakeLLM) -> None:
    fake_llm.behave = lambda body, n: Answer("Hi", hang=0.03)
    llm = port(fake_llm, concurrency=3)
    assert dict(llm.each(_hello, 12)) == dict.fromkeys(range(12), "Hi")
    assert fake_llm.most_at_once == 3


async def _hello(session: Session, number: int) -> str:
    return (await session.complete(HELLO)).text


def test_a_dead_server_is_given_up_and_what_came_is_handed_out(fake_llm: FakeLLM) -> None:
    fake_llm.behave = lambda body, n: "Hi" if n < 5 else Answer("dead", 500)
    got: list[int] = []

    async def work(session: Session, number: int) -> str:
        try:
            return await _hello(session, number)
        except ServerError:
            raise
        except RequestError:
            return "failed"

    results = port(fake_llm, FakeClock(), concurrency=1, tries=1).each(work, 100)
    with pytest.raises(ServerError, match="8 requests in a row"):
        got.extend(number for number, _ in results)
    assert len(got) == 13
    assert len(fake_llm.requests) == 13


def test_whoever_stops_listening_ends_what_is_under_way(fake_llm: FakeLLM) -> None:
    fake_llm.behave = lambda body, n: "Hi" if n == 0 else Answer("late", hang=30)
    results = port(fake_llm, concurrency=2, timeout=60.0).each(_hello, 5)
    start = time.monotonic()
    assert next(results)[1] == "Hi"
    results.close()
    assert time.monotonic() - start < 20


def test_a_budget_is_never_exceeded(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Hi")
    llm = port(fake_llm, budget_tokens=1000, reply_tokens=200, concurrency=2)  # 110 a reply, up to 206 while under way

    async def work(session: Session, number: int) -> str:
        try:
            return await _hello(session, number)
        except RequestError as error:
            return str(error)

    said = [text for _, text in llm.each(work, 30)]
    assert 7 <= said.count("Hi") <= 8
    assert {text for text in said if text != "Hi"} == {
        "budget_tokens: the next request might go beyond 1,000 tokens; raise it to go on"
    }
    assert llm.spent.input_tokens + llm.spent.output_tokens <= 1000


def test_a_budget_in_dollars(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Hi")
    llm = port(fake_llm, price_input=1e4, price_output=1e4, reply_tokens=10, budget_usd=2.3)
    llm.complete(HELLO)  # 110 tokens, $1.10
    llm.complete(HELLO)
    with pytest.raises(RequestError, match=r"budget_usd: .* beyond \$2.3000"):
        llm.complete(HELLO)


def test_tokens_are_estimated_where_the_server_does_not_count(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("Hi there", usage=False))
    llm = port(fake_llm)
    llm.complete(HELLO)
    assert 0 < llm.spent.output_tokens < 10
    assert 0 < llm.spent.input_tokens < 20


def test_a_stream_comes_in_pieces(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Tarn Mill was built by Orla Venn.")
    llm = port(fake_llm)
    assert list(llm.stream(HELLO)) == ["Tarn Mi", "ll was ", "built b", "y Orla ", "Venn."]
    assert fake_llm.requests[0]["stream"] is True
    assert llm.spent.output_tokens > 5


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer("Tarn Mill was built", cut=2), "broke off"),
        (Answer("Tarn Mill was", finish="length"), "reached reply_tokens"),
        (Answer("Tarn Mill was", finish="content_filter"), "content_filter"),
    ],
)
def test_a_stream_that_ends_too_soon_is_told(fake_llm: FakeLLM, answer: Answer, why: str) -> None:
    fake_llm.answers(answer)
    pieces: list[str] = []
    with pytest.raises(BrokenOffError, match=why):
        pieces.extend(port(fake_llm).stream(HELLO))
    assert "".join(pieces).startswith("Tarn Mill was"[: 7 * len(pieces)])
    assert len(fake_llm.requests) == 1


def test_a_stream_is_tried_again_before_its_first_word(fake_llm: FakeLLM) -> None:
    fake_llm.answers(Answer("busy", 429, {"Retry-After": "3"}), Answer("nothing", cut=0), "Hi")
    assert list(port(fake_llm, FakeClock()).stream(HELLO)) == ["Hi"]
    assert len(fake_llm.requests) == 3


def test_a_hosted_model_needs_a_key() -> None:
    with pytest.raises(GfmError, match="expected a key, found none; set OPENAI_API_KEY"):
        LLM(LLMSettings(model="m")).complete(HELLO)


def test_a_key_that_cannot_be_sent_is_not_shown(fake_llm: FakeLLM) -> None:
    with pytest.raises(GfmError, match="expected a key of ASCII") as error:
        port(fake_llm, api_key="schlüssel").complete(HELLO)
    assert "schl" not in str(error.value)


def test_lone_surrogates_are_sent_as_replacement_characters(fake_llm: FakeLLM) -> None:
    fake_llm.answers("Hi")
    port(fake_llm).complete([{"role": "user", "content": "a\ud800b"}])
    assert fake_llm.said() == "a\ufffdb"
