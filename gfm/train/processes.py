"""Several processes of this machine that train one network together."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from gfm.types import GfmError

T = TypeVar("T")
S = TypeVar("S")


def launched() -> bool:
    """Whether this process is one of several: of `together`, or of the user's own torchrun."""
    return dist.is_torchelastic_launched()


def rank() -> int:
    """Number of this process among those that train together; 0 where it trains alone."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def gathered(rows: Sequence[T]) -> list[T]:
    """The rows of all processes, process after process; every process must ask."""
    if world_size() == 1:
        return list(rows)
    parts: list[list[T]] = [[] for _ in range(world_size())]
    dist.all_gather_object(parts, list(rows))
    return [row for part in parts for row in part]


def together(work: Callable[[S], T], given: S, count: int) -> T:
    """Call ``work(given)`` in ``count`` new processes, and return what the first of them does.

    Args:
        work: A function of a module; with what it takes and returns it must survive pickling.
        given: Its argument.
        count: Processes.

    Raises:
        GfmError: One of them failed; its own message, where it was a `GfmError`.
    """
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id="gfm",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
    )
    with _quiet_launcher():
        try:
            results: dict[int, T] = elastic_launch(config, _call)(work, given, logging.getLogger().level)
        except ChildFailedError as error:
            first, failure = error.get_first_failure()
            # An exception leaves "its class: its message" under "message"; a signal, a text alone.
            left = failure.message["message"] if isinstance(failure.message, dict) else failure.message
            kind, _, told = str(left).partition(": ")
            if kind == GfmError.__name__:
                raise GfmError(told) from error
            raise GfmError(
                f"process {first} of {count} failed: {left}; try trainer.devices=1, which tells more"
            ) from error
    return results[0]


def _call(work: Callable[[S], T], given: S, level: int) -> T:
    """In each process; the first logs as the one that started it does."""
    if os.environ["RANK"] == "0":
        logging.basicConfig(level=level, format="[%(asctime)s][%(name)s][%(levelname)s] - %(message)s")
    return work(given)


@contextmanager
def _quiet_launcher() -> Iterator[None]:
    """Without the launcher's own tables of what failed."""
    logger = logging.getLogger("torch.distributed.elastic")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
