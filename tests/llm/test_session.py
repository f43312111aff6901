from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gfm.llm.errors import BrokenOffError, RequestError, ServerError
from gfm.llm.port import LLM
from gfm.llm.session import Reply
from gfm.llm.settings import LLMSettings
from gfm.types import GfmError
from tests.fake_llm import Answer, FakeClock, FakeLLM

KEY = "sk-secret-1234567890"  # that of the fixture
MakePort = Callable[..., LLM]
HELLO = [{"role": "user", "content": "Hello"}]


def test_a_reply_comes_with_the_settings_that_draw_it(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Hi")
    llm = port(seed=3, reply_tokens=9, extra={"think": False})
    assert llm.complete(HELLO, {"type": "object"}) == Reply("Hi")
    (body,) = fake_llm.requests
    assert body["messages"] == HELLO
    assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == ("m", 0.0, 3, 9)
    assert body["think"] is False
    assert body["response_format"] == {"type": "json_object"}
    assert fake_llm.keys == [f"Bearer {KEY}"]
    assert vars(llm.spent) == {"calls": 1, "input_tokens": 100, "output_tokens": 10}


def test_what_is_null_is_not_sent(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Hi")
    port(seed=None, temperature=None, response_format="text", reply_tokens_name="max_completion_tokens").complete(
        HELLO, {"type": "object"}
    )
    assert set(fake_llm.requests[0]) == {"model", "messages", "max_completion_tokens"}


def test_a_server_that_asks_to_wait_is_obeyed(fake_llm: FakeLLM, port: MakePort) -> None:
    busy = Answer("slow down", 429, {"Retry-After": "7"})
    fake_llm.answers(busy, busy, busy, "Hi")
    clock = FakeClock()
    assert port(clock).complete(HELLO) == Reply("Hi")
    assert len(fake_llm.requests) == 4
    assert sum(clock.waits) == pytest.approx(21)


def test_a_date_to_wait_for_is_understood(fake_llm: FakeLLM, port: MakePort) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    fake_llm.answers(Answer("busy", 503, {"Retry-After": at}), "Hi")
    clock = FakeClock()
    port(clock).complete(HELLO)
    assert 30 < sum(clock.waits) <= 50


def test_waits_double_where_none_is_asked_for(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("broken", 500))
    clock = FakeClock()
    with pytest.raises(RequestError, match=r"HTTP 500: .*broken.* \(tried 4 times\)"):
        port(clock, tries=4).complete(HELLO)
    waits = [w for w in clock.waits if w > 0]
    assert [0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(waits)] == [True] * 3


def test_a_wait_beyond_patience_ends_the_run(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("tomorrow", 429, {"Retry-After": "86400"}))
    with pytest.raises(ServerError, match="asks to wait 86,400 seconds"):
        port(FakeClock()).complete(HELLO)
    assert len(fake_llm.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_never_repeated(fake_llm: FakeLLM, status: int, port: MakePort) -> None:
    fake_llm.answers(Answer(f"Incorrect API key provided: {KEY}", status))
    with pytest.raises(ServerError, match=f"HTTP {status}, access denied; check the key") as error:
        port(FakeClock()).complete(HELLO)
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None
    assert len(fake_llm.requests) == 1


@pytest.mark.parametrize("answer", [Answer(f"who is {KEY}?", 400), Answer(f"who is {KEY}?", 500), Answer({"is": KEY})])
def test_no_message_shows_the_key(fake_llm: FakeLLM, answer: Answer, port: MakePort) -> None:
    fake_llm.answers(answer)
    llm = port(FakeClock(), tries=2)
    with pytest.raises(RequestError) as error:
        llm.complete(HELLO)
    assert KEY not in str(error.value)
    assert KEY not in repr(llm.settings)


def test_an_unknown_model_and_an_empty_account_end_the_run(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("no model m", 404), Answer("pay first", 429, {"x-code": "insufficient_quota"}))
    with pytest.raises(ServerError, match=r"HTTP 404: .*no model m.*check base_url and the model's name"):
        port(FakeClock()).complete(HELLO)
    with pytest.raises(ServerError, match=r"pay first.*see your account"):
        port(FakeClock()).complete(HELLO)
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
def test_a_body_that_is_no_completion_is_asked_for_again(
    fake_llm: FakeLLM, body: bytes, told: str, port: MakePort
) -> None:
    fake_llm.answers(Answer(body=body))
    with pytest.raises(RequestError, match=told):
        port(FakeClock(), tries=2).complete(HELLO)
    assert len(fake_llm.requests) == 2
    fake_llm.answers("Hi")
    assert port(FakeClock(), tries=2).complete(HELLO) == Reply("Hi")


def test_a_content_in_parts_is_joined(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]))
    assert port().complete(HELLO) == Reply("Hi there")


def test_a_server_that_hangs_is_left_and_asked_again(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("late", hang=30), "Hi")
    llm = port(FakeClock(), timeout=0.3)
    assert llm.complete(HELLO) == Reply("Hi")
    assert llm.spent.calls == 2
    assert llm.spent.input_tokens > 100  # the one that was left may be charged


def test_no_server_at_all(fake_llm: FakeLLM, port: MakePort) -> None:
    llm = port(FakeClock(), base_url="http://127.0.0.1:9/v1", tries=2)
    with pytest.raises(RequestError, match=r"http://127.0.0.1:9/v1: no connection \(.+\) \(tried 2 times\)"):
        llm.complete(HELLO)


def test_a_request_that_the_server_calls_bad_is_not_repeated(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("context length exceeded", 400))
    with pytest.raises(RequestError, match=r"HTTP 400: .*context length exceeded"):
        port(FakeClock()).complete(HELLO)
    assert len(fake_llm.requests) == 1


def test_a_stream_comes_in_pieces(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Tarn Mill was built by Orla Venn.")
    llm = port()
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
def test_a_stream_that_ends_too_soon_is_told(fake_llm: FakeLLM, answer: Answer, why: str, port: MakePort) -> None:
    fake_llm.answers(answer)
    pieces: list[str] = []
    with pytest.raises(BrokenOffError, match=why):
        pieces.extend(port().stream(HELLO))
    assert "".join(pieces).startswith("Tarn Mill was"[: 7 * len(pieces)])
    assert len(fake_llm.requests) == 1


def test_a_stream_is_tried_again_before_its_first_word(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers(Answer("busy", 429, {"Retry-After": "3"}), Answer("nothing", cut=0), "Hi")
    assert list(port(FakeClock()).stream(HELLO)) == ["Hi"]
    assert len(fake_llm.requests) == 3


def test_a_hosted_model_needs_a_key() -> None:
    with pytest.raises(GfmError, match="expected a key, found none; set OPENAI_API_KEY"):
        LLM(LLMSettings(model="m")).complete(HELLO)


def test_a_key_that_cannot_be_sent_is_not_shown(fake_llm: FakeLLM, port: MakePort) -> None:
    with pytest.raises(GfmError, match="expected a key of ASCII") as error:
        port(api_key="schlüssel").complete(HELLO)
    assert "schl" not in str(error.value)


def test_lone_surrogates_are_sent_as_replacement_characters(fake_llm: FakeLLM, port: MakePort) -> None:
    fake_llm.answers("Hi")
    port().complete([{"role": "user", "content": "a\ud800b"}])
    assert fake_llm.said() == "a\ufffdb"
