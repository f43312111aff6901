"""What was spent on a language model, and what may still be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from gfm.llm.errors import RequestError
from gfm.llm.settings import LLMSettings


class BudgetError(RequestError):
    """The next request might go beyond the budget; it was not sent."""


@dataclass
class Spending:
    """Tokens as the server counted them, or as estimated where it did not say.

    Attributes:
        calls: Requests that were sent, those that failed among them.
        input_tokens: Read by the model.
        output_tokens: Written by it.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def as_json(self, settings: LLMSettings) -> dict[str, Any]:
        """Ready for `json.dumps`; ``usd`` is null where the prices are not known."""
        return {**vars(self), "usd": settings.usd(self.input_tokens, self.output_tokens)}

    def text(self, settings: LLMSettings) -> str:
        """One line for people."""
        tokens = f"{self.calls:,} calls, {self.input_tokens:,} tokens read, {self.output_tokens:,} written"
        return f"{tokens}, {dollars(settings.usd(self.input_tokens, self.output_tokens))}"


def dollars(usd: float | None) -> str:
    """A price for people."""
    return "price unknown (set price_input and price_output)" if usd is None else f"${usd:,.4f}"


@dataclass
class Budget:
    """Keeps what is spent, together with the worst that requests under way may cost, within the limits.

    Threads may share one, as those of a service do.
    """

    settings: LLMSettings
    spent: Spending = field(default_factory=Spending)
    _open_input: int = 0
    _open_output: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    @contextmanager
    def request(self, input_tokens: int, output_tokens: int) -> Iterator[Spending]:
        """One request; the block fills in what it cost, which is nothing unless it says so.

        Args:
            input_tokens: Estimate of what the model reads.
            output_tokens: The most that it may write.

        Raises:
            BudgetError: The request might cost more than is left.
        """
        with self._lock:  # else two threads could both find room for what has room once
            self._check(input_tokens, output_tokens)
            self._open_input += input_tokens
            self._open_output += output_tokens
        cost = Spending(calls=1)
        try:
            yield cost
        finally:
            with self._lock:
                self._open_input -= input_tokens
                self._open_output -= output_tokens
                self._count(cost)

    def add(self, cost: Spending) -> None:
        """Count what was spent beside a request's block, such as the text of a reply that came in pieces."""
        with self._lock:
            self._count(cost)

    def _count(self, cost: Spending) -> None:
        self.spent.calls += cost.calls
        self.spent.input_tokens += cost.input_tokens
        self.spent.output_tokens += cost.output_tokens

    def _check(self, input_tokens: int, output_tokens: int) -> None:
        read = self.spent.input_tokens + self._open_input + input_tokens
        written = self.spent.output_tokens + self._open_output + output_tokens
        tokens, usd = self.settings.budget_tokens, self.settings.budget_usd
        if tokens is not None and read + written > tokens:
            raise BudgetError(f"budget_tokens: the next request might go beyond {tokens:,} tokens; raise it to go on")
        price = self.settings.usd(read, written)
        if usd is not None and price is not None and price > usd:
            raise BudgetError(f"budget_usd: the next request might go beyond {dollars(usd)}; raise it to go on")
