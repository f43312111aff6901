"""Everything that a generation holds, in memory: what a build writes, and what the next one carries over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

from gfm.graph.knowledge_graph import KnowledgeGraph
from gfm.graph.occurrences import NOTHING, Occurrences
from gfm.index import store
from gfm.index.lexical import NO_WORDS, WORDS, Words
from gfm.index.near import NOBODY, Near
from gfm.index.spliced import Spliced
from gfm.memory import without_collector
from gfm.types import Document, GfmError, Passage, Section

KINDS = ("entity", "fact", "passage")
_DOCUMENT = ("id", "title", "text", "metadata", "sections")
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
    rows: Mapping[str, Spliced] = field(default_factory=dict)


def metadata_json(document: Document) -> str:
    """The free fields of a document, in the form in which an index keeps them; the same once they were read back."""
    if not document.metadata:
        return "{}"
    plain = json.loads(json.dumps(document.metadata, default=str))
    return json.dumps(plain, ensure_ascii=False, sort_keys=True)


def _sections_json(document: Document) -> str:
    return json.dumps([astuple(s) for s in document.sections], ensure_ascii=False) if document.sections else "[]"


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
            "sections": [_sections_json(d) for d in documents],
        },
    )
    passages = {name: [getattr(p, name) for p in content.passages] for name in Passage.__slots__}
    store.write_table(folder / "passages.parquet", passages)
    said, words, near = content.said, content.words, content.near
    store.write_table(folder / "entities.parquet", {"key": said.keys, "name": list(content.names), **details})
    store.write_table(folder / "facts.parquet", {"text": said.facts})
    store.write_table(folder / "vocabulary.parquet", {"token": words.vocabulary})
    texts = {"form": said.forms, "relation": said.relations, "remark": said.remarks, "given": content.given}
    kinds = [kind for kind, found in texts.items() for _ in found]
    store.write_table(folder / "texts.parquet", {"kind": kinds, "text": [t for found in texts.values() for t in found]})
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


def read_documents_of(folder: Path) -> tuple[list[Document], list[Passage]]:
    """Documents and passages of a generation whose files were verified.

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
        Document(
            *(i, title, text),
            {} if metadata == "{}" else json.loads(metadata),
            () if sections == "[]" else tuple(Section(*row) for row in json.loads(sections)),
        )
        for i, title, text, metadata, sections in zip(*(table[n] for n in _DOCUMENT), strict=True)
    ]
    return documents, passages


@without_collector()
def read_content(folder: Path) -> Content:
    """The content of a generation whose files were verified.

    Raises:
        GfmError: As `read_documents_of`.
    """
    documents, passages = read_documents_of(folder)
    texts: dict[str, list[str]] = defaultdict(list)
    for kind, text in zip(_texts(folder, "texts", "kind"), _texts(folder, "texts", "text"), strict=True):
        texts[kind].append(text)
    arrays = store.map_arrays(folder / "occurrences.safetensors")
    lexical = store.map_arrays(folder / "lexical.safetensors")
    said = Occurrences(
        keys=_texts(folder, "entities", "key"),
        forms=texts["form"],
        facts=_texts(folder, "facts", "text"),
        relations=texts["relation"],
        remarks=texts["remark"],
        **{name: arrays[name] for name in _COLUMNS},
    )
    return Content(
        documents,
        passages,
        texts["given"],
        said,
        _texts(folder, "entities", "name"),
        Words(_texts(folder, "vocabulary", "token"), *(lexical[name] for name in WORDS)),
        Near(*(arrays[f"near_{name}"] for name in ("ptr", "other", "cosine"))),
        {kind: Spliced.of(rows) for kind, rows in store.map_arrays(folder / "vectors.safetensors").items()},
    )


def read_graph(path: Path, counts: dict[str, int]) -> KnowledgeGraph:
    """The graph of a file.

    Raises:
        GfmError: Its arrays do not agree with the manifest's ``counts``.
    """
    arrays = store.map_arrays(path)
    names = {f.name for f in fields(KnowledgeGraph) if not f.name.startswith("num_")}
    if set(arrays) != names:
        raise GfmError(f"{path}: expected the arrays {sorted(names)}, found {sorted(arrays)}; build the index again")
    n, f, t, p, e = (counts[name] for name in ("entities", "facts", "triples", "passages", "edges"))
    expected = {"node_ptr": (n + p + 1,), "fact_triple_ptr": (f + 1,), "triple_head": (t,), "edge_index": (2, e)}
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise GfmError(
                f"{path}: expected {name} of shape {shape} by the manifest, found {arrays[name].shape}; "
                "build the index again"
            )
    sizes: dict[str, Any] = {"num_entities": n, "num_facts": f, "num_triples": t, "num_passages": p}
    return KnowledgeGraph(**{**sizes, **arrays})


def _texts(folder: Path, name: str, column: str) -> list[str]:
    values: Any = store.read_table(folder / f"{name}.parquet")[column].to_pylist()
    return list(values)
