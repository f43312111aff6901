"""What each passage says, as columns: the half of a graph that can be carried over when other passages come or go.

The graph is numbered from these columns alone, so it is the same whether they were made in one go or bit by bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gfm.memory import without_collector


@dataclass
class Reading:
    """What one passage says.

    Attributes:
        subject: Key of the entity that it is about; empty where it has no title.
        mentions: How often it names each entity in each spelling, by (key, spelling).
        facts: By text, in order; each with the weights of its triples, by (head key, tail key, relation); NaN where
            none was given.
        descriptions: Words given beside a relation, as (fact, head key, tail key, words).
        self_loops: (key, text) of given statements left out because both ends are one entity.
    """

    subject: str = ""
    mentions: Counter[tuple[str, str]] = field(default_factory=Counter)
    facts: dict[str, dict[tuple[str, str, str], float]] = field(default_factory=dict)
    descriptions: set[tuple[str, str, str, str]] = field(default_factory=set)
    self_loops: set[tuple[str, str]] = field(default_factory=set)

    def mention(self, key: str, form: str) -> None:
        """Count one mention."""
        self.mentions[key, form] += 1

    def fact(self, text: str) -> None:
        """Enter a fact."""
        self.facts.setdefault(text, {})

    def triple(self, text: str, head: str, tail: str, relation: str, weight: float | None = None) -> None:
        """Enter a triple of the fact ``text``; none joins an entity with itself, and the greatest weight counts."""
        if head != tail:
            known = self.facts[text].get((head, tail, relation), math.nan)
            given = math.nan if weight is None else weight
            self.facts[text][head, tail, relation] = known if math.isnan(given) or known > given else given


@dataclass(frozen=True)
class Occurrences:
    """The readings of all passages; the same readings give the same columns.

    Attributes:
        keys: Entity keys, sorted.
        forms: Spellings, sorted.
        facts: Texts, by first occurrence.
        relations: Sorted.
        subject: int32[P], the entity that each passage is about, or -1.
        mention: int32[A, 4] of passage, entity, form and how often; sorted, no three twice.
        fact: int32[B, 2] of passage and fact, by passage and place in it; no two twice.
        triple: int32[C, 4] of row of ``fact``, head, tail and relation, by row and place in it.
        weight: float32[C], of the triples; NaN where none was given.
        remarks: Words given beside a relation, and sentences of statements that were left out; sorted.
        description: int32[D, 4] of row of ``fact``, head, tail and remark; sorted, none twice.
        self_loop: int32[L, 3] of passage, entity and remark, of statements with one entity at both ends; so too.
    """

    keys: list[str]
    forms: list[str]
    facts: list[str]
    relations: list[str]
    subject: np.ndarray
    mention: np.ndarray
    fact: np.ndarray
    triple: np.ndarray
    weight: np.ndarray
    remarks: list[str]
    description: np.ndarray
    self_loop: np.ndarray


NOTHING = Occurrences(
    keys=[],
    forms=[],
    facts=[],
    relations=[],
    subject=np.zeros(0, np.int32),
    mention=np.zeros((0, 4), np.int32),
    fact=np.zeros((0, 2), np.int32),
    triple=np.zeros((0, 4), np.int32),
    weight=np.zeros(0, np.float32),
    remarks=[],
    description=np.zeros((0, 4), np.int32),
    self_loop=np.zeros((0, 3), np.int32),
)


class Numbers(dict[str, int]):
    """Gives each new text the next number."""

    def __init__(self, known: Sequence[str] = ()):
        super().__init__(zip(known, range(len(known)), strict=True))

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


@without_collector()
def merge(
    old: Occurrences, moved: np.ndarray, readings: Iterable[tuple[int, Reading]], num_passages: int
) -> Occurrences:
    """Columns of P passages, from those of other passages and from new readings.

    Args:
        old: Columns of P' passages.
        moved: int[P'], the new number of each of them, or -1 where what it said no longer counts.
        readings: Each with the passage's new number; together with ``moved`` they give each number once.
        num_passages: P.
    """
    keys, forms, facts, relations, remarks = (
        Numbers(x) for x in (old.keys, old.forms, old.facts, old.relations, old.remarks)
    )
    subject = np.full(num_passages, -1, dtype=np.int32)
    subject[moved[moved >= 0]] = old.subject[moved >= 0]
    mentions: list[tuple[int, ...]] = []
    said: list[tuple[int, ...]] = []
    triples: list[tuple[int, ...]] = []
    weights: list[float] = []
    descriptions: list[tuple[int, ...]] = []
    loops: list[tuple[int, ...]] = []
    for number, reading in readings:
        if reading.subject:
            subject[number] = keys[reading.subject]
        mentions += [(number, keys[key], forms[form], count) for (key, form), count in reading.mentions.items()]
        row = {text: len(old.fact) + len(said) + i for i, text in enumerate(reading.facts)}
        said += [(number, facts[text]) for text in row]
        for text, found in reading.facts.items():
            triples += [(row[text], keys[head], keys[tail], relations[r]) for head, tail, r in found]
            weights += found.values()
        descriptions += [(row[text], keys[h], keys[t], remarks[words]) for text, h, t, words in reading.descriptions]
        loops += [(number, keys[key], remarks[text]) for key, text in reading.self_loops]
    return _in_order(
        Occurrences(
            keys=list(keys),
            forms=list(forms),
            facts=list(facts),
            relations=list(relations),
            subject=subject,
            mention=_joined(old.mention, moved, mentions),
            fact=_joined(old.fact, moved, said),
            triple=np.concatenate([old.triple, _table(triples, 4)]),
            weight=np.concatenate([old.weight, np.array(weights, dtype=np.float32)]),
            remarks=list(remarks),
            description=np.concatenate([old.description, _table(descriptions, 4)]),
            self_loop=_joined(old.self_loop, moved, loops),
        )
    )


def _joined(old: np.ndarray, moved: np.ndarray, new: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Old rows by the new numbers of their passages (-1 where these are gone), then the new rows."""
    rows = np.concatenate([old, _table(new, old.shape[1])])
    rows[: len(old), 0] = moved[old[:, 0]]
    return rows


def _table(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int32).reshape(-1, width)


def _in_order(loose: Occurrences) -> Occurrences:
    """Drop what belongs to no passage and the texts that nobody uses, and number and sort the rest."""
    order = np.argsort(loose.fact[:, 0], kind="stable")
    order = order[loose.fact[order, 0] >= 0]
    fact = loose.fact[order]
    row = np.full(len(loose.fact), -1, dtype=np.int32)
    row[order] = np.arange(len(order))
    of_triple = row[loose.triple[:, 0]]
    kept = np.flatnonzero(of_triple >= 0)
    kept = kept[np.argsort(of_triple[kept], kind="stable")]
    triple = loose.triple[kept]
    mention, loop = (rows[rows[:, 0] >= 0] for rows in (loose.mention, loose.self_loop))
    description = loose.description[row[loose.description[:, 0]] >= 0]
    keys, key = _sorted_texts(loose.keys, mention[:, 1])
    forms, form = _sorted_texts(loose.forms, mention[:, 2])
    relations, relation = _sorted_texts(loose.relations, triple[:, 3])
    remarks, remark = _sorted_texts(loose.remarks, np.concatenate([description[:, 3], loop[:, 2]]))
    used, first = np.unique(fact[:, 1], return_index=True)
    used = used[np.argsort(first)]
    facts = np.full(len(loose.facts), -1, dtype=np.int32)
    facts[used] = np.arange(len(used))
    mention = _columns(mention[:, 0], key[mention[:, 1]], form[mention[:, 2]], mention[:, 3])
    return Occurrences(
        keys,
        forms,
        [loose.facts[i] for i in used.tolist()],
        relations,
        subject=np.where(loose.subject >= 0, key[loose.subject], -1).astype(np.int32) if len(key) else loose.subject,
        mention=mention[np.lexsort((mention[:, 2], mention[:, 1], mention[:, 0]))],
        fact=_columns(fact[:, 0], facts[fact[:, 1]]),
        triple=_columns(of_triple[kept], key[triple[:, 1]], key[triple[:, 2]], relation[triple[:, 3]]),
        weight=loose.weight[kept],
        remarks=remarks,
        description=np.unique(
            _columns(row[description[:, 0]], key[description[:, 1]], key[description[:, 2]], remark[description[:, 3]]),
            axis=0,
        ),
        self_loop=np.unique(_columns(loop[:, 0], key[loop[:, 1]], remark[loop[:, 2]]), axis=0),
    )


def _columns(*columns: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=1)


def _sorted_texts(texts: list[str], used: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts that are used, sorted, and the new number of each text, int32 (-1 where it is not used)."""
    old = np.flatnonzero(np.bincount(used, minlength=len(texts))).tolist()
    old.sort(key=texts.__getitem__)
    numbers = np.full(len(texts), -1, dtype=np.int32)
    numbers[old] = np.arange(len(old))
    return [texts[i] for i in old], numbers
