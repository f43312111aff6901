"""Work in threads, a bounded number at a time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gfm.serve.gate import BusyError, Gate


def test_it_gives_what_the_work_gives_or_raises() -> None:
    async def main() -> None:
        gate = Gate(1, 0, "test")
        assert await gate.run(lambda: 7, 30) == 7
        with pytest.raises(ZeroDivisionError):
            await gate.run(lambda: 1 / 0, 30)
        gate.close()

    asyncio.run(main())


def test_so_many_at_a_time_so_many_wait_and_no_more() -> None:
    go, begun, most = threading.Event(), threading.Semaphore(0), [0]
    lock, now = threading.Lock(), [0]

    def work() -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        begun.release()
        assert go.wait(30)
        with lock:
            now[0] -= 1
        return "done"

    async def main() -> None:
        gate = Gate(2, 3, "test")
        tasks = [asyncio.create_task(gate.run(work, 30)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await gate.run(work, 30)
        for _ in range(2):
            await asyncio.to_thread(begun.acquire, timeout=30)
        assert (gate.working, gate.waiting) == (2, 3)
        go.set()
        assert await asyncio.gather(*tasks) == ["done"] * 5
        gate.close()

    asyncio.run(main())
    assert most == [2]


def test_what_is_given_up_while_it_waits_is_never_begun() -> None:
    go, begun = threading.Event(), []

    async def main() -> None:
        gate = Gate(1, 1, "test")
        first = asyncio.create_task(gate.run(lambda: go.wait(30), 30))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await gate.run(lambda: begun.append(1), 0.05)
        assert (gate.working, gate.waiting) == (1, 0)
        go.set()
        assert await first
        gate.close()

    asyncio.run(main())
    assert begun == []
