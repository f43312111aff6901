from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from gfm import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every item takes four seconds."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def work(clock: list[float], items: int) -> Iterator[int]:
    for i in range(items):
        yield i
        clock[0] += 4.0


def run(clock: list[float], monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, title: str = "read") -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(progress.track(work(clock, 8), 8, title)) == list(range(8))
    return stream.getvalue()


def test_a_terminal_that_cannot_go_back_gets_a_whole_line_every_ten_seconds(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    # Looked at before each item: after 3 of them 12 seconds have gone by, after 6 another 12.
    assert run(clock, monkeypatch, Terminal()) == "read: 3 of 8, 20 s left\nread: 6 of 8, 8 s left\n"
    assert run(clock, monkeypatch, Terminal(), title="") == ""


def test_a_pipe_gets_nothing(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert run(clock, monkeypatch, io.StringIO()) == ""


def test_any_other_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    asked: list[dict[str, object]] = []
    monkeypatch.setattr("tqdm.tqdm", lambda items, **options: asked.append(options) or items)
    run([0.0], monkeypatch, Terminal())
    assert [(options["total"], options["desc"], options["file"]) for options in asked] == [(8, "read", sys.stderr)]
