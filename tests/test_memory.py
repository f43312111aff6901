from __future__ import annotations

from gfm.memory import peak_memory


def test_the_peak_is_never_below_what_is_held() -> None:
    before = peak_memory()
    block = bytearray(64_000_000)
    block[::4096] = b"x" * len(block[::4096])
    assert peak_memory() >= max(before, 64_000_000)
