"""Triples from text. `make_extractors` is the one place that knows extractors by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gfm.extract.extraction import Extractor
from gfm.graph.entity_table import EntityTable
from gfm.types import GfmError

if TYPE_CHECKING:
    from gfm.extract.llm import LLMExtractor


def make_extractors(name: str, triples: str | Path | None, document_ids: Collection[str]) -> list[Extractor]:
    """The extractors that a build runs.

    Args:
        name: ``spacy``, ``spacy:PIPELINE``, ``llm``, ``llm:FILE`` (settings of a language model) or ``none``.
        triples: A triples.jsonl; its facts take the place of those of the default extractor ``spacy``, and stand beside
            those of any other.
        document_ids: Ids that ``triples`` may name.

    Raises:
        GfmError: An unknown name, or bad triples.
    """
    kind, _, pipeline = name.partition(":")
    if kind not in {"spacy", "llm", "none"}:
        raise GfmError(
            f"extractor {name!r}: expected spacy, spacy:PIPELINE, llm, llm:FILE or none, as in --extractor spacy"
        )
    out: list[Extractor] = []
    if triples is not None:
        from gfm.extract.given import GivenTriples

        given = GivenTriples(Path(triples))
        given.check(document_ids)
        out.append(given)
    if kind == "spacy" and (triples is None or pipeline):
        from gfm.extract.spacy_facts import DEFAULT_PIPELINE, SpacyExtractor

        out.append(SpacyExtractor(pipeline or DEFAULT_PIPELINE))
    if kind == "llm":
        out.append(llm_extractor(pipeline))
    return out


def llm_extractor(file: str) -> LLMExtractor:
    """The extractor that asks a language model; its settings come from a file, where one is named, and the environment.

    Raises:
        GfmError: Bad settings, or a package is missing.
    """
    from gfm.extract.llm import LLMExtractor
    from gfm.llm.port import LLM
    from gfm.llm.settings import read_settings

    path = Path(file).absolute() if file else None
    return LLMExtractor(LLM(read_settings(path)), f"llm:{path}" if path else "llm")


def known_entities(extractors: Sequence[Extractor], aliases: Iterable[tuple[str, str]] = ()) -> EntityTable:
    """What is known of entities beside the texts: from a given graph, and from aliases, which come first.

    Args:
        extractors: Those of a build; at most one of them is a given graph.
        aliases: (alias, name) pairs that merge.

    Raises:
        GfmError: The aliases lead in a circle.
    """
    from gfm.extract.given import GivenGraph

    tables = [extractor.resolved.table for extractor in extractors if isinstance(extractor, GivenGraph)]
    return (tables[0] if tables else EntityTable()).with_aliases(aliases)


def restore_extractor(name: str, rows: Sequence[str]) -> Extractor:
    """The extractor of an index.

    Args:
        name: Its name in the manifest.
        rows: What the index keeps of a given graph.

    Raises:
        GfmError: It is not one of gfm's own, or it does not load.
    """
    kind, _, pipeline = name.partition(":")
    if kind == "given":
        from gfm.extract.given import GivenGraph

        return GivenGraph.restore(rows)
    if kind == "spacy" and pipeline:
        from gfm.extract.spacy_facts import SpacyExtractor

        return SpacyExtractor(pipeline)
    if kind == "llm":
        return llm_extractor(pipeline)
    raise GfmError(f"extractor {name!r}: expected one of gfm's own, found another; hand it in: extractors=[…]")
