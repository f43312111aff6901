"""What the service allows."""

from __future__ import annotations

from dataclasses import dataclass

from gfm.types import GfmError


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Limits of the service; every number is a setting.

    Attributes:
        concurrency: Most requests that are worked on at a time; each takes a thread.
        queue: Most requests that wait for their turn; whoever comes then is told to come back later (503).
        timeout: Seconds until a request is given up (504), waiting for its turn and for its body included.
        max_question: Characters of a question.
        max_top_k: Passages to return.
        max_tokens: Budget of a context.
        max_body: Bytes of a request's body (413).
        reload: Seconds between two looks at which generation of the index is in force.
        hosts: Names by which the service may be called; by any where there is none. On the loopback interface it keeps
            out pages of a browser whose name somebody points at this machine.
    """

    concurrency: int = 2
    queue: int = 16
    timeout: float = 60.0
    max_question: int = 2000
    max_top_k: int = 100
    max_tokens: int = 16_000
    max_body: int = 65_536
    reload: float = 2.0
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant."""
        for name in self.__slots__:
            value, least = getattr(self, name), 0 if name == "queue" else 1
            if name in ("timeout", "reload"):
                fine = value > 0
            else:
                fine = name == "hosts" or (isinstance(value, int) and value >= least)
            if not fine:
                raise GfmError(f"serve: {name}: expected a number of at least {least}, found {value!r}")
