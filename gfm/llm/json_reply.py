"""The JSON in a model's reply: behind reasoning, inside code fences, between polite words, or nearly JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gfm.types import GfmError

_THOUGHT = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_BEGINNING = re.compile(r"[{\[]\s*(?:[\"'{\[\]}]|$)")
_DECODER = json.JSONDecoder()
# Of a reply of nothing but brackets no more is tried; repairing takes time that grows with the square of the length.
_MOST_BEGINNINGS, _MOST_REPAIRS, _REPAIRED_CHARACTERS = 400, 2, 16_000


def without_reasoning(text: str) -> str:
    """A reply without what a model thought aloud before it; one of the thought's marks may be missing."""
    text = _THOUGHT.sub("", text)
    return _THOUGHT_END.split(text)[-1]


@dataclass(frozen=True, slots=True)
class JsonReply:
    """What a reply holds.

    Attributes:
        value: Arrays and objects of it.
        cut: Whether the reply broke off within it, so that the last item of each list may be half of one.
    """

    value: Any
    cut: bool = False


def read_json(text: str, weigh: Callable[[Any], int]) -> JsonReply | None:
    """The value that a reply holds.

    Args:
        text: The reply.
        weigh: How much of what is looked for a value holds; below 0 where it is something else.

    Returns:
        The value that weighs most, the last of several; JSON as it stands comes before what has to be repaired.
    """
    text = without_reasoning(text)
    cut = len(text) > _REPAIRED_CHARACTERS or not text.rstrip("` \n\t").endswith(("}", "]"))
    found, most = None, -1
    for value in _values(text):
        if weigh(value) >= max(most, 0):
            found, most = JsonReply(value), weigh(value)
    for value in _repaired(text):
        if weigh(value) > most:
            found, most = JsonReply(value, cut), weigh(value)
    return found


def _values(text: str) -> Iterator[Any]:
    """Every array and object that stands in the text as JSON, outermost first."""
    place, failures = 0, 0
    while (begin := _BEGINNING.search(text, place)) and failures < _MOST_BEGINNINGS:
        try:
            value, place = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            place, failures = begin.start() + 1, failures + 1
            continue
        yield value


def _repaired(text: str) -> Iterator[Any]:
    """What can be made of JSON that was cut off or written in another language's habits."""
    place, repairs = 0, 0
    while (begin := _BEGINNING.search(text, place)) and repairs < _MOST_REPAIRS:
        try:
            _, place = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            repairs += 1
            with suppress(ValueError, RecursionError):
                yield load_json_repair().loads(text[begin.start() :][:_REPAIRED_CHARACTERS])
            place = text.find("\n", begin.end()) + 1 or len(text)  # on its own line again: not every bracket within


def load_json_repair() -> Any:
    """The library json-repair.

    Raises:
        GfmError: It is not installed.
    """
    try:
        import json_repair
    except ImportError as error:
        raise GfmError(
            "language model: expected the package json-repair, found none; install it with: "
            "pip install 'gfm-retriever[llm]'"
        ) from error
    return json_repair
