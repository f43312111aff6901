"""What stands before the application: a request's host and size are checked, and it is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from gfm.extras import extra
from gfm.serve.metrics import Metrics
from gfm.serve.responses import problem
from gfm.serve.settings import ServeSettings

with extra("serve"):
    from starlette.datastructures import Headers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class _RefusedError(Exception):
    """The request goes no further; ``args`` are status and text."""


class Limits:
    """ASGI middleware.

    Args:
        app: What comes after it; gets a body that is there already.
        settings: The limits.
        metrics: Where requests are counted.
    """

    def __init__(self, app: App, settings: ServeSettings, metrics: Metrics):
        self.app, self.settings, self.metrics = app, settings, metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500  # the application fails before it has sent anything

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                body = await self._checked(Headers(scope=scope), receive)
            except _RefusedError as error:
                code, text = error.args
                await problem(code, text, {"Connection": "close"})(scope, receive, sent)
            else:
                if body is not None:
                    await self.app(scope, _replayed(body, receive), sent)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.request(route, status, time.perf_counter() - start)

    async def _checked(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None where the client has gone."""
        if self.settings.hosts and _name(headers.get("host", "")) not in self.settings.hosts:
            raise _RefusedError(421, f"expected to be called {' or '.join(self.settings.hosts)}")
        limit = self.settings.max_body
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise _RefusedError(413, f"expected a body of at most {limit} bytes")
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await _body(receive, limit)
        except TimeoutError:
            raise _RefusedError(408, "the body did not come within the time limit") from None


def _name(host: str) -> str:
    """The name in a Host header, without a port; empty where there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


async def _body(receive: Receive, limit: int) -> bytes | None:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise _RefusedError(413, f"expected a body of at most {limit} bytes")
        more = message.get("more_body", False)
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, then what comes after it."""
    left = [body]

    async def again() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return again
