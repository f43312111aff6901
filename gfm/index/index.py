"""An index opened for reading: graph, vectors, lexical statistics and the texts, memory-mapped, of one generation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gfm.graph.knowledge_graph import SUBJECT, KnowledgeGraph
from gfm.index import store
from gfm.index.builder import BuildSettings, build_index
from gfm.index.documents import read_documents
from gfm.index.lexical import Lexical
from gfm.index.vectors import Vectors, read_hnsw
from gfm.text.encoder import DEFAULT_ENCODER, Encoder, Fingerprint, load_encoder
from gfm.types import Entity, GfmError, Passage, Triple


class GraphIndex:
    """A read-only index.

    Attributes:
        path: Its folder.
        manifest: Counts, checksums, encoder, settings.
        graph: The `KnowledgeGraph`.
        entity_vectors: `Vectors` of entity names, N rows.
        fact_vectors: `Vectors` of facts, F rows.
        passage_vectors: `Vectors` of passages, P rows.
        lexical: BM25 and name tokens.
    """

    def __init__(self, path: Path, encoder: Encoder | None = None):
        self.path = path
        folder, self.manifest = store.open_generation(path)
        self._folder = folder
        self.generation = folder.name
        counts = self.manifest["counts"]
        sizes = {f"num_{n}": counts[n] for n in ("entities", "facts", "triples", "passages")}
        self.graph = KnowledgeGraph(**sizes, **store.map_arrays(folder / "graph.safetensors"))
        rows = store.map_arrays(folder / "vectors.safetensors")
        self.entity_vectors, self.fact_vectors, self.passage_vectors = (
            self._vectors(name, rows[name]) for name in ("entity", "fact", "passage")
        )
        tokens = store.read_table(folder / "vocabulary.parquet")["token"].to_pylist()
        self.lexical = Lexical(
            {t: i for i, t in enumerate(tokens)}, store.map_arrays(folder / "lexical.safetensors"), counts["passages"]
        )
        self.fingerprint = Fingerprint.from_json(self.manifest["encoder"])
        self._encoder = encoder
        if encoder is not None:
            self._check(encoder)

    @classmethod
    def open(cls, path: str | Path, encoder: Encoder | None = None) -> GraphIndex:
        """Open the index in the folder ``path``.

        Args:
            path: The folder.
            encoder: For queries; loaded by the name in the manifest on first use unless given.

        Raises:
            GfmError: No index, a damaged one, or another encoder than the index was built with.
        """
        return cls(Path(path), encoder)

    @classmethod
    def build(
        cls,
        corpus: str | Path,
        path: str | Path,
        *,
        encoder: str | Encoder = DEFAULT_ENCODER,
        extractor: str = "spacy",
        triples: str | Path | None = None,
        settings: BuildSettings | None = None,
        cache: str | Path | None = None,
    ) -> GraphIndex:
        """Build an index of a corpus and open it.

        Args:
            corpus: A BEIR corpus.jsonl, a folder with one, or a folder of text files.
            path: Folder of the index.
            encoder: An encoder or its name, see `load_encoder`.
            extractor: ``spacy``, ``spacy:PIPELINE``, or ``none`` (titles and given triples only).
            triples: A triples.jsonl of given triples; used instead of ``extractor`` where that is left at its default.
            settings: See `BuildSettings`.
            cache: The cache file, to share one among indexes.

        Raises:
            GfmError: Bad input; nothing is changed at ``path`` then.
        """
        from gfm.extract import make_extractors

        found = read_documents(Path(corpus))
        extractors = make_extractors(extractor, triples, {d.id for d in found.documents})
        encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        seconds = build_index(
            found.documents, Path(path), encoder, extractors, settings, Path(cache) if cache else None
        )
        index = cls(Path(path), encoder)
        index.build_seconds = seconds
        index.skipped = found.skipped
        return index

    build_seconds: dict[str, float] = {}
    skipped: Sequence[tuple[str, str]] = ()

    def _vectors(self, name: str, rows: np.ndarray) -> Vectors:
        path = self._folder / f"{name}.hnsw"
        return Vectors(rows, read_hnsw(path, rows) if self.manifest["search"][name] == "hnsw" else None)

    def _check(self, encoder: Encoder) -> None:
        if not self.fingerprint.matches(encoder.fingerprint):
            a, b = self.fingerprint, encoder.fingerprint
            raise GfmError(
                f"{self.path}: the index was built with encoder {a.name!r} ({a.dim} dimensions, weights {a.revision[:8]}…), "
                f"the query encoder is {b.name!r} ({b.dim} dimensions, weights {b.revision[:8]}…). Use the index's encoder, "
                f"or build the index again: gfm index PATH --out {self.path} --encoder {b.name}"
            )

    @property
    def encoder(self) -> Encoder:
        """The query encoder, whose fingerprint is the index's."""
        if self._encoder is None:
            encoder = load_encoder(self.fingerprint.name)
            self._check(encoder)
            self._encoder = encoder
        return self._encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Query vectors, float32[len(texts), D], unit norm."""
        return self.encoder.encode(texts, is_query=True)

    @cached_property
    def passage_ids(self) -> list[str]:
        """Passage ids in order; sorted, so that node order is id order."""
        return list(self._passages["id"])

    @cached_property
    def document_ids(self) -> list[str]:
        """Document id of each passage."""
        return list(self._passages["document_id"])

    @cached_property
    def _passages(self) -> dict[str, list[Any]]:
        return self._columns("passages")

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        return self._columns("entities")

    @cached_property
    def fact_texts(self) -> list[str]:
        """Text of each fact."""
        return self._columns("facts")["text"]

    @cached_property
    def _relations(self) -> list[str]:
        return self._columns("triples")["relation"]

    def _columns(self, name: str) -> dict[str, list[Any]]:
        table = store.read_table(self._folder / f"{name}.parquet")
        return {c: table[c].to_pylist() for c in table.column_names}

    def passage(self, number: int) -> Passage:
        """Passage by number, 0 … P-1."""
        return Passage(**{name: column[number] for name, column in self._passages.items()})

    def entity(self, number: int) -> Entity:
        """Entity by number, 0 … N-1."""
        return Entity(self._names["key"][number], self._names["name"][number])

    def entity_key(self, number: int) -> str:
        """Key of an entity by number."""
        return str(self._names["key"][number])

    @cached_property
    def subjects(self) -> np.ndarray:
        """Entity that each passage is about, int64[P], -1 where it has no title."""
        graph = self.graph
        out = np.full(graph.num_passages, -1, dtype=np.int64)
        edges = np.flatnonzero(graph.edge_kind == SUBJECT)
        out[graph.edge_index[0, edges] - graph.num_entities] = graph.edge_index[1, edges]
        return out

    def triple(self, number: int) -> Triple:
        """Triple by number, 0 … T-1, with the fact's text and sources."""
        graph = self.graph
        fact = int(graph.triple_fact[number])
        sources = graph.fact_passage[graph.fact_passage_ptr[fact] : graph.fact_passage_ptr[fact + 1]]
        names = self._names["name"]
        return Triple(
            names[graph.triple_head[number]],
            self._relations[number],
            names[graph.triple_tail[number]],
            self.fact_texts[fact],
            float(graph.triple_weight[number]),
            tuple(self.passage_ids[p] for p in sources),
        )
