"""What of an old index still holds for another set of passages."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import reduce

import numpy as np

from gfm.graph.linker import TitleLinker
from gfm.index.content import Content
from gfm.memory import without_collector
from gfm.text.normalise import name_key, words
from gfm.types import Passage

_TOKEN = re.compile("[A-Za-z0-9]+")


@without_collector()
def carry(
    old: Content, passages: Sequence[Passage], given: Sequence[str], linker: TitleLinker
) -> tuple[np.ndarray, np.ndarray]:
    """Where the old passages stand among the new ones.

    A passage is read again where its text is new, where anything is given beside the texts, or where titles came
    or went that it may name.

    Args:
        old: The old index.
        passages: The new passages.
        given: The new rows of what is given beside the texts.
        linker: Of the new titles.

    Returns:
        The new number of each old passage, int64[P'], or -1: once for its text alone, once for what it says.
    """
    place = {passage: i for i, passage in enumerate(passages)}
    same = np.array([place.get(passage, -1) for passage in old.passages], dtype=np.int64)
    said = same.copy()
    if old.given or given:
        # Ids, types and aliases reach across documents: where anything is given, all is read again. Extractions and
        # vectors still come from the cache and the old index.
        said[:] = -1
        return same, said
    titles = {p.title for p in old.passages} ^ {p.title for p in passages}
    if titles:
        said[_may_name(old, *linker.touched(titles))] = -1
    return same, said


def _may_name(old: Content, forms: Collection[tuple[str, ...]], keys: Collection[str]) -> np.ndarray:
    """Numbers of the old passages that look up one of these token sequences or keys, and of a few more."""
    found: set[int] = set()
    for form in forms:
        found.update(i for i in _holding(old, form) if i not in found and _stands_in(form, old.passages[i].text))
    # Names that an extractor cut out of the middle of a word, or that were given, need not stand in the text as tokens,
    # nor need the passage's own title, of which more or less is shown once others are like it.
    first = {form[0] for form in forms}
    spelt = [
        _may_begin(form, first) and (_sequence(form) in forms or name_key(form) in keys) for form in old.said.forms
    ]
    found.update(old.said.mention[np.array(spelt, dtype=bool)[old.said.mention[:, 2]], 0].tolist())
    return np.array(sorted(found), dtype=np.int64)


def _may_begin(name: str, first: Collection[str]) -> bool:
    """Whether the first token of a name may be one of these; in plain ASCII that is told at once."""
    if name.isascii() and "<" not in name and "&" not in name and (token := _TOKEN.search(name)):
        return token.group().lower() in first
    return True


def _sequence(text: str) -> tuple[str, ...]:
    return tuple(words(text))


def _holding(old: Content, form: tuple[str, ...]) -> list[int]:
    """Passages that hold every token of the form."""
    known = old.words
    at = [bisect_left(known.vocabulary, token) for token in form]
    if any(known.vocabulary[i : i + 1] != [token] for i, token in zip(at, form, strict=True)):
        return []
    rows = sorted((known.passage[known.ptr[i] : known.ptr[i + 1]] for i in at), key=len)
    holding: list[int] = reduce(lambda a, b: a[np.isin(a, b, assume_unique=True)], rows).tolist()
    return holding


def _stands_in(form: tuple[str, ...], text: str) -> bool:
    found = _sequence(text)
    return any(found[i : i + len(form)] == form for i in range(len(found) - len(form) + 1))
