"""A guess at the number of tokens of a text, for any model."""

from __future__ import annotations

import math
from functools import lru_cache

from gfm.text.normalise import tokens


def estimate_tokens(text: str) -> int:
    """A cautious guess at the tokens of a text where the model's tokenizer is not at hand.

    Each word counts one and one more per 8 further characters, each other visible character one; the sum is raised by
    30 % and rounded up.
    """
    return math.ceil(1.3 * sum(map(_line_tokens, text.split("\n"))))


@lru_cache(maxsize=4096)  # fitting a context counts the same lines again and again
def _line_tokens(line: str) -> int:
    visible = sum(not c.isspace() for c in line)
    words = [end - start for _, start, end in tokens(line)]
    return sum(math.ceil(n / 8) for n in words) + visible - sum(words)
