"""Whether an index is whole: checksums, counts, numbers that lead nowhere, lengths of vectors, and a fresh build."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from gfm.extract.extraction import CostlyExtractor
from gfm.graph.knowledge_graph import MIRROR, SYNONYM, KnowledgeGraph, hubs, pointers
from gfm.graph.parts import count_self_loops
from gfm.index import store
from gfm.index.builder import CACHE, Laps, open_cache, replace, split_all
from gfm.index.content import KINDS, Content, read_content
from gfm.index.index import GraphIndex
from gfm.index.recipe import Recipe
from gfm.types import Document, Passage, Section

_OFF = 1e-3  # by how much the length of a unit vector may miss 1


def verify_index(path: Path, rebuild: bool = False, cache_path: Path | None = None) -> dict[str, list[str]]:
    """Check an index. It is only read, but for texts that its cache lacks; a writer is not kept waiting.

    Args:
        path: Its folder.
        rebuild: Also make a fresh generation of its documents, elsewhere, and compare every byte.
        cache_path: The cache for that, where it is not the index's own.

    Returns:
        What is wrong, by check; every list is empty for an index that is whole.

    Raises:
        GfmError: There is no index, a file of it is missing, cut off or altered, or it keeps no documents.
    """
    index, content = store.steady(path, lambda: _read(path))
    found = {
        "checksums": list[str](),  # what does not fit was raised above
        "counts": list(_counts(index, content)),
        "documents": list(_documents(content)),
        "graph": list(_graph(index.graph)),
        "occurrences": list(_occurrences(content)),
        "vectors": list(_vectors(content)),
    }
    if rebuild:
        found["fresh build"] = list(_fresh_build(index, content, cache_path))
    return found


def _read(path: Path) -> tuple[GraphIndex, Content]:
    index = GraphIndex.open(path)
    return index, read_content(path / index.generation)


def _counts(index: GraphIndex, content: Content) -> Iterator[str]:
    """The manifest's counts against what is there."""
    graph, said = index.graph, content.said
    there = {
        "documents": len(content.documents),
        "passages": len(content.passages),
        "entities": len(said.keys),
        "facts": len(said.facts),
        "triples": graph.num_triples,
        "mentions": len(np.unique(said.mention[:, :2], axis=0)),
        "synonyms": int((graph.edge_kind == SYNONYM).sum()) // 2,
        "edges": graph.num_edges,
        "hubs": len(hubs(graph)),
        "self_loops": count_self_loops(said),
    }
    counts = index.manifest["counts"]
    for name in sorted({*there, *counts}):
        if there.get(name) != counts.get(name):
            yield f"{name}: expected {counts.get(name)} by the manifest, found {there.get(name)}"
    if graph.num_edges != 2 * (graph.num_triples + there["synonyms"] + there["mentions"]):
        yield f"edges: expected two for each triple, synonym and mention, found {graph.num_edges}"


def _documents(content: Content) -> Iterator[str]:
    """Every passage is a piece of a document, and every document has one."""
    known = {d.id: d for d in content.documents}
    for name, ids in (("document", [d.id for d in content.documents]), ("passage", [p.id for p in content.passages])):
        yield from (f"{name} {b!r}: expected ids in order, each once" for a, b in pairwise(ids) if a >= b)
    for passage in content.passages:
        document = known.get(passage.document_id)
        if document is None:
            yield f"passage {passage.id!r}: its document {passage.document_id!r} does not exist"
        elif not _is_piece(passage, document):
            yield f"passage {passage.id!r}: its title and text are not those of its document"
    bare = known.keys() - {p.document_id for p in content.passages}
    yield from (f"document {identifier!r}: it has no passage" for identifier in sorted(bare))


def _is_piece(passage: Passage, document: Document) -> bool:
    """Whether a passage is the span of the document that it says it is, under the title of its section."""
    sections = document.sections or (Section(document.title, 0, len(document.text)),)
    return (
        document.text[passage.start : passage.end] == passage.text
        and passage.end - passage.start == len(passage.text)
        and any(s.title == passage.title and s.start <= passage.start and passage.end <= s.end for s in sections)
    )


def _graph(graph: KnowledgeGraph) -> Iterator[str]:
    """Every number of the graph leads somewhere, and every edge stands there in both directions."""
    n, f, p, t, e = graph.num_entities, graph.num_facts, graph.num_passages, graph.num_triples, graph.num_edges
    loose = [
        *_within("triple_head", graph.triple_head, 0, n),
        *_within("triple_tail", graph.triple_tail, 0, n),
        *_within("triple_fact", graph.triple_fact, 0, f),
        *_within("fact_passage", graph.fact_passage, 0, p),
        *_within("edge_index", graph.edge_index, 0, n + p),
        *_within("edge_kind", graph.edge_kind, 0, len(MIRROR)),
        *_within("edge_triple", graph.edge_triple, -1, t),
        *_pointers("node_ptr", graph.node_ptr, e),
        *_pointers("fact_triple_ptr", graph.fact_triple_ptr, t),
        *_pointers("fact_passage_ptr", graph.fact_passage_ptr, len(graph.fact_passage)),
    ]
    yield from loose
    if loose:
        return
    source, target = graph.edge_index
    if not np.array_equal(pointers(source, n + p), graph.node_ptr):
        yield "edge_index: expected the edges of each node where node_ptr says, found others there"
    order = np.lexsort((graph.edge_triple, MIRROR[graph.edge_kind], source, target))
    there = np.stack([source, target, graph.edge_kind, graph.edge_triple])
    back = np.stack([target, source, MIRROR[graph.edge_kind], graph.edge_triple])[:, order]
    if not np.array_equal(there, back):
        yield "edge_index: expected every edge in both directions, found some in one"


def _occurrences(content: Content) -> Iterator[str]:
    """What passages say leads to entities, facts and words that are there, and nothing is there that none says."""
    said, words, near = content.said, content.words, content.near
    n, f, p = len(said.keys), len(said.facts), len(content.passages)
    for name, rows, column, end in (
        ("mention", said.mention, 0, p),
        ("mention", said.mention, 1, n),
        ("mention", said.mention, 2, len(said.forms)),
        ("fact", said.fact, 0, p),
        ("fact", said.fact, 1, f),
        ("triple", said.triple, 0, len(said.fact)),
        ("triple", said.triple, 1, n),
        ("triple", said.triple, 2, n),
        ("triple", said.triple, 3, len(said.relations)),
        ("description", said.description, 0, len(said.fact)),
        ("description", said.description, 1, n),
        ("description", said.description, 2, n),
        ("description", said.description, 3, len(said.remarks)),
        ("self_loop", said.self_loop, 0, p),
        ("self_loop", said.self_loop, 1, n),
        ("self_loop", said.self_loop, 2, len(said.remarks)),
    ):
        yield from _within(f"{name} {column}", rows[:, column], 0, end)
    yield from _within("subject", said.subject, -1, n)
    if set(said.mention[:, 1].tolist()) != set(range(n)):
        yield "entities: expected each to be mentioned by a passage, found some that none mentions"
    if set(said.fact[:, 1].tolist()) != set(range(f)):
        yield "facts: expected each to have a source, found some without"
    yield from _pointers("words", words.ptr, len(words.passage))
    yield from _pointers("names", words.name_ptr, len(words.name_token))
    yield from _within("words", words.passage, 0, p)
    yield from _within("names", words.name_token, 0, len(words.vocabulary))
    yield from _pointers("near names", near.ptr, len(near.other))
    yield from _within("near names", near.other, 0, n)


def _vectors(content: Content) -> Iterator[str]:
    """Every vector has length 1."""
    for kind in KINDS:
        blocks = content.rows[kind].blocks()
        length = np.concatenate([np.ones(0, np.float32), *(np.linalg.norm(block, axis=1) for block in blocks)])
        for i in np.flatnonzero(~(np.abs(length - 1) <= _OFF)).tolist():  # NaN is not near 1 either
            yield f"vector of {kind} {i}: expected length 1, found {length[i]:.4f}"


def _within(name: str, numbers: np.ndarray, first: int, end: int) -> Iterator[str]:
    bad = numbers[(numbers < first) | (numbers >= end)]
    if bad.size:
        yield f"{name}: expected numbers from {first} to {end - 1}, found {bad.flat[0]} ({bad.size} such)"


def _pointers(name: str, ptr: np.ndarray, end: int) -> Iterator[str]:
    if not (len(ptr) and ptr[0] == 0 and ptr[-1] == end and (np.diff(ptr) >= 0).all()):
        yield f"{name}: expected pointers that rise from 0 to {end}, found others"


def _fresh_build(index: GraphIndex, content: Content, cache_path: Path | None) -> Iterator[str]:
    """The files of a fresh build of the same documents that differ from the index's."""
    recipe = Recipe.of_index(index.path, index.manifest, content.given)
    own = cache_path or index.path / CACHE
    with tempfile.TemporaryDirectory(prefix="gfm-verify-") as name:
        folder = Path(name)
        passages = split_all(content.documents, recipe.encoder, recipe.settings)
        with open_cache(folder, own if own.exists() else None) as cache:
            for extractor in recipe.extractors:
                if isinstance(extractor, CostlyExtractor) and (unread := cache.unread(passages, extractor)):
                    yield (
                        f"a fresh build would ask the language model about {len(unread)} passages that no cache has: "
                        f"gfm retry {index.path}"
                    )
                    return
            fresh = replace(folder, Content(), content.documents, passages, recipe, cache, Laps())
            lacking = f"the cache lacked {cache.extracted} texts of passages and {cache.encoded} vectors"
        ours, theirs = index.manifest["files"], fresh["files"]
        for file in sorted({*ours, *theirs}):
            if ours.get(file) != theirs.get(file):
                yield f"{file}: a fresh build makes another ({lacking})"
        if store.current(folder) != index.generation and ours == theirs:
            yield "manifest.json: a fresh build makes another"
