"""A graph that somebody has to an index, and an index to a graph that others can read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gfm.exchange import formats
from gfm.exchange.from_index import tables_of
from gfm.exchange.tables import GraphTables, prepare
from gfm.extract import make_extractors
from gfm.index import store
from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import DEFAULT_ENCODER, Encoder


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import read.

    Attributes:
        format: The format that it was in.
        documents: Number of texts, those that were made of the graph among them.
        entities: Number of rows of entities.
        triples: Number of triples, and of sentences without one.
        homonyms: Names that several entities share.
        unnamed: Number of entities that came without a name.
        notes: What was passed over or made.
        index: The index; None where the input was only checked.
    """

    format: str
    documents: int
    entities: int
    triples: int
    homonyms: list[str]
    unnamed: int
    notes: list[str]
    index: GraphIndex | None


def import_graph(
    source: str | Path,
    path: str | Path | None,
    format_name: str | None = None,
    *,
    encoder: str | Encoder = DEFAULT_ENCODER,
    extractor: str = "none",
    aliases: str | Path | None = None,
    settings: BuildSettings | None = None,
    cache: str | Path | None = None,
) -> Imported:
    """Build an index of a graph that somebody has, in any of `formats.NAMES`.

    Args:
        source: A file or folder.
        path: Folder of the index; None only checks the input.
        format_name: The format; detected unless given.
        encoder: An encoder or its name.
        extractor: What finds more facts in the texts: ``none``, ``spacy`` or ``spacy:PIPELINE``.
        aliases: A table of other names, as for `GraphIndex.build`.
        settings: See `BuildSettings`.
        cache: The cache file, to share one among indexes.

    Raises:
        GfmError: Bad input, by file and line; nothing is changed at ``path`` then.
    """
    source = Path(source)
    name = format_name or formats.detect(source)
    tables = formats.read(source, name)
    documents, graph = prepare(tables)
    extractors = [graph, *make_extractors(extractor, None, ())]
    index = None
    if path is not None:
        index = GraphIndex.build_from(documents, extractors, path, encoder, aliases, settings, cache)
    resolved = graph.resolved
    return Imported(
        name,
        len(documents),
        len(resolved.entities),
        len(resolved.triples),
        resolved.homonyms,
        resolved.unnamed,
        tables.notes,
        index,
    )


def export_graph(source: str | Path, folder: str | Path, format_name: str) -> list[str]:
    """Write an index, or a graph in any format, as a folder in another format.

    Args:
        source: Folder of an index; or a file or folder that `import_graph` reads.
        folder: A new folder.
        format_name: One of `formats.NAMES`.

    Returns:
        What the format has no place for.

    Raises:
        GfmError: Bad input, or a folder that holds something.
    """
    source = Path(source)
    if store.GENERATION.fullmatch(store.current(source)):
        tables: GraphTables = tables_of(GraphIndex.open(source), format_name in formats.WHOLE_DOCUMENTS)
    else:
        tables = formats.read(source)
    return tables.notes + formats.write(tables, Path(folder), format_name)
