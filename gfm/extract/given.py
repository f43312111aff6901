"""Triples that somebody already has, as the extractor: no language model, no parse."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gfm.extract.extraction import Extraction
from gfm.text.chunk import embedded_text
from gfm.text.normalise import name_key
from gfm.text.reading import Row, one_line, read_rows
from gfm.types import GfmError, Passage

_Triple = tuple[str, str, str]


@dataclass
class _Table:
    """The triples of a file by passage id, the first line of each passage id, and the number of self-loops dropped."""

    triples: dict[str, list[_Triple]] = field(default_factory=dict)
    line: dict[str, int] = field(default_factory=dict)
    self_loops: int = 0


def read_triples(path: str | Path) -> dict[str, list[_Triple]]:
    """(head, relation, tail) by passage id, in the order of the lines; `GivenTriples` counts the self-loops left out.

    Args:
        path: JSONL, one object a line with ``head``, ``relation`` (may be empty), ``tail`` and ``passage_id``.

    Raises:
        GfmError: A line is not such an object (by file and line), or the file holds none.
    """
    return _read(Path(path)).triples


class GivenTable:
    """An extractor that looks the triples of a document up in a table.

    Args:
        triples: (head, relation, tail) by document id.

    Attributes:
        cached: False: the triples belong to a document id, so a cache by the hash of the text would mix them up.
        settings: Changes with the triples, not with the order of documents.
        rows: One JSON list a document: its id, then its triples in order.
    """

    name = "given"
    cached = False

    def __init__(self, triples: Mapping[str, Sequence[_Triple]]):
        self._triples = {document: list(found) for document, found in sorted(triples.items()) if found}
        self.rows: Sequence[str] = [json.dumps(item, ensure_ascii=False) for item in self._triples.items()]
        digest = hashlib.sha256("\n".join(self.rows).encode("utf-8", "surrogatepass"))
        self.settings = f"given-2:{digest.hexdigest()}"

    @classmethod
    def restore(cls, rows: Sequence[str]) -> GivenTable:
        """The table that has these ``rows``."""
        return GivenTable({document: [(h, r, t) for h, r, t in found] for document, found in map(json.loads, rows)})

    def of(self, document: str) -> list[_Triple]:
        """The triples of a document, in order."""
        return self._triples.get(document, [])

    def without(self, documents: Collection[str]) -> GivenTable:
        """The same but for some documents."""
        return GivenTable({d: found for d, found in self._triples.items() if d not in documents})

    def united(self, other: GivenTable) -> GivenTable:
        """Both; of a document that both know, what ``other`` says."""
        return GivenTable({**self._triples, **other._triples})

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage, in order.

        Each triple of a document goes to its first passage that names both ends (in its title or text), or else to
        its first passage. All passages of a document have to come in one call.
        """
        chunks: dict[str, list[int]] = defaultdict(list)
        for i, passage in enumerate(passages):
            chunks[passage.document_id].append(i)
        given: list[list[_Triple]] = [[] for _ in passages]
        for document, numbers in chunks.items():
            numbers.sort(key=lambda i: (passages[i].start, i))
            texts = [name_key(embedded_text(passages[i].title, passages[i].text)) for i in numbers]
            for triple in self.of(document):
                given[numbers[_first_with_both(triple, texts)]].append(triple)
        return [Extraction(triples=tuple(triples)) for triples in given]


class GivenTriples(GivenTable):
    """The triples of a file.

    Attributes:
        documents: Ids of the documents that it names.
        self_loops: Number of lines dropped because both ends are one name.

    Raises:
        GfmError: As `read_triples`.
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._table = _read(self._path)
        super().__init__(self._table.triples)
        self.documents = set(self._table.line)
        self.self_loops = self._table.self_loops

    def check(self, document_ids: Collection[str]) -> None:
        """Prove that every triple belongs to a document of the corpus.

        Raises:
            GfmError: One does not; the message names the first such line.
        """
        known = set(document_ids)
        unknown = [(line, passage) for passage, line in self._table.line.items() if passage not in known]
        if unknown:
            line, passage = min(unknown)
            raise GfmError(
                f"{self._path}:{line}: expected the passage_id of a document of the corpus, found {passage!r} "
                f"({len(unknown)} such ids in the file); correct the id or delete its lines"
            )


def _first_with_both(triple: _Triple, texts: list[str]) -> int:
    """Position of the first folded text that holds both ends of the triple; 0 where none does."""
    head, _, tail = triple
    keys = name_key(head), name_key(tail)
    return next((i for i, text in enumerate(texts) if all(key in text for key in keys)), 0)


def _read(path: Path) -> _Table:
    table = _Table()
    for row in read_rows(path):
        passage = row.identifier("passage_id")
        if passage is None:
            row.fail("expected the field 'passage_id': the id of the document that states the triple")
        table.line.setdefault(passage, row.line)
        head, relation, tail = _triple(row)
        if name_key(head) == name_key(tail):
            table.self_loops += 1
        else:
            table.triples.setdefault(passage, []).append((head, relation, tail))
    if not table.line:
        raise GfmError(
            f'{path}: expected lines such as {{"head": "…", "relation": "…", "tail": "…", "passage_id": "…"}}, '
            "found none"
        )
    return table


def _triple(row: Row) -> _Triple:
    ends = {name: one_line(row.required(name)) for name in ("head", "tail")}
    for name, value in ends.items():
        if not name_key(value):
            row.fail(f"{name!r}: expected a name, found only markup or invisible characters: {value!r}")
    if row.fields.get("relation") is None:
        row.fail("expected the field 'relation' (an empty string where the relation has no name)")
    return ends["head"], one_line(row.optional("relation")), ends["tail"]
