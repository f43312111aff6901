"""When the next request may start: limits by the minute, pauses that the server asks for, and how many at a time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio

_STEADY = 8  # replies in a row after which one more request at a time is tried


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds, and waiting for them; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class Pace:
    """Lets requests start one after another.

    Args:
        concurrency: Most requests at a time; fewer for a while after the server asked to slow down.
        requests_per_minute: Limit to keep; none unless given.
        tokens_per_minute: So.
        clock: Tells the time.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        clock: Clock,
    ):
        self._most, self._steady = concurrency, 0
        self._slots = anyio.CapacityLimiter(concurrency)
        self._per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._free_at = self._paused_until = clock.now()

    @property
    def concurrency(self) -> int:
        """Most requests at a time, now."""
        return int(self._slots.total_tokens)

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a request of so many tokens may start; it holds its place until the end of the block."""
        async with self._slots:
            while (wait := max(self._free_at, self._paused_until) - self._clock.now()) > 0:
                await self._clock.sleep(wait)
            self._free_at = self._clock.now() + max(self._per_request, tokens * self._per_token)
            yield

    def pause(self, seconds: float) -> None:
        """No request starts for so long, and afterwards fewer run at a time: the server said that it is too much."""
        now = self._clock.now()
        if now >= self._paused_until:  # what was under way at the first refusal is refused as well, and tells no more
            self._slots.total_tokens = max(1, self.concurrency // 2)
        self._paused_until = max(self._paused_until, now + seconds)
        self._steady = 0

    def went_well(self) -> None:
        """A request was answered; after some in a row, one more at a time is tried."""
        self._steady += 1
        if self._steady >= _STEADY and self.concurrency < self._most:
            self._slots.total_tokens = self.concurrency + 1
            self._steady = 0


def asked_pause(headers: object) -> float | None:
    """Seconds that a server asks to wait (Retry-After: a number, or a date as in RFC 9110); None where it does not.

    Args:
        headers: Of the response, a mapping that ignores capitals.
    """
    value = getattr(headers, "get", dict[str, str]().get)("retry-after")
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None
