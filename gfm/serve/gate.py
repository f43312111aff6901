"""Work in threads: only so much at a time, only so much waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class BusyError(Exception):
    """There is no room to wait."""


class Gate:
    """Runs work in threads.

    Args:
        workers: Most pieces of work at a time.
        queue: Most that wait.
        name: Of the threads.
    """

    def __init__(self, workers: int, queue: int, name: str):
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=f"gfm-{name}")
        self._workers, self._room = workers, workers + queue
        self._lock, self._inside = Lock(), 0

    @property
    def working(self) -> int:
        """Pieces of work under way; one that was given up counts until its thread is free."""
        return min(self._inside, self._workers)

    @property
    def waiting(self) -> int:
        """Pieces of work that wait."""
        return max(self._inside - self._workers, 0)

    async def run(self, work: Callable[[], T], timeout: float) -> T:
        """What ``work`` gives.

        Args:
            work: Called in a thread.
            timeout: Seconds, those of waiting included.

        Raises:
            BusyError: At once, where as many wait already as may.
            TimeoutError: A thread cannot be stopped: it keeps its place until it is done.
        """
        with self._lock:
            if self._inside >= self._room:
                raise BusyError
            self._inside += 1
        future = self._pool.submit(work)
        future.add_done_callback(lambda _: self._left())
        return await asyncio.wait_for(asyncio.wrap_future(future), timeout)

    def _left(self) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Take nothing more; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
