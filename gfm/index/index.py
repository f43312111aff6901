"""An index opened for reading: graph, vectors, lexical statistics and the texts, memory-mapped, of one generation."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gfm.extract.extraction import Extractor
from gfm.graph.knowledge_graph import SUBJECT
from gfm.index import store
from gfm.index.account import Account
from gfm.index.builder import build_index
from gfm.index.content import read_graph
from gfm.index.documents import Corpus, read_documents
from gfm.index.lexical import Lexical
from gfm.index.living import Change, change_corpora
from gfm.index.recipe import BuildSettings, check_encoder
from gfm.index.tables import Tables
from gfm.index.vectors import Vectors, read_hnsw
from gfm.text.encoder import DEFAULT_ENCODER, Encoder, Fingerprint, load_encoder
from gfm.types import Document, Entity, GfmError, Passage, Triple


class GraphIndex:
    """A read-only index. It stays readable while a writer replaces the generation that it opened.

    Attributes:
        path: Its folder.
        generation: Name of the generation that was opened.
        manifest: Counts, checksums, encoder, settings.
        graph: The `KnowledgeGraph`.
        entity_vectors: `Vectors` of entity names, N rows.
        fact_vectors: `Vectors` of facts, F rows.
        passage_vectors: `Vectors` of passages, P rows.
        lexical: BM25 and name tokens.
        fingerprint: Identity of the encoder that it was built with.
        build_seconds: Seconds by stage of making it.
        account: What became of every file that was read in making it.
        change: What `add`, `update` or `delete` did, where one of them made it.
    """

    def __init__(self, path: Path, encoder: Encoder | None = None):
        self._start(path, encoder)
        store.steady(path, self._load)
        if encoder is not None:
            check_encoder(self.path, self.fingerprint, encoder)

    def _start(self, path: Path, encoder: Encoder | None) -> None:
        self.path = path
        self.build_seconds: dict[str, float] = {}
        self.account = Account(())
        self.change: Change | None = None
        self._encoder = encoder
        self.parts: dict[str, GraphIndex] = {}  # see `gfm.index.part.where`

    def _load(self) -> None:
        """Open every file, so that none is looked for by name later."""
        folder, self.manifest = store.open_generation(self.path)
        self.generation = folder.name
        try:
            self._open(folder)
        except KeyError as error:  # all checksums fit, so the file was written that way
            raise GfmError(f"{folder}: expected an index with {error}, found none; build the index again") from error

    def _open(self, folder: Path) -> None:
        self.fingerprint = Fingerprint.from_json(self.manifest["encoder"])
        self.graph = read_graph(folder / "graph.safetensors", self.manifest["counts"])
        rows = store.map_arrays(folder / "vectors.safetensors")
        self.entity_vectors, self.fact_vectors, self.passage_vectors = (
            self._vectors(folder, kind, rows[kind], count)
            for kind, count in (
                ("entity", self.graph.num_entities),
                ("fact", self.graph.num_facts),
                ("passage", self.graph.num_passages),
            )
        )
        vocabulary = store.read_table(folder / "vocabulary.parquet")["token"].to_pylist()
        self.lexical = Lexical(
            {token: i for i, token in enumerate(vocabulary)},
            store.map_arrays(folder / "lexical.safetensors"),
            self.graph.num_passages,
        )
        self._tables = Tables(folder)
        # An earlier version kept neither.
        self._details = [name for name in ("type", "description") if self._tables.has("entities", name)]

    @classmethod
    def open(cls, path: str | Path, encoder: str | Encoder | None = None) -> GraphIndex:
        """Open the index in the folder ``path``.

        Args:
            path: The folder.
            encoder: For queries, or its name; loaded by the name in the manifest on first use unless given.

        Raises:
            GfmError: No index, a damaged one, or another encoder than the index was built with.
        """
        encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        return cls(Path(path), encoder)

    @classmethod
    def build(
        cls,
        corpus: str | Path | Sequence[Document],
        path: str | Path,
        *,
        encoder: str | Encoder = DEFAULT_ENCODER,
        extractor: str = "spacy",
        triples: str | Path | None = None,
        aliases: str | Path | None = None,
        settings: BuildSettings | None = None,
        cache: str | Path | None = None,
        encoding: str | None = None,
    ) -> GraphIndex:
        """Build an index of a corpus and open it.

        Args:
            corpus: A file or a folder, see `read_documents`, or documents.
            path: Folder of the index.
            encoder: An encoder or its name, see `load_encoder`.
            extractor: ``spacy``, ``spacy:PIPELINE``, or ``none`` (titles and given triples only).
            triples: A triples.jsonl of given triples; used instead of ``extractor`` where that is left at its default.
            aliases: A table of other names, JSONL or CSV with ``alias`` and ``name``; building without it undoes them.
            settings: See `BuildSettings`.
            cache: The cache file, to share one among indexes.
            encoding: Of all text files of the corpus; found for each by itself unless given.

        Raises:
            NothingToIndexError: No file of the folder gave a document.
            GfmError: Bad input; nothing is changed at ``path`` in either case.
        """
        from gfm.extract import make_extractors

        if isinstance(corpus, str | Path):
            found = read_documents(corpus, encoding)
        else:
            found = Corpus(list(corpus), Account(()))
        extractors = make_extractors(extractor, triples, {d.id for d in found.documents})
        index = cls.build_from(found.documents, extractors, path, encoder, aliases, settings, cache)
        index.account = found.account
        return index

    @classmethod
    def build_from(
        cls,
        documents: Sequence[Document],
        extractors: Sequence[Extractor],
        path: str | Path,
        encoder: str | Encoder = DEFAULT_ENCODER,
        aliases: str | Path | None = None,
        settings: BuildSettings | None = None,
        cache: str | Path | None = None,
    ) -> GraphIndex:
        """As `build`, of documents that were read already and with extractors that were made already.

        Raises:
            GfmError: Bad input; nothing is changed at ``path`` then.
        """
        from gfm.extract import known_entities
        from gfm.extract.rows import read_aliases

        table = known_entities(extractors, read_aliases(Path(aliases)) if aliases else ())
        encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        seconds = build_index(
            documents, Path(path), encoder, extractors, settings, Path(cache) if cache else None, table
        )
        index = cls(Path(path), encoder)
        index.build_seconds = seconds
        return index

    def add(
        self,
        *corpora: str | Path | Sequence[Document],
        triples: str | Path | None = None,
        cache: str | Path | None = None,
    ) -> GraphIndex:
        """Add documents to the index in this folder, as it is now, and open what comes of it.

        Args:
            corpora: As for `build`, or documents. Those that the index has already, unchanged, are passed over.
            triples: Given triples of them, where the index was built with such.
            cache: The cache file, where the index was built with one of its own.

        Returns:
            The new index; its ``change`` tells what was done. This one stays as it is.

        Raises:
            GfmError: Bad input, or an id stands for another content already; the index stands as it was then.
        """
        return self._changed(corpora, only_new=True, triples=triples, cache=cache)

    def update(
        self,
        *corpora: str | Path | Sequence[Document],
        triples: str | Path | None = None,
        cache: str | Path | None = None,
        delete_missing: bool = False,
    ) -> GraphIndex:
        """Add documents, or put them in the place of those of the same ids; see `add`.

        Args:
            corpora: As for `add`.
            triples: As for `add`.
            cache: As for `add`.
            delete_missing: Delete all documents that the corpora do not have; a file that could not be read stays.
        """
        return self._changed(corpora, delete_missing=delete_missing, triples=triples, cache=cache)

    def delete(self, *ids: str, cache: str | Path | None = None) -> GraphIndex:
        """Delete documents by id, and with them whatever no other document supports; see `add`."""
        return self._changed((), ids, cache=cache)

    def _changed(self, *changes: Any, **options: Any) -> GraphIndex:
        """What `change_corpora` makes of the index, opened."""
        change = change_corpora(self.path, *changes, encoder=self._encoder, **options)
        index = GraphIndex(self.path, self._encoder)
        index.change, index.build_seconds, index.account = change, change.seconds, change.account
        return index

    def _vectors(self, folder: Path, kind: str, rows: np.ndarray, count: int) -> Vectors:
        if rows.shape != (count, self.fingerprint.dim):
            raise GfmError(
                f"{folder / 'vectors.safetensors'}: expected {kind} vectors of shape {(count, self.fingerprint.dim)}, "
                f"found {rows.shape}; build the index again"
            )
        approximate = self.manifest["search"][kind] == "hnsw"
        return Vectors(rows, read_hnsw(folder / f"{kind}.hnsw", rows) if approximate else None)

    @property
    def encoder(self) -> Encoder:
        """The query encoder, whose fingerprint is the index's."""
        if self._encoder is None:
            encoder = load_encoder(self.fingerprint.name)
            check_encoder(self.path, self.fingerprint, encoder)
            self._encoder = encoder
        return self._encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Query vectors, float32[len(texts), D], unit norm."""
        return self.encoder.encode(texts, is_query=True)

    @cached_property
    def passage_ids(self) -> list[str]:
        """Passage ids in order; sorted, so that node order is id order."""
        return self._tables.whole("passages", "id")

    @cached_property
    def document_ids(self) -> list[str]:
        """Document id of each passage."""
        return self._tables.whole("passages", "document_id")

    @cached_property
    def document_metadata(self) -> dict[str, dict[str, Any]]:
        """Free fields of each document, by its id; what JSON cannot hold is stored as a string."""
        ids, fields_ = self._tables.whole("documents", "id"), self._tables.whole("documents", "metadata")
        return {document: json.loads(text) for document, text in zip(ids, fields_, strict=True)}

    @cached_property
    def entity_keys(self) -> list[str]:
        """Key of each entity; sorted, so that entities are numbered in the order of their keys."""
        return self._tables.whole("entities", "key")

    @cached_property
    def fact_texts(self) -> list[str]:
        """Text of each fact."""
        return self._tables.whole("facts", "text")

    def passages(self, numbers: np.ndarray) -> list[Passage]:
        """Passages by number, 0 … P-1."""
        columns = [self._tables.values("passages", name, numbers) for name in Passage.__slots__]
        return [Passage(*row) for row in zip(*columns, strict=True)]

    def table(self, name: str, *columns: str) -> list[list[Any]]:
        """Whole columns of a table, for export.

        Raises:
            GfmError: The index was built by a version that kept no such column.
        """
        if missing := [column for column in columns if not self._tables.has(name, column)]:
            raise GfmError(
                f"{self.path}: expected an index with {', '.join(missing)} of its {name}, found one of an earlier "
                "version; build it again"
            )
        return [self._tables.whole(name, column) for column in columns]

    def passage(self, number: int) -> Passage:
        """Passage by number, 0 … P-1."""
        return self.passages(np.array([number]))[0]

    def entities(self, numbers: np.ndarray) -> list[Entity]:
        """Entities by number, 0 … N-1."""
        columns = [self._tables.values("entities", name, numbers) for name in ("key", "name", *self._details)]
        return [Entity(*row) for row in zip(*columns, strict=True)]

    def entity(self, number: int) -> Entity:
        """Entity by number, 0 … N-1."""
        return self.entities(np.array([number]))[0]

    def entity_key(self, number: int) -> str:
        """Key of an entity by number."""
        return self.entity(number).key

    def entity_number(self, key: str) -> int | None:
        """Number of the entity with a key; None where there is none."""
        number = bisect_left(self.entity_keys, key)
        return number if number < len(self.entity_keys) and self.entity_keys[number] == key else None

    @cached_property
    def subjects(self) -> np.ndarray:
        """Entity that each passage is about, int64[P], -1 where it has no title."""
        graph = self.graph
        out = np.full(graph.num_passages, -1, dtype=np.int64)
        edges = np.flatnonzero(graph.edge_kind == SUBJECT)
        out[graph.edge_index[0, edges] - graph.num_entities] = graph.edge_index[1, edges]
        return out

    def triples(self, numbers: np.ndarray) -> list[Triple]:
        """Triples by number, 0 … T-1, each with its fact's text and sources."""
        graph = self.graph
        relations = self._tables.values("triples", "relation", numbers)
        facts = graph.triple_fact[numbers]
        heads, tails = (
            self._tables.values("entities", "name", ends[numbers]) for ends in (graph.triple_head, graph.triple_tail)
        )
        texts, weights = self._tables.values("facts", "text", facts), graph.triple_weight[numbers].tolist()
        ids, start, end = self.passage_ids, graph.fact_passage_ptr[facts], graph.fact_passage_ptr[facts + 1]
        sources = (tuple(ids[p] for p in graph.fact_passage[a:b]) for a, b in zip(start, end, strict=True))
        return [Triple(*row) for row in zip(heads, relations, tails, texts, weights, sources, strict=True)]

    def triple(self, number: int) -> Triple:
        """Triple by number, 0 … T-1, with the fact's text and sources."""
        return self.triples(np.array([number]))[0]
