"""A language model on this machine, and time that passes only while somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gfm.llm.pace import Clock
from gfm.llm.port import LLM
from gfm.llm.settings import LLMSettings
from tests.fake_llm import FakeClock, FakeLLM

KEY = "sk-secret-1234567890"


@pytest.fixture
def port(fake_llm: FakeLLM) -> Callable[..., LLM]:
    """Makes an `LLM` that asks the fake server, with a clock and settings of the test's choice."""

    def make(clock: FakeClock | None = None, **settings: Any) -> LLM:
        chosen = {"model": "m", "base_url": fake_llm.url, "api_key": KEY, "timeout": 20.0, **settings}
        return LLM(LLMSettings(**chosen), Clock(clock.now, clock.sleep) if clock else None)

    return make
