"""How much memory this process took, and when the search for cycles in it can wait."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def peak_memory() -> int:
    """Most bytes of this process that were ever resident at once, mapped files included."""
    if sys.platform == "linux":  # ru_maxrss would be at least that of the parent, which it survives exec
        lines = Path("/proc/self/status").read_text(encoding="ascii").split("\n")
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def without_collector() -> Iterator[None]:
    """Python looks for no cycles meanwhile: for code that makes objects by the hundred thousand, and no cycle.

    Each of its rounds walks through all objects, those that were made before and stay among them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
