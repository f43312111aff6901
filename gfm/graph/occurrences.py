"""What each passage says, as columns: the half of a graph that can be carried over when other passages come or go.

The graph is numbered from these columns alone, so it is the same whether they were made in one go or bit by bit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from gfm.graph.entity_table import EntityTable
from gfm.text.normalise import best_form, plain_name


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


@dataclass
class Remarks:
    """What readings say that columns do not hold: only given graphs say such, and those are always read as a whole."""

    descriptions: set[tuple[str, str, str, str]] = field(default_factory=set)
    self_loops: set[tuple[str, str]] = field(default_factory=set)

    def collect(self, readings: Iterable[tuple[int, Reading]]) -> Iterator[tuple[int, Reading]]:
        """The same readings, noted on their way."""
        for number, reading in readings:
            self.descriptions |= reading.descriptions
            self.self_loops |= reading.self_loops
            yield number, reading


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
)


class Numbers(dict[str, int]):
    """Gives each new text the next number."""

    def __init__(self, known: Sequence[str] = ()):
        super().__init__(zip(known, range(len(known)), strict=True))

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


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
    keys, forms, facts, relations = (Numbers(x) for x in (old.keys, old.forms, old.facts, old.relations))
    subject = np.full(num_passages, -1, dtype=np.int32)
    subject[moved[moved >= 0]] = old.subject[moved >= 0]
    mentions: list[tuple[int, int, int, int]] = []
    said: list[tuple[int, int]] = []
    triples: list[tuple[int, int, int, int]] = []
    weights: list[float] = []
    for number, reading in readings:
        if reading.subject:
            subject[number] = keys[reading.subject]
        mentions += [(number, keys[key], forms[form], count) for (key, form), count in reading.mentions.items()]
        for text, found in reading.facts.items():
            row = len(old.fact) + len(said)
            said.append((number, facts[text]))
            triples += [(row, keys[head], keys[tail], relations[r]) for head, tail, r in found]
            weights += found.values()
    fact = np.concatenate([old.fact, _table(said, 2)])
    fact[: len(old.fact), 0] = moved[old.fact[:, 0]]
    mention = np.concatenate([old.mention, _table(mentions, 4)])
    mention[: len(old.mention), 0] = moved[old.mention[:, 0]]
    return _in_order(
        Occurrences(
            keys=list(keys),
            forms=list(forms),
            facts=list(facts),
            relations=list(relations),
            subject=subject,
            mention=mention[mention[:, 0] >= 0],
            fact=fact,
            triple=np.concatenate([old.triple, _table(triples, 4)]),
            weight=np.concatenate([old.weight, np.array(weights, dtype=np.float32)]),
        )
    )


def _table(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int32).reshape(-1, width)


def _in_order(loose: Occurrences) -> Occurrences:
    """Drop the facts of no passage and the texts that nobody uses, and number and sort the rest."""
    order = np.argsort(loose.fact[:, 0], kind="stable")
    order = order[loose.fact[order, 0] >= 0]
    fact = loose.fact[order]
    row = np.full(len(loose.fact), -1, dtype=np.int32)
    row[order] = np.arange(len(order))
    triple = loose.triple.copy()
    triple[:, 0] = row[triple[:, 0]]
    kept = np.flatnonzero(triple[:, 0] >= 0)
    kept = kept[np.argsort(triple[kept, 0], kind="stable")]
    triple = triple[kept]
    keys, key = _sorted_texts(loose.keys, loose.mention[:, 1])
    forms, form = _sorted_texts(loose.forms, loose.mention[:, 2])
    relations, relation = _sorted_texts(loose.relations, triple[:, 3])
    used, first = np.unique(fact[:, 1], return_index=True)
    used = used[np.argsort(first)]
    facts = np.full(len(loose.facts), -1, dtype=np.int32)
    facts[used] = np.arange(len(used))
    passage, entity, spelling, count = loose.mention.T
    mention = np.stack([passage, key[entity], form[spelling], count], axis=1)
    return Occurrences(
        keys,
        forms,
        [loose.facts[i] for i in used.tolist()],
        relations,
        subject=np.where(loose.subject >= 0, key[loose.subject], -1).astype(np.int32) if len(key) else loose.subject,
        mention=mention[np.lexsort((mention[:, 2], mention[:, 1], mention[:, 0]))],
        fact=np.stack([fact[:, 0], facts[fact[:, 1]]], axis=1),
        triple=np.stack([triple[:, 0], key[triple[:, 1]], key[triple[:, 2]], relation[triple[:, 3]]], axis=1),
        weight=loose.weight[kept],
    )


def _sorted_texts(texts: list[str], used: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts that are used, sorted, and the new number of each text, int32 (-1 where it is not used)."""
    old = np.flatnonzero(np.bincount(used, minlength=len(texts))).tolist()
    old.sort(key=texts.__getitem__)
    numbers = np.full(len(texts), -1, dtype=np.int32)
    numbers[old] = np.arange(len(old))
    return [texts[i] for i in old], numbers


@dataclass
class GraphParts:
    """Everything of a graph but the synonym edges, which need vectors.

    Attributes:
        entities: (key, display name), sorted by key.
        facts: Texts, in order.
        fact_passages: Source passages of each fact.
        triple_ends: int64[T, 3] of head, tail and fact; unique, sorted by fact, then head and tail.
        relations: For each triple, what its passages say of it.
        weight: float32[T], the greatest that a passage gives each triple.
        mentions: int64[M, 2] of passage, entity; unique, sorted.
        subjects: int64[P], the entity each passage is about (its title), or -1.
        aliases: Entity pairs that are the same name with and without its bracket, or that share an alias.
        forms: For each entity the spellings that were found, with their counts, by the alphabet.
        descriptions: For each triple the words that were given beside its relation.
        apart: Groups of entities that share a form and are different things: never near-equal.
        self_loops: Number of given statements left out because both ends are one entity.
    """

    entities: list[tuple[str, str]]
    facts: list[str]
    fact_passages: list[tuple[int, ...]]
    triple_ends: np.ndarray
    relations: list[str]
    weight: np.ndarray
    mentions: np.ndarray
    subjects: np.ndarray
    aliases: list[tuple[int, int]]
    forms: list[list[tuple[str, int]]]
    descriptions: list[str]
    apart: list[tuple[int, ...]]
    self_loops: int

    @property
    def triples(self) -> list[tuple[int, int, int, str, float]]:
        """(head, tail, fact, relation, weight) of each triple."""
        head, tail, fact = self.triple_ends.T.tolist()
        return list(zip(head, tail, fact, self.relations, self.weight.tolist(), strict=True))


def number(
    said: Occurrences,
    aliases: set[tuple[str, str]],
    table: EntityTable | None = None,
    remarks: Remarks | None = None,
) -> GraphParts:
    """The parts of the graph.

    Args:
        said: The columns.
        aliases: Pairs of keys that are one name; those that no passage mentions are passed over.
        table: What is known of entities beside the texts.
        remarks: Of all readings, where there may be any.
    """
    table, remarks = table or EntityTable(), remarks or Remarks()
    entity = {key: i for i, key in enumerate(said.keys)}
    mentions = said.mention[:, :2].astype(np.int64)
    new = np.ones(len(mentions), dtype=bool)
    new[1:] = (mentions[1:] != mentions[:-1]).any(axis=1)
    by_fact = np.argsort(said.fact[:, 1], kind="stable")
    ends = np.cumsum(np.bincount(said.fact[:, 1], minlength=len(said.facts))).tolist()
    sources = said.fact[by_fact, 0].tolist()
    triple_ends, relations, weight = _triples(said)
    forms, shown = _spellings(said), table.spellings()
    groups = (tuple(entity[key] for key in group if key in entity) for group in table.shared().values())
    return GraphParts(
        entities=[(key, shown.get(key) or best_form(spelt)) for key, spelt in zip(said.keys, forms, strict=True)],
        facts=said.facts,
        fact_passages=[tuple(sources[a:b]) for a, b in zip([0, *ends], ends, strict=False)],
        triple_ends=triple_ends,
        relations=relations,
        weight=weight,
        mentions=mentions[new],
        subjects=said.subject.astype(np.int64),
        aliases=sorted((entity[a], entity[b]) for a, b in aliases if a in entity and b in entity),
        forms=[sorted(spelt.items()) for spelt in forms],
        descriptions=_descriptions(said, triple_ends, remarks),
        apart=sorted({group for group in groups if len(group) > 1}),
        self_loops=len(remarks.self_loops),
    )


def _descriptions(said: Occurrences, triple_ends: np.ndarray, remarks: Remarks) -> list[str]:
    """For each triple the words that were given beside its relation."""
    if not remarks.descriptions:
        return [""] * len(triple_ends)
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for text, head, tail, words in sorted(remarks.descriptions):
        found[text, head, tail].append(words)
    keys, facts = said.keys, said.facts
    return [" ".join(found.get((facts[f], keys[h], keys[t]), ())) for h, t, f in triple_ends.tolist()]


def _spellings(said: Occurrences) -> list[Counter[str]]:
    """The spellings of each entity with their counts; those that look alike without markup are counted together."""
    pair = said.mention[:, 1].astype(np.int64) * len(said.forms) + said.mention[:, 2]
    pairs, which = np.unique(pair, return_inverse=True)
    counts = np.bincount(which, weights=said.mention[:, 3], minlength=len(pairs)).astype(np.int64).tolist()
    entity, form = np.divmod(pairs, max(len(said.forms), 1))
    plain = [plain_name(form) for form in said.forms]
    start = np.searchsorted(entity, np.arange(len(said.keys) + 1)).tolist()
    form = form.tolist()
    found = []
    for a, b in pairwise(start):
        spelt: Counter[str] = Counter()
        for i in range(a, b):
            spelt[plain[form[i]]] += counts[i]
        found.append(spelt)
    return found


def _triples(said: Occurrences) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Ends int64[T, 3], relations and weights float32[T]: what several passages say of one triple is put together."""
    row, head, tail, relation = said.triple.T.astype(np.int64)
    ends = np.stack([head, tail, said.fact[row, 1].astype(np.int64)], axis=1)  # (C, 3)
    order = np.lexsort((ends[:, 1], ends[:, 0], ends[:, 2]))  # stable: within a triple by passage and place
    ends, relation = ends[order], relation[order]
    new = np.ones(len(ends), dtype=bool)
    new[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    start = np.flatnonzero(new)
    if not len(start):
        return np.zeros((0, 3), np.int64), [], np.zeros(0, np.float32)
    words = [said.relations[i] for i in relation[start].tolist()]
    differs = ~new
    differs[1:] &= relation[1:] != relation[:-1]
    stop = np.append(start[1:], len(ends))
    for i in np.unique(np.cumsum(new)[differs] - 1).tolist():
        found = [said.relations[r] for r in relation[start[i] : stop[i]].tolist()]
        words[i] = "; ".join(filter(None, dict.fromkeys(found)))
    weight = np.fmax.reduceat(said.weight[order], start)
    return ends[start], words, np.where(np.isnan(weight), np.float32(1), weight)
