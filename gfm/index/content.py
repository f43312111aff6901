"""Everything that a generation holds, in memory: what a build writes, and what the next one carries over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gfm.graph.occurrences import NOTHING, Occurrences
from gfm.index import store
from gfm.index.lexical import NO_WORDS, Words
from gfm.index.near import NOBODY, Near
from gfm.types import Document, GfmError, Passage, Section

KINDS = ("entity", "fact", "passage")
_DOCUMENT = ("id", "title", "text", "metadata", "sections")
_WORDS = ("bm25_indptr", "bm25_indices", "bm25_count", "name_ptr", "name_token")
_COLUMNS = ("subject", "mention", "fact", "triple", "weight", "description", "self_loop")


@dataclass(frozen=True)
class Content:
    """What an index was made of and what was made of it, but for the graph, which follows from it.

    Attributes:
        documents: Sorted by id.
        passages: Sorted by id.
        given: Rows of a given graph, as JSON; none where all facts come from the texts.
        said: What each passage says.
        names: Display name of each entity of ``said``.
        words: Tokens of each passage.
        near: Nearest other entities of each.
        rows: Unit vectors of each of `KINDS`, float32[·, D].
    """

    documents: Sequence[Document] = ()
    passages: Sequence[Passage] = ()
    given: Sequence[str] = ()
    said: Occurrences = NOTHING
    names: Sequence[str] = ()
    words: Words = NO_WORDS
    near: Near = NOBODY
    rows: Mapping[str, np.ndarray] = field(default_factory=dict)


def metadata_json(document: Document) -> str:
    """The free fields of a document, in the form in which an index keeps them; the same once they were read back."""
    plain = json.loads(json.dumps(document.metadata, default=str)) if document.metadata else {}
    return json.dumps(plain, ensure_ascii=False, sort_keys=True)


def write_content(folder: Path, content: Content, details: Mapping[str, Sequence[str]]) -> None:
    """Write the files of a generation that hold ``content``, and further columns of its entities."""
    documents = content.documents
    store.write_table(
        folder / "documents.parquet",
        {
            "id": [d.id for d in documents],
            "title": [d.title for d in documents],
            "metadata": [metadata_json(d) for d in documents],
            "text": [d.text for d in documents],
            "sections": [json.dumps([astuple(s) for s in d.sections], ensure_ascii=False) for d in documents],
        },
    )
    passages = {name: [getattr(p, name) for p in content.passages] for name in Passage.__slots__}
    store.write_table(folder / "passages.parquet", passages)
    said, words, near = content.said, content.words, content.near
    store.write_table(folder / "entities.parquet", {"key": said.keys, "name": list(content.names), **details})
    store.write_table(folder / "facts.parquet", {"text": said.facts})
    store.write_table(folder / "vocabulary.parquet", {"token": words.vocabulary})
    store.write_table(folder / "spellings.parquet", {"text": said.forms})
    store.write_table(folder / "relations.parquet", {"text": said.relations})
    store.write_table(folder / "remarks.parquet", {"text": said.remarks})
    store.write_table(folder / "given.parquet", {"row": list(content.given)})
    store.write_arrays(
        folder / "occurrences.safetensors",
        {
            **{name: getattr(said, name) for name in _COLUMNS},
            "near_ptr": near.ptr,
            "near_other": near.other,
            "near_cosine": near.cosine,
        },
    )
    store.write_arrays(folder / "vectors.safetensors", content.rows)


def read_documents_of(folder: Path) -> tuple[list[Document], list[Passage], list[str]]:
    """Documents, passages and given rows of a generation whose files were verified.

    Raises:
        GfmError: The generation was written by a version that kept no texts of documents.
    """
    table = store.read_table(folder / "documents.parquet").to_pydict()
    if "sections" not in table:
        raise GfmError(
            f"{folder}: expected an index that keeps the texts of its documents, found one of an earlier version; "
            f"build it again, once: gfm index PATH --out {folder.parent}"
        )
    columns = store.read_table(folder / "passages.parquet").to_pydict()
    passages = [Passage(*row) for row in zip(*(columns[name] for name in Passage.__slots__), strict=True)]
    documents = [
        Document(i, title, text, json.loads(metadata), tuple(Section(*row) for row in json.loads(sections)))
        for i, title, text, metadata, sections in zip(*(table[n] for n in _DOCUMENT), strict=True)
    ]
    return documents, passages, store.read_table(folder / "given.parquet")["row"].to_pylist()


def read_content(folder: Path) -> Content:
    """The content of a generation whose files were verified.

    Raises:
        GfmError: As `read_documents_of`.
    """
    documents, passages, given = read_documents_of(folder)
    arrays = store.map_arrays(folder / "occurrences.safetensors")
    lexical = store.map_arrays(folder / "lexical.safetensors")
    said = Occurrences(
        keys=_texts(folder, "entities", "key"),
        forms=_texts(folder, "spellings", "text"),
        facts=_texts(folder, "facts", "text"),
        relations=_texts(folder, "relations", "text"),
        remarks=_texts(folder, "remarks", "text"),
        **{name: arrays[name] for name in _COLUMNS},
    )
    return Content(
        documents,
        passages,
        given,
        said,
        _texts(folder, "entities", "name"),
        Words(_texts(folder, "vocabulary", "token"), *(lexical[name] for name in _WORDS)),
        Near(*(arrays[f"near_{name}"] for name in ("ptr", "other", "cosine"))),
        store.map_arrays(folder / "vectors.safetensors"),
    )


def _texts(folder: Path, name: str, column: str) -> list[str]:
    values: Any = store.read_table(folder / f"{name}.parquet")[column].to_pylist()
    return list(values)
