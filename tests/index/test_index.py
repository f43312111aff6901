from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.index import index as index_module
from gfm.index import store
from gfm.index.index import GraphIndex
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, Entity, GfmError, Passage, Triple

TRIPLES = [
    ("Tarn Mill", "built by", "Orla Venn", "p1"),
    ("Orla Venn", "born in", "Port Isk", "p2"),
    ("Port Isk", "lies on", "Halder Sea", "p3"),
    ("Halder Sea", "freezes in", "winter", "p4"),
]


def triples_file(folder: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    path = folder / "triples.jsonl"
    lines = [json.dumps(dict(zip(("head", "relation", "tail", "passage_id"), row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def built(corpus_z: Any, tmp_path: Path) -> GraphIndex:
    """Corpus Z with its given triples, in a folder whose name is no ASCII (D06)."""
    path = tmp_path / "проект 名前 é"
    return GraphIndex.build(corpus_z.path, path, encoder="hashing:64", triples=triples_file(tmp_path, TRIPLES))


def test_corpus_z(built: GraphIndex) -> None:
    """B12, A11: given triples alone; each keeps its direction, its words and its source."""
    assert [built.triple(i) for i in range(built.graph.num_triples)] == [
        Triple(head, relation, tail, f"{head} {relation} {tail}", 1.0, (source,))
        for head, relation, tail, source in TRIPLES
    ]
    assert built.fact_texts == [f"{h} {r} {t}" for h, r, t, _ in TRIPLES]
    assert [built.entity(i) for i in range(built.graph.num_entities)] == [
        Entity("halder sea", "Halder Sea"),
        Entity("orla venn", "Orla Venn"),
        Entity("port isk", "Port Isk"),
        Entity("tarn mill", "Tarn Mill"),
        Entity("winter", "winter"),
    ]
    assert built.entity_key(4) == "winter"
    assert built.passage_ids == built.document_ids == ["p1", "p2", "p3", "p4", "p5"]
    text = "Quince jam keeps for a year."
    assert built.passage(4) == Passage("p5", "p5", "", text, 0, len(text))
    assert built.graph.entity_df.tolist() == [2, 2, 2, 1, 1]
    assert built.subjects.tolist() == [-1] * 5
    assert [(file.name, file.state) for file in built.account.files] == [("corpus.jsonl", "indexed")]
    assert set(built.build_seconds) >= {"split", "extract", "assemble", "encode", "synonyms", "write"}


def test_vectors_are_of_what_they_say(built: GraphIndex) -> None:
    encoder = HashingEncoder(64)
    names = [built.entity(i).name for i in range(5)]
    assert built.entity_vectors.rows.tolist() == encoder.encode(names).tolist()
    assert built.fact_vectors.rows.tolist() == encoder.encode(built.fact_texts).tolist()
    texts = [built.passage(i).text for i in range(5)]
    assert built.passage_vectors.rows.tolist() == encoder.encode(texts).tolist()


def test_entities_have_numbers_by_key(built: GraphIndex) -> None:
    assert built.entity_keys == [built.entity_key(i) for i in range(5)] == sorted(built.entity_keys)
    assert [built.entity_number(key) for key in built.entity_keys] == [0, 1, 2, 3, 4]
    assert [built.entity_number(key) for key in ("", "Port Isk", "port is", "port isk ", "zzz")] == [None] * 5


def test_opened_elsewhere(built: GraphIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10, D06: from another working folder, by a relative path, the encoder by its name in the manifest."""
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    index = GraphIndex.open("../проект 名前 é")
    assert index.generation == built.generation
    assert index.encoder.fingerprint == HashingEncoder(64).fingerprint
    ids, _ = index.passage_vectors.search(index.encode(["Where was Orla Venn born?"]), 2)
    assert ids[0, 0] == 1


def test_chunks_titles_and_subjects(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    text = " ".join(f"Line {i} is about the old mill by the tarn." for i in range(60))
    rows = [{"_id": "b", "title": "Tarn Mill", "text": text}, {"_id": "a", "text": "No title."}]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = GraphIndex.build(corpus, tmp_path / "index", encoder="hashing:64", extractor="none")
    assert index.passage_ids == ["a", "b#0", "b#1", "b#2"]
    assert index.document_ids == ["a", "b", "b", "b"]
    for number in (1, 2, 3):
        passage = index.passage(number)
        assert text[passage.start : passage.end] == passage.text
        assert passage.title == "Tarn Mill"
    assert index.subjects.tolist() == [-1, 0, 0, 0]
    assert index.graph.entity_df.tolist() == [3]


def test_metadata_of_documents(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [
        {"_id": "b", "text": "x", "year": 1911, "metadata": {"lang": "é", "tags": ["a"]}},
        {"_id": "a", "text": "y"},
    ]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = GraphIndex.build(corpus, tmp_path / "index", encoder="hashing:64", extractor="none")
    assert index.document_metadata == {"a": {}, "b": {"lang": "é", "tags": ["a"], "year": 1911}}


@pytest.mark.parametrize("number", [-1, 5])
def test_no_number_counts_from_the_end(built: GraphIndex, number: int) -> None:
    """D02: FAISS's filler -1 must never become the last passage."""
    for get in (built.passage, built.entity, built.entity_key, built.triple):
        with pytest.raises(IndexError, match=f"expected numbers from 0 to .*, found {number}"):
            get(number)


class OtherWeights(HashingEncoder):
    """The same name and dimension, other weights."""

    def encode(self, texts: Any, *, is_query: bool = False, progress: str = "") -> np.ndarray:
        return np.roll(super().encode(texts), 1, axis=1)


@pytest.mark.parametrize(("encoder", "dim"), [(HashingEncoder(32), 32), (OtherWeights(64), 64)])
def test_another_encoder_is_refused(built: GraphIndex, encoder: HashingEncoder, dim: int) -> None:
    """D01: also where the dimensions are equal."""
    with pytest.raises(GfmError) as error:
        GraphIndex.open(built.path, encoder)
    message = str(error.value)
    assert "encoder 'hashing:64' (64 dimensions, weights" in message
    assert f"the query encoder is 'hashing:{dim}' ({dim} dimensions" in message
    assert message.endswith(f"gfm index PATH --out {built.path} --encoder hashing:{dim}")


def test_the_encoder_of_the_name_has_changed(built: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index = GraphIndex.open(built.path)
    monkeypatch.setattr(index_module, "load_encoder", lambda name: OtherWeights(64))
    with pytest.raises(GfmError, match="the index was built with encoder"):
        index.encode(["a"])


def test_triples_of_an_unknown_passage(corpus_z: Any, tmp_path: Path) -> None:
    triples = triples_file(tmp_path, [*TRIPLES, ("a", "b", "c", "p9")])
    with pytest.raises(GfmError, match=r"triples\.jsonl:5: .*'p9'"):
        GraphIndex.build(corpus_z.path, tmp_path / "index", encoder="hashing:64", triples=triples)
    assert not (tmp_path / "index").exists()


def test_self_loops_and_doubles(corpus_z: Any, tmp_path: Path) -> None:
    """A12."""
    rows = [("Abel Works", "owns", "Abel Works", "p1"), *[("A", "r", "B", "p2")] * 2]
    index = GraphIndex.build(corpus_z.path, tmp_path / "i", encoder="hashing:64", triples=triples_file(tmp_path, rows))
    assert [index.triple(i).text for i in range(index.graph.num_triples)] == ["A r B"]
    assert index.manifest["counts"]["self_loops"] == 1
    assert "abel works" in [index.entity_key(i) for i in range(index.graph.num_entities)]
    assert index.graph.num_edges == index.manifest["counts"]["edges"] == 2 + 2 * index.manifest["counts"]["mentions"]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_one_byte_of_each_file(built: GraphIndex, share: float) -> None:
    """D09: for every file of a real generation."""
    folder = built.path / built.generation
    names = sorted(p.name for p in folder.iterdir())
    assert len(names) == 14
    for name in names:
        data = (folder / name).read_bytes()
        bad = bytearray(data)
        bad[int(share * (len(data) - 1))] ^= 0x40
        (folder / name).write_bytes(bad)
        with pytest.raises(GfmError, match=rf"{name}: "):
            GraphIndex.open(built.path)
        (folder / name).write_bytes(data)
    assert GraphIndex.open(built.path).generation == built.generation


def rewritten(built: GraphIndex, change: Any, manifest: dict[str, Any] | None = None) -> None:
    """The generation with something changed and sealed again, so that every checksum fits."""
    folder = built.path / built.generation
    staging = built.path / store.STAGING
    folder.rename(staging)
    (staging / store.MANIFEST).unlink()
    change(staging)
    kept = {k: v for k, v in built.manifest.items() if k not in {"files", "format_version"}}
    store.commit(built.path, staging, {**kept, **(manifest or {})})


def drop_vectors(staging: Path) -> None:
    """Three passages' vectors where there are five passages."""
    path = staging / "vectors.safetensors"
    arrays = {name: a.copy() for name, a in store.map_arrays(path).items()}
    store.write_arrays(path, {**arrays, "passage": arrays["passage"][:3]})


def drop_nodes(staging: Path) -> None:
    path = staging / "graph.safetensors"
    arrays = {name: a.copy() for name, a in store.map_arrays(path).items()}
    store.write_arrays(path, {**arrays, "node_ptr": arrays["node_ptr"][:-2]})


def drop_an_array(staging: Path) -> None:
    path = staging / "graph.safetensors"
    arrays = {name: a.copy() for name, a in store.map_arrays(path).items()}
    store.write_arrays(path, {name: a for name, a in arrays.items() if name != "edge_kind"})


@pytest.mark.parametrize(
    ("change", "manifest", "message"),
    [
        (drop_vectors, {}, r"expected passage vectors of shape \(5, 64\), found \(3, 64\)"),
        (drop_nodes, {}, r"expected node_ptr of shape \(11,\) by the manifest, found \(9,\)"),
        (drop_an_array, {}, r"graph\.safetensors: expected the arrays \['edge_index', 'edge_kind'"),
        (lambda staging: None, {"search": {}}, "expected an index with 'passage'|expected an index with 'entity'"),
        (lambda staging: (staging / "facts.parquet").unlink(), {}, r"facts\.parquet: expected a Parquet table"),
    ],
)
def test_parts_that_do_not_fit_together(built: GraphIndex, change: Any, manifest: Any, message: str) -> None:
    """D07: never five nodes and three vectors."""
    rewritten(built, change, manifest)
    with pytest.raises(GfmError, match=message):
        GraphIndex.open(built.path)


def test_an_open_index_outlives_its_generation(built: GraphIndex, corpus_z: Any) -> None:
    """E05: a writer replaces the index; what was opened before reads on, texts never looked at before included."""
    index = GraphIndex.open(built.path)
    with corpus_z.path.open("a", encoding="utf-8") as file:
        file.write('{"_id": "p6", "text": "One more."}\n')
    new = GraphIndex.build(corpus_z.path, built.path, encoder="hashing:64", extractor="none")
    assert not (built.path / index.generation).exists()
    assert new.graph.num_passages == 6
    assert index.passage(0).text == "Tarn Mill was built by Orla Venn in 1911."
    assert index.triple(1).relation == "born in"
    assert index.fact_texts[3] == "Halder Sea freezes in winter"
    assert len(index.passage_ids) == 5
    assert index.entity_vectors.search(index.encode(["Port Isk"]), 1)[0].tolist() == [[2]]


def test_replaced_while_it_opens(built: GraphIndex, corpus_z: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """E05: between the checksums and the opening of the files."""
    real, raced = store.open_generation, []

    def replaced(root: Path) -> Any:
        found = real(root)
        if not raced:
            raced.append(found)
            GraphIndex.build(corpus_z.path, built.path, encoder="hashing:64", extractor="none")
            assert not found[0].exists()
        return found

    monkeypatch.setattr(store, "open_generation", replaced)
    index = GraphIndex.open(built.path)
    assert index.generation != built.generation
    assert (index.graph.num_triples, index.passage_ids[0]) == (0, "p1")


def test_many_threads(built: GraphIndex) -> None:
    """E05: 8 threads that all look at a fresh index for the first time say what one says."""

    def look(index: GraphIndex) -> list[Any]:
        vector = index.encode(["Which sea is near Port Isk?"])
        found = index.passage_vectors.search(vector, 5)[0].tolist()
        texts = [index.passage(i) for i in range(5)]
        triples = [index.triple(i) for i in range(4)]
        return [found, texts, triples, index.lexical.bm25(index.lexical.token_ids("sea")).tolist()]

    expected = look(built)
    fresh = GraphIndex.open(built.path)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(look, [fresh] * 50))


def test_all_parts_are_read_only(built: GraphIndex) -> None:
    with pytest.raises(ValueError, match="read-only"):
        built.graph.edge_index[0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        built.passage_vectors.rows[0, 0] = 9


def test_documents_are_a_corpus(tmp_path: Path) -> None:
    documents = [Document("b", "Port Isk", "A port."), Document("a", "", "Tar.")]
    built = GraphIndex.build(documents, tmp_path / "index", encoder=HashingEncoder(16), extractor="none")
    assert built.document_ids == ["a", "b"]
    with pytest.raises(GfmError, match="expected at least one document"):
        GraphIndex.build([], tmp_path / "none", encoder=HashingEncoder(16))
