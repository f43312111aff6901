"""What an index is made with: it stands in the manifest, so that what is added later is made the same way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gfm.extract import known_entities, restore_extractor
from gfm.extract.extraction import CostlyExtractor, Extraction, Extractor
from gfm.graph.assemble import RULES
from gfm.graph.entity_table import EntityTable
from gfm.text.encoder import Encoder, Fingerprint, load_encoder
from gfm.types import GfmError, Passage


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What a build depends on besides documents, encoder and extractor.

    Attributes:
        chunk_tokens: Most tokens of a passage.
        chunk_overlap: Tokens shared by neighbouring passages of one document.
        synonym_cosine: Least cosine of two names for a synonym edge.
        synonym_neighbours: Nearest names looked at for each name.
    """

    chunk_tokens: int = 256
    chunk_overlap: int = 0
    synonym_cosine: float = 0.8
    synonym_neighbours: int = 8


_ALIAS = "alias"


@dataclass(frozen=True)
class Recipe:
    """Encoder, extractors (whose facts are united), settings, and what is known of entities beside the texts.

    The table stands for what the extractors know, too, and is made of that unless given.
    """

    encoder: Encoder
    extractors: Sequence[Extractor]
    settings: BuildSettings
    known: EntityTable | None = None

    @cached_property
    def table(self) -> EntityTable:
        """What is known of entities."""
        return known_entities(self.extractors) if self.known is None else self.known

    @cached_property
    def aliases(self) -> list[tuple[str, str]]:
        """(alias, name) pairs of the table that no extractor knows."""
        own = known_entities(self.extractors).aliases
        return [(a.form, name) for key, a in self.table.aliases.items() if own.get(key) != a for name in a.names]

    @property
    def rows(self) -> list[str]:
        """What is given beside the texts, one JSON list a row: what `of_index` reads back."""
        rows = [row for extractor in self.extractors for row in extractor.rows]
        return rows + [json.dumps([_ALIAS, *pair]) for pair in self.aliases]

    def with_extractors(self, extractors: Sequence[Extractor]) -> Recipe:
        """The same aliases, encoder and settings with other extractors."""
        return Recipe(self.encoder, extractors, self.settings, known_entities(extractors, self.aliases))

    def as_json(self) -> dict[str, Any]:
        """The entries of the manifest."""
        return {
            "encoder": self.encoder.fingerprint.as_json(),
            "extractors": [e.settings for e in self.extractors],
            "extractor_names": [e.name for e in self.extractors],
            "settings": asdict(self.settings),
            "rules": RULES,
            "aliases": hashlib.sha256(json.dumps(self.aliases).encode()).hexdigest() if self.aliases else "",
        }

    @classmethod
    def of_index(
        cls,
        path: Path,
        manifest: dict[str, Any],
        given: Sequence[str],
        encoder: Encoder | None = None,
        extractors: Sequence[Extractor] | None = None,
    ) -> Recipe:
        """How the index at ``path`` was made; models are loaded when they are first asked for something.

        Args:
            path: Folder of the index, for messages.
            manifest: Of its generation.
            given: Its rows of a given graph and its aliases, see `rows`.
            encoder: To be used, instead of one loaded by its name.
            extractors: To be used, instead of those made by their names.

        Raises:
            GfmError: Encoder or extractors are not those of the index.
        """
        fingerprint = Fingerprint.from_json(manifest["encoder"])
        if encoder is not None:
            check_encoder(path, fingerprint, encoder)
        if "extractor_names" not in manifest:
            raise GfmError(
                f"{path}: expected an index that knows how it was made, found one of an earlier version; build it "
                f"again, once: gfm index PATH --out {path}"
            )
        names, settings = manifest["extractor_names"], manifest["extractors"]
        pairs = [tuple(pair) for kind, *pair in map(json.loads, given) if kind == _ALIAS]
        rows = [row for row in given if json.loads(row)[0] != _ALIAS]
        if extractors is None:
            extractors = [
                restore_extractor(name, rows) if name == "given" else _known_extractor(path, name, known)
                for name, known in zip(names, settings, strict=True)
            ]
        found = [e.settings for e in extractors]
        if found != settings:
            raise _other_extractor(path, settings, found)
        encoder = encoder or _KnownEncoder(path, fingerprint)
        table = known_entities(extractors, [(form, name) for form, name in pairs])
        return cls(encoder, extractors, BuildSettings(**manifest["settings"]), table)


def check_encoder(path: Path, known: Fingerprint, encoder: Encoder) -> None:
    """Prove that an encoder is the one of an index.

    Raises:
        GfmError: It is another.
    """
    a, b = known, encoder.fingerprint
    if not a.matches(b):
        raise GfmError(
            f"{path}: the index was built with encoder {a.name!r} ({a.dim} dimensions, weights "
            f"{a.revision[:8]}…), the query encoder is {b.name!r} ({b.dim} dimensions, weights {b.revision[:8]}…). "
            "Use the index's encoder, or build the index again: "
            f"gfm index PATH --out {path} --encoder {b.name}"
        )


def _other_extractor(path: Path, known: Sequence[str], found: Sequence[str]) -> GfmError:
    return GfmError(
        f"{path}: the index was built with the extractors {', '.join(known) or 'none'}, found "
        f"{', '.join(found) or 'none'}; use the same, or build the index again: gfm index PATH --out {path}"
    )


class _KnownEncoder:
    """The encoder of an index, loaded when it is first asked for something."""

    def __init__(self, path: Path, fingerprint: Fingerprint):
        self._path = path
        self.fingerprint = fingerprint

    @cached_property
    def _loaded(self) -> Encoder:
        encoder = load_encoder(self.fingerprint.name)
        check_encoder(self._path, self.fingerprint, encoder)
        return encoder

    @property
    def max_tokens(self) -> int:
        """Most tokens of a text."""
        return self._loaded.max_tokens

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        """Unit vectors, float32, (len(texts), dim)."""
        return self._loaded.encode(texts, is_query=is_query, progress=progress)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text``."""
        return self._loaded.count_tokens(text)


class _KnownExtractor:
    """An extractor of an index, made when it first has a text to read."""

    cached = True
    rows: Sequence[str] = ()

    def __init__(self, path: Path, name: str, settings: str):
        self._path, self.name, self.settings = path, name, settings

    @cached_property
    def made(self) -> Extractor:
        """The extractor itself."""
        made = restore_extractor(self.name, ())
        if made.settings != self.settings:
            raise _other_extractor(self._path, [self.settings], [made.settings])
        return made

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage, in order."""
        return self.made.extract(passages, progress)


class _KnownCostlyExtractor(_KnownExtractor):
    """One that asks a language model."""

    def extract_each(self, passages: Sequence[Passage], progress: str = "") -> Iterator[tuple[int, Extraction]]:
        """Extractions with the number of their passage, in the order in which they come."""
        made = self.made
        assert isinstance(made, CostlyExtractor)
        yield from made.extract_each(passages, progress)


def _known_extractor(path: Path, name: str, settings: str) -> Extractor:
    kind = _KnownCostlyExtractor if name.partition(":")[0] == "llm" else _KnownExtractor
    return kind(path, name, settings)
