"""Requests to an OpenAI-compatible server: paced, tried again where that helps, within a budget."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from gfm.llm.budget import Budget, Spending
from gfm.llm.errors import BrokenOffError, RequestError, ServerError
from gfm.llm.pace import Clock, Pace, asked_pause
from gfm.llm.settings import HOSTED, LLMSettings
from gfm.text.estimate import estimate_tokens
from gfm.text.normalise import encodable
from gfm.types import GfmError

T = TypeVar("T")
Message = dict[str, str]

_GIVE_UP = 8  # requests in a row that came to nothing: no further one is sent
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds between two tries, doubling, where the server asks for no pause
_SHOWN = 200  # characters of a server's message
_STOPS = {401: "the key (api_key, or OPENAI_API_KEY)", 403: "the key's rights", 404: "base_url and the model's name"}
_AGAIN = {408, 409, 425, 429}
_QUOTA = "insufficient_quota"  # comes as 429, and no waiting helps


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        text: Its words; may be empty.
        finish: Why it ended: ``stop``, ``length`` (cut off at ``reply_tokens``), ``content_filter``, ….
        refusal: What it says where it refuses; else empty.
    """

    text: str
    finish: str = "stop"
    refusal: str = ""


class Session:
    """An open connection to a server; an asynchronous context manager.

    Args:
        settings: The model and the limits.
        budget: Shared by all sessions of a run.
        clock: Tells the time.

    Raises:
        GfmError: The package openai is missing, or a hosted model has no key.
    """

    def __init__(self, settings: LLMSettings, budget: Budget, clock: Clock | None = None):
        self._openai = load_openai()
        self._settings, self._budget, self._clock = settings, budget, clock or Clock()
        self._pace = Pace(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute, self._clock)
        self._failed_in_a_row = 0
        key = settings.api_key.get_secret_value().strip()
        if not key and settings.base_url == HOSTED:
            raise GfmError(f"{HOSTED}: expected a key, found none; set OPENAI_API_KEY, or base_url for another server")
        if not key.isascii() or not key.isprintable():
            raise GfmError("api_key: expected a key of ASCII characters, found others; copy it again")
        self._secret = key
        self._client = self._openai.AsyncOpenAI(
            api_key=key or "none", base_url=settings.base_url, timeout=settings.timeout, max_retries=0
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def complete(self, messages: Sequence[Message], schema: dict[str, Any] | None = None) -> Reply:
        """One reply.

        Args:
            messages: The conversation.
            schema: JSON Schema of the reply, where it shall be JSON.

        Raises:
            RequestError: This request came to nothing.
            ServerError: So would every other.
        """
        body = self._body(messages, schema)

        async def once(cost: Spending) -> Reply:
            try:
                completion = await self._client.chat.completions.create(**body)
            except ValueError as error:
                raise _NoReplyError(f"expected a chat completion, found no JSON ({error})") from None
            reply = _reply(completion)
            _charge(cost, completion, messages, reply.text)
            return reply

        return await self._tried(messages, once)

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[str]:
        """The pieces of a reply as they come; tried again only before the first.

        Raises:
            BrokenOffError: The reply ended too soon.
            RequestError: There was none.
            ServerError: There would be none to any request.
        """
        body = {**self._body(messages, None), "stream": True, "stream_options": {"include_usage": True}}

        async def start(cost: Spending) -> tuple[Any, str]:
            cost.input_tokens = _estimate(messages)
            stream = await self._client.chat.completions.create(**body)
            async for chunk in stream:
                if text := _delta(chunk):
                    return stream, text
                if _finish(chunk):
                    return stream, ""
            raise _NoReplyError("a stream without a word")

        stream, first = await self._tried(messages, start)
        yield first
        written, finish = [first], "" if first else "stop"
        try:
            async for chunk in stream:
                if text := _delta(chunk):
                    written.append(text)
                    yield text
                finish = _finish(chunk) or finish
        except (self._openai.OpenAIError, OSError, _http_errors()) as error:
            raise BrokenOffError(f"{self._settings.server}: the reply broke off: {self._told(error)}") from None
        finally:
            self._budget.add(Spending(output_tokens=estimate_tokens("".join(written))))
            await stream.close()
        if finish != "stop":
            why = {"length": "it reached reply_tokens", "": "the connection ended"}.get(finish, finish)
            raise BrokenOffError(f"{self._settings.server}: the reply broke off: {why}")

    def _body(self, messages: Sequence[Message], schema: dict[str, Any] | None) -> dict[str, Any]:
        s = self._settings
        sent = [{**m, "content": encodable(m["content"])} for m in messages]
        body: dict[str, Any] = {"model": s.model, "messages": sent, s.reply_tokens_name: s.reply_tokens}
        body |= {name: v for name, v in (("temperature", s.temperature), ("seed", s.seed)) if v is not None}
        if schema is not None and s.response_format == "json_schema":
            named = {"name": "reply", "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif schema is not None and s.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return {**body, "extra_body": s.extra} if s.extra else body

    async def _tried(self, messages: Sequence[Message], once: Callable[[Spending], Awaitable[T]]) -> T:
        """The result of ``once``, tried until it comes or nothing more is to be hoped for."""
        tokens = _estimate(messages)
        for n in range(1, self._settings.tries + 1):
            async with self._pace.turn(tokens + self._settings.reply_tokens):
                if self._failed_in_a_row >= _GIVE_UP:
                    raise ServerError(
                        f"{self._settings.server}: {_GIVE_UP} requests in a row came to nothing; see that the server "
                        "is well and run the same command again: what was answered is kept"
                    )
                with self._budget.request(tokens, self._settings.reply_tokens) as cost:
                    try:
                        found = await once(cost)
                    except (self._openai.OpenAIError, _NoReplyError, OSError, _http_errors()) as error:
                        if isinstance(error, self._openai.APITimeoutError):  # the server may charge for it
                            cost.input_tokens = tokens
                        told, wait = self._told(error), self._wait(error, n)
                    else:
                        self._failed_in_a_row = 0
                        self._pace.went_well()
                        return found
            if wait is None or n == self._settings.tries:
                break
            await self._clock.sleep(wait)
        self._failed_in_a_row += 1
        raise RequestError(f"{self._settings.server}: {told}" + (f" (tried {n} times)" if n > 1 else ""))

    def _wait(self, error: Exception, n: int) -> float | None:
        """Seconds until the next try; None where it would be in vain.

        Raises:
            ServerError: Every other request would be in vain, too.
        """
        status = getattr(error, "status_code", None)
        if status in _STOPS:
            hint = f"check {_STOPS[status]}"
            raise ServerError(f"{self._settings.server}: {self._told(error)}; {hint}") from None
        if getattr(error, "code", None) == _QUOTA:
            raise ServerError(f"{self._settings.server}: {self._told(error)}; see your account there") from None
        if isinstance(status, int) and status < 500 and status not in _AGAIN:
            return None
        asked = asked_pause(getattr(getattr(error, "response", None), "headers", None))
        if asked is not None and asked > self._settings.max_wait:
            raise ServerError(
                f"{self._settings.server}: asks to wait {asked:,.0f} seconds, longer than max_wait "
                f"({self._settings.max_wait:,.0f}); run the same command again then: what was answered is kept"
            ) from None
        # The jitter keeps requests that failed together from coming back together; no output depends on it.
        wait: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (n - 1)) * random.uniform(0.5, 1.0)
        if status == 429 or asked is not None:
            self._pace.pause(wait if asked is None else asked)
            return 0.0
        return wait

    def _told(self, error: Exception) -> str:
        """What went wrong, in words that hold no key: some servers repeat the one that they refuse."""
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return f"HTTP {status}, access denied"
        said = " ".join(str(getattr(error, "message", "") or error or type(error).__name__).split())
        if isinstance(error, self._openai.APITimeoutError):
            said = f"no answer within {self._settings.timeout:g} seconds"
        elif isinstance(error, self._openai.APIConnectionError):
            said = f"no connection ({error.__cause__ or said})"
        said = said.replace(self._secret, "…") if self._secret else said
        said = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
        return f"HTTP {status}: {said}" if status else said


class _NoReplyError(Exception):
    """A reply with HTTP status 200 that is none; mostly a proxy's."""


def load_openai() -> Any:
    """The library openai.

    Raises:
        GfmError: It is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise GfmError(
            "language model: expected the package openai, found none; install it with: pip install 'gfm-retriever[llm]'"
        ) from error
    return openai


def _http_errors() -> type[Exception]:
    """What openai's transport raises in the middle of a stream."""
    import httpx2

    return httpx2.HTTPError


def _estimate(messages: Sequence[Message]) -> int:
    return sum(estimate_tokens(m["content"]) + 4 for m in messages)  # 4: role and separators


def _charge(cost: Spending, completion: Any, messages: Sequence[Message], text: str) -> None:
    """What the server says that it counted, or an estimate."""
    usage = getattr(completion, "usage", None)
    counted = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    cost.input_tokens = counted[0] if isinstance(counted[0], int) else _estimate(messages)
    cost.output_tokens = counted[1] if isinstance(counted[1], int) else estimate_tokens(text)


def _reply(completion: Any) -> Reply:
    """The first choice; the library checks nothing of what a server sends.

    Raises:
        _NoReplyError: There is none.
    """
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if not isinstance(choices, list) or message is None:
        raise _NoReplyError(f"expected a chat completion, found {_shown(completion)}")
    content, refusal = getattr(message, "content", None), getattr(message, "refusal", None)
    if isinstance(content, list):  # some servers send a list of parts
        parts = (getattr(p, "text", None) or (p.get("text") if isinstance(p, dict) else None) for p in content)
        content = "".join(part for part in parts if isinstance(part, str))
    if content is not None and not isinstance(content, str):
        raise _NoReplyError(f"expected a text as the content of the reply, found {_shown(content)}")
    finish = getattr(choices[0], "finish_reason", None)
    return Reply(content or "", str(finish or "stop"), refusal if isinstance(refusal, str) else "")


def _shown(value: Any) -> str:
    error = getattr(value, "error", None)
    return " ".join(str(error or value).split())[:_SHOWN] or "nothing"


def _delta(chunk: Any) -> str:
    choices = getattr(chunk, "choices", None)
    text = getattr(getattr(choices[0], "delta", None), "content", None) if choices else None
    return text if isinstance(text, str) else ""


def _finish(chunk: Any) -> str:
    choices = getattr(chunk, "choices", None)
    return str(getattr(choices[0], "finish_reason", None) or "") if choices else ""
