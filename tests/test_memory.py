from __future__ import annotations

import gc

import pytest

from gfm.memory import peak_memory, without_collector


def test_the_peak_is_never_below_what_is_held() -> None:
    before = peak_memory()
    block = bytearray(64_000_000)
    block[::4096] = b"x" * len(block[::4096])
    assert peak_memory() >= max(before, 64_000_000)


def test_the_collector_waits_and_then_goes_on() -> None:
    with without_collector():
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_goes_on_after_an_error() -> None:
    with pytest.raises(KeyError), without_collector():
        raise KeyError
    assert gc.isenabled()
