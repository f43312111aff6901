from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gfm.index.vectors as vectors_module
from gfm.extract.extraction import Extraction, Extractor
from gfm.graph.knowledge_graph import EDGE_KINDS
from gfm.index import builder, store
from gfm.index.builder import build_index, split_all
from gfm.index.index import GraphIndex
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError, Passage

ENCODER = HashingEncoder(64)


class Stub:
    """An extractor that knows one triple for each text that holds a key of its table."""

    name = "stub"
    cached = True
    rows = ()

    def __init__(self, table: dict[str, tuple[str, str, str]] | None = None, settings: str = "stub-1") -> None:
        self.table = table or {}
        self.settings = settings

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        return [Extraction(triples=tuple(t for key, t in self.table.items() if key in p.text)) for p in passages]


Z = Stub(
    {
        "built": ("Tarn Mill", "built by", "Orla Venn"),
        "born": ("Orla Venn", "born in", "Port Isk"),
        "lies": ("Port Isk", "lies on", "Halder Sea"),
        "freezes": ("Halder Sea", "freezes in", "winter"),
    }
)


def build(documents: Sequence[Document], path: Path, *extractors: Extractor, **settings: Any) -> GraphIndex:
    build_index(documents, path, ENCODER, extractors, BuildSettings(**settings))
    return GraphIndex.open(path, ENCODER)


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def edges_of(index: GraphIndex, kind: str) -> set[tuple[str, str]]:
    graph = index.graph
    chosen = graph.edge_index[:, graph.edge_kind == EDGE_KINDS.index(kind)]

    def name(node: int) -> str:
        n = graph.num_entities
        return index.entity(node).name if node < n else index.passage_ids[node - n]

    return {(name(s), name(t)) for s, t in chosen.T.tolist()}


def test_the_order_of_the_documents_plays_no_part(corpus_z: Any, tmp_path: Path) -> None:
    one = build(corpus_z.documents, tmp_path / "one", Z)
    two = build(corpus_z.documents[::-1], tmp_path / "two", Z)
    assert one.generation == two.generation
    assert files(tmp_path / "one" / one.generation) == files(tmp_path / "two" / two.generation)


def test_a_build_from_a_warm_cache_is_the_same(corpus_z: Any, tmp_path: Path) -> None:
    """E02: fewer documents, then all, then the last one changed and back."""
    fresh = build(corpus_z.documents, tmp_path / "fresh", Z).generation
    first = build(corpus_z.documents[:3], tmp_path / "grown", Z).generation
    assert first != fresh
    assert build(corpus_z.documents, tmp_path / "grown", Z).generation == fresh
    changed = [*corpus_z.documents[:-1], Document("p5", "", "Quince jam spoils.")]
    assert build(changed, tmp_path / "grown", Z).generation != fresh
    assert build(corpus_z.documents, tmp_path / "grown", Z).generation == fresh


def test_another_process_builds_the_same(corpus_z: Any, tmp_path: Path, repository: Path) -> None:
    """G06, F01: nothing hangs on the order of a set, which another hash seed would change."""
    code = (
        "import sys; from pathlib import Path; from gfm.index.index import GraphIndex;"
        "print(GraphIndex.build(sys.argv[1], sys.argv[2], encoder='hashing:64', extractor='none').generation)"
    )
    titled = tmp_path / "titled.jsonl"
    rows = [{"_id": f"d{i}", "title": f"Mill {i % 3} (river)", "text": f"Mill {i % 3} and Mill {i}"} for i in range(9)]
    titled.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    names = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(titled), str(tmp_path / seed)]
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(repository), "PATH": ""}
        names.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(names) == 1


def test_the_manifest(corpus_z: Any, tmp_path: Path) -> None:
    index = build(corpus_z.documents, tmp_path / "index", Z, synonym_cosine=0.99, chunk_tokens=100)
    manifest = index.manifest
    assert manifest["counts"] == {
        "documents": 5,
        "passages": 5,
        "entities": 5,
        "facts": 4,
        "triples": 4,
        "mentions": 8,
        "synonyms": 0,
        "edges": 24,
        "hubs": 0,
        "self_loops": 0,
    }
    assert manifest["encoder"]["name"] == "hashing:64"
    assert manifest["extractors"] == ["stub-1"]
    assert manifest["search"] == {"entity": "exact", "fact": "exact", "passage": "exact"}
    assert manifest["settings"] == {
        "chunk_tokens": 100,
        "chunk_overlap": 0,
        "synonym_cosine": 0.99,
        "synonym_neighbours": 8,
    }
    suffixes = {name.partition(".")[2] for name in manifest["files"]}
    assert suffixes == {"parquet", "safetensors"}


def test_stages_are_timed(corpus_z: Any, tmp_path: Path) -> None:
    seconds = build_index(corpus_z.documents, tmp_path / "index", ENCODER, [Z])
    assert list(seconds) == ["split", "extract", "assemble", "encode", "synonyms", "write"]
    assert all(s >= 0 for s in seconds.values())


def test_two_extractors_are_united(corpus_z: Any, tmp_path: Path) -> None:
    other = Stub({"Quince": ("Quince jam", "keeps for", "a year")}, "stub-2")
    index = build(corpus_z.documents, tmp_path / "index", Z, other)
    assert index.graph.num_triples == 5
    assert index.manifest["extractors"] == ["stub-1", "stub-2"]


def test_documents_without_entities(tmp_path: Path) -> None:
    """A01: no entity, no fact; the passages are still found."""
    texts = ["It was late.", "Some time passed.", "Then it stopped."]
    index = build([Document(str(i), "", t) for i, t in enumerate(texts)], tmp_path / "index", Stub())
    counts = index.manifest["counts"]
    assert (counts["entities"], counts["facts"], counts["edges"], counts["passages"]) == (0, 0, 0, 3)
    vector = index.encode(["what stopped?"])
    assert index.passage_vectors.search(vector, 10)[0][0, 0] == 2
    assert index.entity_vectors.search(vector, 64)[0].shape == (1, 0)
    assert index.fact_vectors.search(vector, 32)[0].shape == (1, 0)
    assert index.lexical.bm25(index.lexical.token_ids("stopped")).argmax() == 2
    assert index.subjects.tolist() == [-1, -1, -1]


def test_entities_without_relations(tmp_path: Path) -> None:
    """A02, A06: titles alone make entities; each can be found by name."""
    names = ["Orla Venn", "Tarn Mill", "Port Isk"]
    index = build([Document(f"d{i}", n, "Nothing is said.") for i, n in enumerate(names)], tmp_path / "index")
    assert (index.graph.num_entities, index.graph.num_triples) == (3, 0)
    for name in names:
        best = index.entity_vectors.search(index.encode([name]), 1)[0][0, 0]
        assert index.entity(int(best)).name == name


def test_no_documents(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="at least one document"):
        build_index([], tmp_path / "index", ENCODER, [])
    assert not (tmp_path / "index").exists()


LONG = " ".join(f"Sentence number {i} tells of the mill." for i in range(40))


def test_an_id_that_clashes_with_a_chunk(tmp_path: Path) -> None:
    documents = [Document("a", "", LONG), Document("a#1", "", "Short.")]
    with pytest.raises(GfmError, match=r"two passages have the id 'a#1' \(documents 'a' and 'a#1'\).* rename one"):
        build_index(documents, tmp_path / "index", ENCODER, [], BuildSettings(chunk_tokens=64))
    assert not (tmp_path / "index").exists()


def test_two_documents_of_one_id(tmp_path: Path) -> None:
    """Also where their passages' ids differ: `a` itself, and `a#0`, `a#1`, …"""
    documents = [Document("a", "", LONG), Document("a", "", "Short.")]
    with pytest.raises(GfmError, match="two documents have the id 'a'"):
        build_index(documents, tmp_path / "index", ENCODER, [], BuildSettings(chunk_tokens=64))


@pytest.mark.parametrize("overlap", [-1, 64, 65])
def test_an_overlap_leaves_room(overlap: int) -> None:
    """B08: also where no document is long enough to be cut."""
    with pytest.raises(GfmError, match=rf"chunk overlap: .* fewer than the 64 of a passage, found {overlap};"):
        split_all([Document("a", "", "Short.")], ENCODER, BuildSettings(chunk_tokens=64, chunk_overlap=overlap))


def test_passages_slice_to_the_text(tmp_path: Path) -> None:
    """F02."""
    documents = [
        Document("long", "Mill", f"  {LONG}\n\nÜber 삼 🚀.  "),
        Document("a", "", "One."),
        Document("b", "", " Two."),
    ]
    text = {d.id: d.text for d in documents}
    passages = split_all(documents, ENCODER, BuildSettings(chunk_tokens=64))
    assert len(passages) > 5
    assert [p.id for p in passages] == sorted(p.id for p in passages)
    for passage in passages:
        assert text[passage.document_id][passage.start : passage.end] == passage.text
    index = build(documents, tmp_path / "index", chunk_tokens=64)
    assert [index.passage(i) for i in range(len(passages))] == passages


class NaN(HashingEncoder):
    """Gives no vector for a skull."""

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        vectors = super().encode(texts)
        vectors[["☠" in t for t in texts]] = np.nan
        return vectors


def test_a_broken_encoder_leaves_the_old_index(corpus_z: Any, tmp_path: Path) -> None:
    """C09."""
    old = build(corpus_z.documents, tmp_path / "index", Z).generation
    with pytest.raises(GfmError, match=r"not finite; the first is for the text 'A ☠ here\.'"):
        build_index([*corpus_z.documents, Document("x", "", "A ☠ here.")], tmp_path / "index", NaN(64), [Z])
    index = GraphIndex.open(tmp_path / "index", ENCODER)
    assert index.generation == old
    assert index.graph.num_passages == 5


@pytest.mark.parametrize("step", ["_write", "merge_words", "synonyms"])
def test_killed_before_the_end(corpus_z: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """D07, D08."""
    path = tmp_path / "index"
    old = build(corpus_z.documents[:3], path, Z).generation

    def killed(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builder, step, killed)
        with pytest.raises(KeyboardInterrupt):
            build(corpus_z.documents, path, Z)
    assert GraphIndex.open(path, ENCODER).generation == old
    assert build(corpus_z.documents, path, Z).graph.num_passages == 5
    assert not (path / store.STAGING).exists()


def test_killed_between_staging_and_current(corpus_z: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D08: all files are written, the name is not."""
    path = tmp_path / "index"
    old = build(corpus_z.documents[:3], path, Z).generation

    def killed(*args: Any, **kwargs: Any) -> None:
        assert (path / store.STAGING / "graph.safetensors").is_file()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            build(corpus_z.documents, path, Z)
    index = GraphIndex.open(path, ENCODER)
    assert (index.generation, index.graph.num_passages) == (old, 3)


def test_a_first_build_that_was_killed_is_built_again(corpus_z: Any, tmp_path: Path) -> None:
    """What it left is known for a build's own, with the cache elsewhere too."""
    path = tmp_path / "index"
    (path / store.STAGING).mkdir(parents=True)
    (path / store.STAGING / "facts.parquet").write_bytes(b"half")
    (path / "writer.lock").write_bytes(b"123\n")
    build_index(corpus_z.documents, path, ENCODER, [Z], cache_path=tmp_path / "shared.sqlite")
    assert GraphIndex.open(path, ENCODER).graph.num_passages == 5
    assert not (path / "cache.sqlite").exists()


def test_two_writers_at_once(corpus_z: Any, tmp_path: Path) -> None:
    """E05."""
    path = tmp_path / "index"

    class Meddler(Stub):
        def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
            with pytest.raises(GfmError, match=r"only writer of this index, found process \d+"):
                build_index(corpus_z.documents[:1], path, ENCODER, [Z])
            return super().extract(passages)

    assert build(corpus_z.documents, path, Meddler()).graph.num_passages == 5


@pytest.mark.parametrize("name", ["thesis.doc", "CURRENT", "generation-1"])
def test_a_folder_of_something_else_is_left_alone(corpus_z: Any, tmp_path: Path, name: str) -> None:
    """F05: a CURRENT alone proves nothing; other databases have one too."""
    (tmp_path / name).write_text("MANIFEST-000004\n", encoding="utf-8")
    (tmp_path / "000003.log").write_text("precious", encoding="utf-8")
    before = files_below(tmp_path)
    with pytest.raises(GfmError, match="found something else; give another --out"):
        build_index(corpus_z.documents, tmp_path, ENCODER, [Z])
    assert files_below(tmp_path) == before


def files_below(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_file_in_place_of_the_folder(corpus_z: Any, tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"corpus\.jsonl: expected a new folder"):
        build_index(corpus_z.documents, corpus_z.path, ENCODER, [Z])
    assert corpus_z.path.read_text(encoding="utf-8").count("\n") == 5
    with pytest.raises(GfmError, match="expected a folder that can be written"):
        build_index(corpus_z.documents, corpus_z.path / "index", ENCODER, [Z])


def test_a_full_disk(corpus_z: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    old = build(corpus_z.documents[:3], path, Z).generation

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_table", full)
    with pytest.raises(GfmError, match="No space left on device; see that it is writable and has space"):
        build_index(corpus_z.documents, path, ENCODER, [Z])
    assert GraphIndex.open(path, ENCODER).generation == old


def test_other_files_in_the_folder_of_an_index_stay(corpus_z: Any, tmp_path: Path) -> None:
    build(corpus_z.documents[:3], tmp_path / "index", Z)
    (tmp_path / "index" / "notes.txt").write_text("mine", encoding="utf-8")
    build(corpus_z.documents, tmp_path / "index", Z)
    assert (tmp_path / "index" / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_synonym_edges_of_an_index(tmp_path: Path) -> None:
    titles = [
        "Halder Sea Old Stone Lighthouse",
        "Halder Sea Old Stone Lighthouses",
        "Mercury (planet)",
        "Mercury (god)",
        "Blue River Road Diner 66",
        "Blue River Road Diner 67",
    ]
    documents = [Document(f"d{i}", t, "Mercury is a name.") for i, t in enumerate(titles)]
    index = build(documents, tmp_path / "index", Stub({"Mercury": ("Mercury", "is", "name")}))
    found = edges_of(index, "synonym")
    assert {(b, a) for a, b in found} == found
    for pair in [
        ("Halder Sea Old Stone Lighthouse", "Halder Sea Old Stone Lighthouses"),
        ("Mercury", "Mercury (planet)"),
        ("Mercury", "Mercury (god)"),
    ]:
        assert pair in found
    assert ("Blue River Road Diner 66", "Blue River Road Diner 67") not in found
    texts = [index.entity(i).name for i in range(index.graph.num_entities)]
    rows = ENCODER.encode(texts)
    routes = [rows[texts.index(t)] for t in titles[4:]]
    assert float(routes[0] @ routes[1]) > 0.8  # near enough, if it were not for the numbers


def test_hnsw_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_LIMIT", 20)
    documents = [Document(f"d{i:02}", f"Mill {i} of Brook {i * 7 % 30}", f"It stands by pond {i}.") for i in range(30)]
    index = build(documents, tmp_path / "проект", Stub())
    assert index.manifest["search"] == {"entity": "hnsw", "fact": "exact", "passage": "hnsw"}
    assert {"entity.hnsw", "passage.hnsw"} <= set(index.manifest["files"])
    kinds = [v.kind for v in (index.entity_vectors, index.fact_vectors, index.passage_vectors)]
    assert kinds == ["hnsw", "exact", "hnsw"]
    for i in range(30):
        vector = index.encode([f"Mill {i} of Brook {i * 7 % 30}. It stands by pond {i}."])
        assert index.passage_vectors.search(vector, 1)[0][0, 0] == i
    again = build(documents[::-1], tmp_path / "again", Stub())
    assert again.generation == index.generation
