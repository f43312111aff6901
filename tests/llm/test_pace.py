from __future__ import annotations

from itertools import pairwise

import anyio
import pytest

from gfm.llm.pace import Clock, Pace, asked_pause
from tests.fake_llm import FakeClock


def pace(clock: FakeClock, concurrency: int = 4, requests: float | None = None, tokens: float | None = None) -> Pace:
    return Pace(concurrency, requests, tokens, Clock(clock.now, clock.sleep))


def starts(clock: FakeClock, waiting: Pace, tokens: list[int]) -> list[float]:
    """When requests of so many tokens start that are there at once, in seconds from now."""
    begin, found = clock.now(), []

    async def one(n: int) -> None:
        async with waiting.turn(n):
            found.append(clock.now() - begin)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for n in tokens:
                group.start_soon(one, n)

    anyio.run(run)
    return sorted(found)


def test_requests_keep_the_limit_by_the_minute() -> None:
    clock = FakeClock()
    found = starts(clock, pace(clock, requests=30), [1] * 5)
    assert found[0] == 0
    assert all(b - a >= 2 - 1e-9 for a, b in pairwise(found))


def test_tokens_keep_the_limit_by_the_minute() -> None:
    clock = FakeClock()
    found = starts(clock, pace(clock, tokens=600), [100] * 3)  # 10 tokens a second
    assert all(b - a >= 10 - 1e-9 for a, b in pairwise(found))


def test_a_pause_holds_everybody_and_halves_what_runs_at_a_time_once() -> None:
    clock = FakeClock()
    waiting = pace(clock, concurrency=8)
    waiting.pause(5)
    waiting.pause(9)  # told to another request that was under way
    assert waiting.concurrency == 4
    assert min(starts(clock, waiting, [1, 1])) == pytest.approx(9)
    for _ in range(3):
        waiting.pause(1)
        clock.time += 2
    assert waiting.concurrency == 1


def test_what_runs_at_a_time_grows_back() -> None:
    clock = FakeClock()
    waiting = pace(clock, concurrency=2)
    waiting.pause(1)
    assert waiting.concurrency == 1
    for _ in range(50):
        waiting.went_well()
    assert waiting.concurrency == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
        ("", None),
        ("inf", None),
    ],
)
def test_pauses_are_read(value: str, seconds: float | None) -> None:
    assert asked_pause({"retry-after": value}) == seconds
    assert asked_pause({}) is None
    assert asked_pause(None) is None
