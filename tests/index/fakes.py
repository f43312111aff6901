"""Stand-ins for what takes long: an extractor that needs no model, and documents that are small and tangled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from gfm.extract.extraction import Extraction, Mention, Predicate
from gfm.extract.given import GivenGraph, GivenTriples
from gfm.extract.resolve import resolve
from gfm.types import Document, GivenTriple, Passage

_SENTENCE = re.compile(r"[^.]+\.?")
_NAME = re.compile(r"[A-Z李][\w+]*(?: [A-Z(][\w+)]*)*")


class Capitals:
    """Sentences end with a full stop, names begin with a capital, and what stands between two is a predicate."""

    name = "capitals"
    cached = True
    settings = "capitals-1"
    rows = ()

    def __init__(self) -> None:
        self.seen: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        self.seen += [p.text for p in passages]
        return [self._extraction(p.text) for p in passages]

    def _extraction(self, text: str) -> Extraction:
        sentences = [(m.start(), m.end()) for m in _SENTENCE.finditer(text)]
        mentions = [Mention(m.start(), m.end(), "X") for m in _NAME.finditer(text)]
        pairs = pairwise(mentions)
        predicates = [Predicate(b.start, a.start, False, text[a.end : b.start].strip(" .").lower()) for a, b in pairs]
        return Extraction(tuple(sentences), tuple(mentions), tuple(p for p in predicates if p.text))


Triple = tuple[str, str, str]


def triples_of(folder: Path, table: dict[str, list[Triple]]) -> GivenTriples:
    """Given triples by document id, through a file; a document without any is named by a line that says nothing."""
    rows = [
        {"head": head, "relation": relation, "tail": tail, "passage_id": document}
        for document, triples in table.items()
        for head, relation, tail in [*triples, ("Nothing", "is", "nothing")]
    ]
    path = folder / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return GivenTriples(path)


def given_table(table: Mapping[str, Sequence[Triple]]) -> GivenGraph:
    """Given triples by document id, without a file."""
    rows = [GivenTriple(*triple, passage_ids=(i,)) for i, triples in table.items() for triple in triples]
    return GivenGraph(resolve([], rows))


def document(identifier: str, text: str, title: str = "", **metadata: object) -> Document:
    return Document(identifier, title, text, metadata)
