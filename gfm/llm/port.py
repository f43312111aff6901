"""The one door to language models: any server that speaks OpenAI's chat protocol, hosted or on your own machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from gfm.llm.budget import Budget, Spending
from gfm.llm.pace import Clock
from gfm.llm.session import Message, Reply, Session
from gfm.llm.settings import LLMSettings
from gfm.types import GfmError

T = TypeVar("T")


class LLM:
    """A language model, called from ordinary code; the requests run in an event loop of their own.

    Args:
        settings: The model and the limits.
        clock: Tells the time.

    Attributes:
        settings: As given.
    """

    def __init__(self, settings: LLMSettings, clock: Clock | None = None):
        self.settings = settings
        self._clock = clock
        self._budget = Budget(settings)

    @property
    def spent(self) -> Spending:
        """What was spent since this object was made."""
        return self._budget.spent

    def each(self, work: Callable[[Session, int], Awaitable[T]], count: int) -> Iterator[tuple[int, T]]:
        """Results of ``work(session, i)`` for i in 0 … count-1, each with its number, in the order in which they come.

        As many run at a time as the settings allow. Whoever stops iterating ends what is under way.

        Raises:
            ServerError: Going on would be in vain; every result until then was handed out.
        """

        async def all_of(put: Callable[[tuple[int, T]], None]) -> None:
            failed: list[GfmError] = []
            numbers = iter(range(count))

            async def some() -> None:
                try:
                    for i in numbers:  # shared by all tasks
                        put((i, await work(session, i)))
                except GfmError as error:
                    failed.append(error)
                    group.cancel_scope.cancel()

            async with Session(self.settings, self._budget, self._clock) as session:
                async with anyio.create_task_group() as group:
                    for _ in range(min(count, self.settings.concurrency)):
                        group.start_soon(some)
                if failed:
                    raise failed[0]

        yield from _from_loop(all_of)

    def stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """The pieces of one reply as they come; see `Session.stream`."""

        async def pieces(put: Callable[[str], None]) -> None:
            async with Session(self.settings, self._budget, self._clock) as session:
                async for piece in session.stream(messages):
                    put(piece)

        yield from _from_loop(pieces)

    def complete(self, messages: Sequence[Message], schema: dict[str, Any] | None = None) -> Reply:
        """One reply; see `Session.complete`."""

        async def work(session: Session, _: int) -> Reply:
            return await session.complete(messages, schema)

        ((_, reply),) = self.each(work, 1)
        return reply


def _from_loop(work: Callable[[Callable[[T], None]], Awaitable[None]]) -> Iterator[T]:
    """What ``work`` puts out, as it comes; it runs in a thread of its own, so a notebook's own loop is no hindrance."""
    items: SimpleQueue[tuple[T] | None] = SimpleQueue()

    async def run() -> None:
        try:
            await work(lambda item: items.put((item,)))
        finally:
            items.put(None)

    with start_blocking_portal() as portal:
        running = portal.start_task_soon(run)
        try:
            while (item := items.get()) is not None:
                yield item[0]
            running.result()
        finally:
            running.cancel()
