"""Questions made from an index without a language model: chains and comparisons of facts, asked without the bridges.

A question names where its evidence starts (or both of its ends), words each step by what the sentence says around the
name it leads to, and leaves the names in between out: what the graph must find. Gold are the passages of the facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import regex as re

from gfm.graph.knowledge_graph import pointers
from gfm.index.index import GraphIndex
from gfm.text.normalise import name_key
from gfm.types import GfmError, Query, Triple

# Shares of the kinds: chains of 1 to 4 steps, two chains that meet in one answer, comparisons of two things.
_KINDS = {"one_hop": 0.15, "chain_2": 0.3, "chain_3": 0.2, "chain_4": 0.1, "meeting": 0.1, "comparison": 0.15}
_STEPS = {"one_hop": 1, "chain_2": 2, "chain_3": 3, "chain_4": 4}
_MOST_PASSAGES = 12  # a bridge named in more passages would make many others as good as the gold ones
_WORD = re.compile(r"[\p{L}\p{N}\p{M}'-]+")
_DROPPED = 0.1  # share of a step's words left out
_TRIES = 40  # draws of evidence before a question of one kind is given up
_LEAST = 4  # letters of a word that says something


@dataclass(frozen=True, slots=True)
class _Step:
    """One fact walked over: from the entity ``source`` to ``target``, stated by ``passage``."""

    source: int
    target: int
    triple: int
    passage: int


def make_questions(index: GraphIndex, count: int, seed: int) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """Questions over the facts of an index, with their gold documents.

    Source: self-supervision by paths, as in GFM-RAG's (Luo et al., 2025) completion of triples, but over several facts
    of unlike passages and worded from their sentences.

    Args:
        index: Where the facts are.
        count: How many questions; distinct ones.
        seed: Of every draw; equal seeds over equal indexes give equal questions.

    Returns:
        Questions ``made-0`` …, with ``type``, ``answer`` and ``evidences`` in their metadata, and their gold documents.

    Raises:
        GfmError: The index has too few facts that meet in different passages.
    """
    maker = _Maker(index, np.random.default_rng(seed))
    found: dict[str, tuple[str, list[_Step]]] = {}
    for _ in range(2 * count):
        if len(found) == count:
            break
        kind = str(maker.random.choice(list(_KINDS), p=list(_KINDS.values())))
        for _ in range(_TRIES):  # longer chains lead nowhere more often: draw again, so that the shares hold
            if (steps := maker.evidence(kind)) and (text := maker.words(kind, steps)) and text not in found:
                found[text] = (kind, steps)
                break
    if len(found) < count:
        raise GfmError(
            f"{index.path}: expected facts that make {count} questions, found enough for {len(found)}; ask for fewer, "
            "or index more text"
        )
    queries, qrels = [], {}
    for number, (text, (kind, steps)) in enumerate(found.items()):
        triples = index.triples(np.array([s.triple for s in steps]))
        metadata = {
            "type": kind,
            "answer": index.entity(steps[-1].target).name,
            "evidences": [[t.head, t.relation, t.tail] for t in triples],
        }
        queries.append(Query(f"made-{number}", text, metadata))
        qrels[queries[-1].id] = {index.document_ids[s.passage]: 1 for s in steps}
    return queries, qrels


class _Maker:
    """Draws evidence from an index and words it."""

    def __init__(self, index: GraphIndex, random: np.random.Generator):
        self.index, self.random, graph = index, random, index.graph
        ends = np.concatenate([graph.triple_head, graph.triple_tail])
        order = np.argsort(ends, kind="stable")
        self._at, self._ptr = order % max(graph.num_triples, 1), pointers(ends[order], graph.num_entities)
        names = [entity.name for entity in index.entities(np.arange(graph.num_entities))]
        self._name = names
        letters = np.array([any(c.isalpha() for c in name) for name in names], dtype=bool)
        self._bridges = letters & (graph.entity_df <= _MOST_PASSAGES)
        about = index.subjects[index.subjects >= 0]
        self._anchors = about if len(about) else np.flatnonzero(np.diff(self._ptr))

    def evidence(self, kind: str) -> list[_Step]:
        """Facts for a question of a kind; empty where the draw led nowhere."""
        if kind in _STEPS:
            return self._chain(self._anchor(), _STEPS[kind])
        if kind == "comparison":
            return self._comparison()
        first = self._chain(self._anchor(), 1)
        second = self._chain(first[0].target, 1, first) if first and self._bridges[first[0].target] else []
        return [*first, *second] if second else []

    def _anchor(self) -> int:
        """An entity that some passage is about; where none is about anything, any that has facts; -1 without facts."""
        return int(self.random.choice(self._anchors)) if len(self._anchors) else -1

    def _chain(self, start: int, steps: int, before: list[_Step] | None = None) -> list[_Step]:
        """Steps from an entity over facts of different passages, through bridges that few passages name."""
        found: list[_Step] = []
        if start < 0:
            return found
        passages = {s.passage for s in before or ()}
        seen = {start, *(s.source for s in before or ()), *(s.target for s in before or ())}
        for left in range(steps, 0, -1):
            options = [
                s
                for s in self._from(start)
                if s.passage not in passages and s.target not in seen and (left == 1 or self._bridges[s.target])
            ]
            if not options:
                return []
            step = options[self.random.integers(len(options))]
            found.append(step)
            passages.add(step.passage)
            seen.add(step.target)
            start = step.target
        return found

    def _from(self, entity: int) -> Iterator[_Step]:
        """Facts at an entity that the subject of their passage is an end of: what a passage says of its own subject."""
        graph, subjects = self.index.graph, self.index.subjects
        at = self._at[self._ptr[entity] : self._ptr[entity + 1]]
        for triple in self.random.permutation(at)[:64]:
            head, tail = int(graph.triple_head[triple]), int(graph.triple_tail[triple])
            fact = graph.triple_fact[triple]
            passage = int(graph.fact_passage[graph.fact_passage_ptr[fact]])
            if subjects[passage] in (head, tail, -1):
                yield _Step(entity, tail if head == entity else head, int(triple), passage)

    def _comparison(self) -> list[_Step]:
        """One fact each of two subjects, worded alike: the second is the nearest of some drawn at random."""
        first = self._chain(self._anchor(), 1)
        if not first:
            return []
        near = [s for _ in range(16) if (s := self._chain(self._anchor(), 1)) and s[0].passage != first[0].passage]
        facts = self.index.graph.triple_fact[[s[0].triple for s in near]]
        if not len(facts) or near[0][0].source == first[0].source:
            return []
        vector = self.index.fact_vectors.rows[self.index.graph.triple_fact[first[0].triple]]
        best = int(np.argmax(self.index.fact_vectors.cosine(facts, vector)))
        return [first[0], near[best][0]] if near[best][0].source != first[0].source else []

    def words(self, kind: str, steps: list[_Step]) -> str:
        """The question's text; empty where a step has nothing to say."""
        triples = self.index.triples(np.array([s.triple for s in steps]))
        said = [self._phrase(t, s) for t, s in zip(triples, steps, strict=True)]
        if not all(said):
            return ""
        names = [self._name[s.source] for s in steps] + [self._name[steps[-1].target]]
        ask = self._ask(names[-1])
        if kind == "comparison":
            return f"{ask} {said[0]}: {names[0]} or {names[1]}?"
        if kind == "meeting":
            return f"{ask} {said[0]} {names[0]} and {said[1]} {names[-1]}?"
        if self.random.random() < 0.5:  # the order of "the mother of the director of …", or that of the facts
            return f"{ask} {' of the '.join(reversed(said))} of {names[0]}?"
        return f"{names[0]} {' that '.join(said)} {ask.lower()}?"

    def _ask(self, answer: str) -> str:
        """A question word that fits the answer, as far as its letters tell."""
        if any(c.isdigit() for c in answer):
            return str(self.random.choice(["When", "In what year", "Which date", "How many"]))
        return str(self.random.choice(["Who", "What", "Which", "Where", "What is the name of the"]))

    def _phrase(self, triple: Triple, step: _Step) -> str:
        """What is said of the step: the relation where there is one, else words beside the name that it leads to."""
        words = _WORD.findall(triple.relation)
        if not words:
            words = self._around(triple, self._name[step.target])
        hidden = {w for name in (triple.head, triple.tail) for w in _WORD.findall(name_key(name))}
        kept = [w for word in words if (w := word.casefold()) not in hidden and self.random.random() >= _DROPPED]
        return " ".join(kept) if any(len(w) >= _LEAST for w in kept) else ""

    def _around(self, triple: Triple, target: str) -> list[str]:
        """Some words before the name in the sentence, or after it where it stands first."""
        text = triple.text.removeprefix(f"{triple.head}: ").removeprefix(f"{triple.tail}: ")
        at = text.casefold().find(target.casefold())
        size = int(self.random.integers(2, 6))
        before: list[str] = _WORD.findall(text[: max(at, 0)])
        after: list[str] = _WORD.findall(text[at + len(target) if at >= 0 else 0 :])
        return before[-size:] if len(before) >= 2 else after[:size]
