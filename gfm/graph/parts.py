"""A graph without its synonym edges, numbered from what passages say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gfm.graph.linker import TitleLinker
from gfm.graph.occurrences import Occurrences
from gfm.memory import without_collector
from gfm.text.normalise import best_form, plain_name
from gfm.types import GivenEntity


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
        given: For each entity what was handed in of it, if anything.
        forms: By entity, the spellings that were found, with their counts, by the alphabet; of each that has another
            than its name.
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
    given: list[GivenEntity | None]
    forms: dict[int, list[tuple[str, int]]]
    descriptions: list[str]
    apart: list[tuple[int, ...]]
    self_loops: int

    @property
    def triples(self) -> list[tuple[int, int, int, str, float]]:
        """(head, tail, fact, relation, weight) of each triple."""
        head, tail, fact = self.triple_ends.T.tolist()
        return list(zip(head, tail, fact, self.relations, self.weight.tolist(), strict=True))


@without_collector()
def number(said: Occurrences, linker: TitleLinker) -> GraphParts:
    """The parts of the graph.

    Args:
        said: What passages say, as columns.
        linker: Of the titles and aliases by which they were read.
    """
    entity = {key: i for i, key in enumerate(said.keys)}
    mentions = said.mention[:, :2].astype(np.int64)
    new = np.ones(len(mentions), dtype=bool)
    new[1:] = (mentions[1:] != mentions[:-1]).any(axis=1)
    by_fact = np.argsort(said.fact[:, 1], kind="stable")
    ends = np.cumsum(np.bincount(said.fact[:, 1], minlength=len(said.facts))).tolist()
    sources = said.fact[by_fact, 0].tolist()
    triple_ends, relations, weight = _triples(said)
    given = _given(linker)
    shown = {key: plain_name(row.name) for key, row in given.items()} | linker.table.spellings()
    names, forms = _names(said, {entity[key]: name for key, name in shown.items() if name and key in entity})
    groups = (tuple(entity[key] for key in group if key in entity) for group in linker.table.shared().values())
    return GraphParts(
        entities=list(zip(said.keys, names, strict=True)),
        facts=said.facts,
        fact_passages=[tuple(sources[a:b]) for a, b in zip([0, *ends], ends, strict=False)],
        triple_ends=triple_ends,
        relations=relations,
        weight=weight,
        mentions=mentions[new],
        subjects=said.subject.astype(np.int64),
        aliases=sorted((entity[a], entity[b]) for a, b in linker.aliases if a in entity and b in entity),
        given=[given.get(key) for key in said.keys],
        forms=forms,
        descriptions=_descriptions(said, triple_ends),
        apart=sorted({group for group in groups if len(group) > 1}),
        self_loops=count_self_loops(said),
    )


def _given(linker: TitleLinker) -> dict[str, GivenEntity]:
    """Rows of the table by the key of their entity; its own before one that an alias or a title merges with it."""
    rows = linker.table.entities
    resolved = {linker.resolve_exactly(row.name): row for _, row in sorted(rows.items(), reverse=True)}
    return resolved | {key: row for key, row in rows.items() if linker.resolve_exactly(row.name) == key}


def count_self_loops(said: Occurrences) -> int:
    """Number of statements that were left out; what several passages say counts once."""
    return len(np.unique(said.self_loop[:, 1:], axis=0))


def _descriptions(said: Occurrences, triple_ends: np.ndarray) -> list[str]:
    """For each triple the words that were given beside its relation."""
    if not len(said.description):
        return [""] * len(triple_ends)
    row, head, tail, remark = said.description.T
    given = np.unique(np.stack([head, tail, said.fact[row, 1], remark], axis=1), axis=0)
    found: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for h, t, f, words in given.tolist():
        found[h, t, f].append(said.remarks[words])
    return [" ".join(found.get((h, t, f), ())) for h, t, f in triple_ends.tolist()]


def _names(said: Occurrences, shown: Mapping[int, str]) -> tuple[list[str], dict[int, list[tuple[str, int]]]]:
    """The name of each entity (``shown``, by number, else its best spelling), and `GraphParts.forms`.

    Spellings that look alike without markup are counted together.
    """
    plain = [plain_name(form) for form in said.forms]
    texts = sorted(set(plain))
    place = dict(zip(texts, range(len(texts)), strict=True))
    text = np.array([place[form] for form in plain], dtype=np.int64)[said.mention[:, 2]]
    pairs, which = np.unique(said.mention[:, 1].astype(np.int64) * max(len(texts), 1) + text, return_inverse=True)
    counts = np.bincount(which, weights=said.mention[:, 3], minlength=len(pairs)).astype(np.int64).tolist()
    entity, text = np.divmod(pairs, max(len(texts), 1))
    start = np.searchsorted(entity, np.arange(len(said.keys) + 1))
    names = [texts[i] for i in text[start[:-1]].tolist()]
    forms = {}
    for i in sorted({*np.flatnonzero(np.diff(start) > 1).tolist(), *shown}):
        spelt = {texts[text[j]]: counts[j] for j in range(start[i], start[i + 1])}
        names[i] = shown.get(i) or best_form(spelt)
        if set(spelt) != {names[i]}:
            forms[i] = list(spelt.items())
    return names, forms


def _triples(said: Occurrences) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Ends int64[T, 3], relations and weights float32[T]: what several passages say of one triple is put together."""
    row, head, tail, relation = said.triple.T.astype(np.int64)
    ends = np.stack([head, tail, said.fact[row, 1].astype(np.int64)], axis=1)  # (C, 3)
    order = np.lexsort((head * len(said.keys) + tail, ends[:, 2]))  # stable: within a triple by passage and place
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
