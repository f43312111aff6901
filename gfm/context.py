"""Retrieval to text for a language model: facts, then numbered passages, within a budget, with their sources."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gfm.text.estimate import estimate_tokens
from gfm.text.normalise import clean, name_key
from gfm.text.reading import printable
from gfm.types import Context, GfmError, Hit, Passage, Retrieval, Source, Triple

UNNAMED = "(unnamed)"
_FACT_SHARE = 0.35
_TAG = re.compile(r"<(?=[\s/]*context\b)", re.IGNORECASE)
_CITATION = re.compile(r"\[(\s*\d[\d\s,;\u2013-]*)\]")


@dataclass
class _Fact:
    """One sentence with the arrows and the passages of all triples that it stands for, in rank order."""

    text: str
    arrows: dict[str, None] = field(default_factory=dict)
    passage_ids: dict[str, None] = field(default_factory=dict)


def build_context(
    retrieval: Retrieval,
    max_tokens: int = 2000,
    count_tokens: Callable[[str], int] | None = None,
    max_facts: int = 20,
) -> Context:
    """Text for a language model from what a retriever found.

    Everything stands between ``<context>`` and ``</context>``. Facts come first, one line each: ``F1. sentence (head →
    relation → tail) [1]``, citing the numbers of the passages that state them, or the passage's id where it was cut.
    Passages follow under headings ``[1] "title" (source "document id", characters start-end)``, every line of theirs
    behind ``> ``, so that none can begin a heading or a fact of its own; inside, ``<context`` and ``[1]`` are defused.

    Whole items are cut, the lowest rank first, until the finished text fits; facts take at most 35 % of the budget and
    give way where the first passage would not fit beside them.

    Args:
        retrieval: From any retriever; without facts, passages alone are a valid context.
        max_tokens: The budget of the finished text.
        count_tokens: The language model's own counter; `estimate_tokens` unless given.
        max_facts: Most facts to show, one a sentence.

    Returns:
        The context. Where nothing was found, or the first passage alone is over the budget, its text is empty. ``cut``
        names facts as ``F3`` (the third sentence in rank order) and passages by id, both best first.

    Raises:
        GfmError: ``max_tokens`` is below 1 or ``max_facts`` below 0.
    """
    if max_tokens < 1 or max_facts < 0:
        raise GfmError(
            f"context: expected max_tokens of at least 1 and max_facts of at least 0, "
            f"found {max_tokens} and {max_facts}; raise them"
        )
    passages = [hit.item for hit in sorted(retrieval.passages, key=lambda hit: hit.rank)]
    facts = _facts(retrieval)
    count = count_tokens or estimate_tokens
    kept_facts, kept_passages = _fit(facts, passages, max_tokens, count, max_facts)
    text = _render(facts[:kept_facts], passages[:kept_passages])
    return Context(
        text=text,
        sources=[Source(n, p.id, p.document_id, p.start, p.end) for n, p in enumerate(passages[:kept_passages], 1)],
        num_tokens=count(text) if text else 0,
        cut=[f"F{n + 1}" for n in range(kept_facts, len(facts))] + [p.id for p in passages[kept_passages:]],
    )


def _facts(retrieval: Retrieval) -> list[_Fact]:
    """The distinct sentences of the triples, in rank order."""
    unnamed = {name_key(hit.item.key) for hit in retrieval.entities if not clean(hit.item.name)}
    facts: dict[str, _Fact] = {}
    for hit in sorted(retrieval.triples, key=lambda hit: hit.rank):
        _add(facts, hit, unnamed)
    return list(facts.values())


def _add(facts: dict[str, _Fact], hit: Hit[Triple], unnamed: set[str]) -> None:
    triple = hit.item
    head, tail = _name(triple.head, unnamed), _name(triple.tail, unnamed)
    relation = _line(triple.relation)
    arrow = f"{head} → {relation} → {tail}" if relation else ""
    sentence = _line(_hide(triple.text, unnamed)) or arrow or f"{head}, {tail}"
    fact = facts.setdefault(sentence, _Fact(sentence))
    if arrow and arrow != sentence:
        fact.arrows[arrow] = None
    fact.passage_ids.update(dict.fromkeys(triple.passage_ids))


def _name(name: str, unnamed: set[str]) -> str:
    """The name as shown; a stand-in where there is none or only the internal id of an entity without a name."""
    return UNNAMED if not clean(name) or name_key(name) in unnamed else _line(name)


def _hide(text: str, unnamed: set[str]) -> str:
    """A sentence made from ids speaks of the stand-in instead."""
    for key in sorted(unnamed - {""}, key=lambda key: (-len(key), key)):
        text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", UNNAMED, text, flags=re.IGNORECASE)
    return text


def _defuse(text: str) -> str:
    """Text of others, unable to close the context or to pass for one of its citations."""
    return _CITATION.sub(r"(\1)", _TAG.sub("\u2039", text))


def _line(text: str) -> str:
    return _defuse(clean(text))


def _quoted(text: str) -> str:
    return json.dumps(_line(text), ensure_ascii=False)


def _render(facts: list[_Fact], passages: list[Passage]) -> str:
    """The finished text; empty without a fact or passage."""
    if not facts and not passages:
        return ""
    blocks = [_fact_block(facts, passages)] if facts else []
    if passages:
        blocks.append("\n".join(["Passages:", *(_entry(n, p) for n, p in enumerate(passages, 1))]))
    return "\n".join(["<context>", *blocks, "</context>"])


def _fact_block(facts: list[_Fact], passages: list[Passage]) -> str:
    number = {p.id: n for n, p in reversed(list(enumerate(passages, 1)))}
    return "\n".join(["Facts:", *(_fact_line(n, fact, number) for n, fact in enumerate(facts, 1))])


def _fact_line(n: int, fact: _Fact, number: dict[str, int]) -> str:
    arrows = f" ({'; '.join(fact.arrows)})" if fact.arrows else ""
    known = sorted(number[p] for p in fact.passage_ids if p in number)
    cited = "".join(f" [{k}]" for k in known)
    if not known and fact.passage_ids:
        cited = f" (passage {', '.join(map(_quoted, fact.passage_ids))})"
    return f"F{n}. {fact.text}{arrows}{cited}"


def _entry(n: int, passage: Passage) -> str:
    title = f"{_quoted(passage.title)} " if clean(passage.title) else ""
    heading = f"[{n}] {title}(source {_quoted(passage.document_id)}, characters {passage.start}-{passage.end})"
    # splitlines() on purpose: whatever a reader may take for the start of a line gets the mark of a quotation.
    lines = (line.strip() for line in _defuse(printable(passage.text)).splitlines())
    return "\n".join([heading, *(f"> {line}" for line in lines if line)])


def _fit(
    facts: list[_Fact], passages: list[Passage], budget: int, count: Callable[[str], int], max_facts: int
) -> tuple[int, int]:
    """How many of the best facts and passages fit."""

    def fits(f: int, p: int) -> bool:
        return count(_render(facts[:f], passages[:p])) <= budget

    def share(f: int, p: int) -> bool:
        return count(_fact_block(facts[:f], passages[:p])) <= _FACT_SHARE * budget

    first = min(1, len(passages))
    if first and not fits(0, first):
        return 0, 0
    most = _largest(min(len(facts), max_facts), lambda f: share(f, first) and fits(f, first))
    # More passages mean more citations, so the facts that fit beside the first passage may outgrow their share.
    for f in range(most, 0, -1):
        p = _most_passages(fits, f, len(passages))
        if p >= first and share(f, p) and fits(f, p):
            return f, p
    return 0, _most_passages(fits, 0, len(passages))


def _most_passages(fits: Callable[[int, int], bool], f: int, limit: int) -> int:
    return _largest(limit, lambda p: fits(f, p))


def _largest(limit: int, holds: Callable[[int], bool]) -> int:
    """The largest n of 1 … limit for which ``holds``, or 0; ``holds`` has one turning point.

    Doubling steps from below, then halves, keep the cost near the size of the budget, not of everything that was found.
    """
    low, step = 0, 1
    while low + step <= limit and holds(low + step):
        low += step
        step *= 2
    high = min(low + step - 1, limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
