from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.extract import known_entities
from gfm.extract.extraction import Extraction
from gfm.extract.given import GivenGraph, GivenTriples
from gfm.extract.resolve import resolve
from gfm.index import living, store
from gfm.index.builder import build_index
from gfm.index.index import GraphIndex
from gfm.index.living import Change, change_corpora, change_documents
from gfm.index.lock import writer_lock
from gfm.index.recipe import BuildSettings
from gfm.retrieve.dense import DenseRetriever
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError, GivenEntity, GivenTriple, Passage
from tests.index.fakes import Capitals, document, triples_of


class Encoder(HashingEncoder):
    """Remembers what it was asked for."""

    def __init__(self, dim: int = 64) -> None:
        self.seen: list[str] = []
        super().__init__(dim)
        self.seen.clear()

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        self.seen += texts
        return super().encode(texts)


Z = [
    document("p1", "Tarn Mill was built by Orla Venn in 1911."),
    document("p2", "Orla Venn was born in Port Isk."),
    document("p3", "Port Isk lies on the Halder Sea."),
    document("p4", "The Halder Sea freezes each winter."),
    document("p5", "Quince jam keeps for a year."),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An index of Corpus Z, its names found by their capitals."""
    build_index(Z, tmp_path / "index", Encoder(), [Capitals()])
    return tmp_path / "index"


def change(path: Path, put: Sequence[Document] = (), delete: Sequence[str] = (), **options: Any) -> Change:
    return change_documents(path, put, delete, **{"encoder": Encoder(), "extractors": [Capitals()], **options})


def is_fresh(path: Path, documents: Sequence[Document], *extractors: Any, **settings: Any) -> bool:
    """Whether the index is, byte for byte, what a fresh build of the documents makes."""
    fresh = path.parent / "fresh"
    build_index(documents, fresh, Encoder(), extractors or [Capitals()], BuildSettings(**settings))
    return store.current(path) == store.current(fresh)


# --- add, update, delete


def test_corpus_z_grows_changes_and_shrinks(path: Path) -> None:
    """E02: and is searched as a fresh index of the same documents is."""
    sea = document("p6", "The Halder Sea is deep.", "Halder Sea")
    assert change(path, [sea], only_new=True).added == ("p6",)
    assert is_fresh(path, [*Z, sea])
    moved = document("p2", "Orla Venn was born in Lake Town.")
    assert change(path, [moved]).updated == ("p2",)
    assert change(path, delete=["p5"]).deleted == ("p5",)
    documents = [Z[0], moved, Z[2], Z[3], sea]
    assert is_fresh(path, documents)
    hits = [
        [
            (hit.item, hit.score)
            for hit in DenseRetriever(GraphIndex.open(folder, Encoder())).retrieve("the sea").passages
        ]
        for folder in (path, path.parent / "fresh")
    ]
    assert hits[0] == hits[1]


def test_what_only_a_deleted_document_said_is_gone(path: Path) -> None:
    """E01: Orla Venn stays, for p1 names her; Port Isk stays, for p3 does; that she was born there is gone."""
    before = GraphIndex.open(path)
    assert "Orla Venn was born in Port Isk." in before.fact_texts
    done = change(path, delete=["p2"])
    assert (done.extracted, done.encoded) == (0, 0)
    index = GraphIndex.open(path)
    names = {index.entity(i).name for i in range(index.graph.num_entities)}
    assert {"Orla Venn", "Port Isk"} <= names
    assert not any("born" in text for text in index.fact_texts)
    assert not any("born" in index.triple(i).relation for i in range(index.graph.num_triples))
    assert index.passage_ids == ["p1", "p3", "p4", "p5"]
    assert is_fresh(path, [Z[0], *Z[2:]])


def test_a_deleted_document_comes_back_from_the_cache(path: Path) -> None:
    before = store.current(path)
    change(path, delete=["p2"])
    done = change(path, [Z[1]])
    assert (done.added, done.extracted, done.encoded) == (("p2",), 0, 0)
    assert store.current(path) == before


def test_an_entity_of_two_additions_is_one(path: Path) -> None:
    """E03: a path from the first batch through the second, and no number that leads nowhere."""
    change(path, [document("a", "BETA met ALPHA.")])
    change(path, [document("b", "ALPHA met GAMMA.")])
    index = GraphIndex.open(path)
    triples = {(t.head, t.tail) for t in map(index.triple, range(index.graph.num_triples))}
    assert {("BETA", "ALPHA"), ("ALPHA", "GAMMA")} <= triples
    assert is_fresh(path, [*Z, document("a", "BETA met ALPHA."), document("b", "ALPHA met GAMMA.")])


def test_only_new_text_costs_work(path: Path) -> None:
    encoder, extractor = Encoder(), Capitals()
    done = change(path, [document("p6", "Port Isk met Lake Town.")], encoder=encoder, extractors=[extractor])
    assert extractor.seen == ["Port Isk met Lake Town."]
    assert sorted(set(encoder.seen)) == ["Lake Town", "Port Isk met Lake Town."]
    assert (done.extracted, done.encoded) == (1, 2)


def test_old_text_costs_no_work_even_without_the_cache(path: Path) -> None:
    for file in path.glob("cache.sqlite*"):
        file.unlink()
    encoder, extractor = Encoder(), Capitals()
    change(path, [document("p6", "Lake Town burned.")], encoder=encoder, extractors=[extractor])
    assert extractor.seen == ["Lake Town burned."]
    assert sorted(set(encoder.seen)) == ["Lake Town", "Lake Town burned."]


def test_a_title_that_comes_is_found_in_old_passages(path: Path) -> None:
    """The extractor misses `jam`, which begins with a small letter; a title is found all the same."""
    jam = document("p6", "It is made of quinces.", "Quince jam")
    change(path, [jam])
    index = GraphIndex.open(path)
    assert index.entity(int(index.graph.edge_index[1, index.graph.node_ptr[index.graph.num_entities + 4]])).name == (
        "Quince jam"
    )
    assert is_fresh(path, [*Z, jam])
    change(path, delete=["p6"])
    assert is_fresh(path, Z)


def test_nothing_to_do_makes_no_generation(path: Path) -> None:
    inode = (path / "CURRENT").stat().st_ino
    done = change(path, Z[:2], only_new=True)
    assert (done.unchanged, done.added, done.updated, done.seconds) == (("p1", "p2"), (), (), {})
    assert done.counts["documents"] == 5
    assert (path / "CURRENT").stat().st_ino == inode


def test_metadata_alone_is_a_change_that_reads_nothing(path: Path) -> None:
    encoder, extractor = Encoder(), Capitals()
    paged = Document("p1", "", Z[0].text, {"page": 1})
    assert change(path, [paged], encoder=encoder, extractors=[extractor]).updated == ("p1",)
    assert (encoder.seen, extractor.seen) == ([], [])
    assert is_fresh(path, [paged, *Z[1:]])


def test_all_others_are_deleted_but_for_those_to_keep(path: Path) -> None:
    done = change(path, [Z[0]], keep=["p3", "never there"])
    assert (done.unchanged, done.deleted) == (("p1",), ("p2", "p4", "p5"))
    assert is_fresh(path, [Z[0], Z[2]])


LONG = " ".join(f"Tarn Mill met Port {i}." for i in range(60))


def test_long_documents(tmp_path: Path) -> None:
    """Their texts are kept whole, blanks between passages too."""
    text = f"  {LONG}\n\n\n  {LONG} \n"
    build_index([document("a", text), *Z], tmp_path / "index", Encoder(), [Capitals()], BuildSettings(chunk_tokens=50))
    change(tmp_path / "index", [document("b", "Tarn Mill.", "Port 7")])
    assert is_fresh(
        tmp_path / "index", [document("a", text), *Z, document("b", "Tarn Mill.", "Port 7")], chunk_tokens=50
    )
    shorter = document("a", "Tarn Mill.")
    change(tmp_path / "index", [shorter])
    assert is_fresh(tmp_path / "index", [shorter, *Z, document("b", "Tarn Mill.", "Port 7")], chunk_tokens=50)


def test_older_rules_are_told_by_the_manifest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that they made is carried over."""
    monkeypatch.setattr(living, "RULES", 99)
    given = []
    real = living.replace
    monkeypatch.setattr(living, "replace", lambda path, old, *more: given.append(old) or real(path, old, *more))
    change(path, [document("p6", "Lake Town.")])
    assert given[0].passages == ()
    assert is_fresh(path, [*Z, document("p6", "Lake Town.")])


# --- what is refused


def refused(path: Path, words: str, *arguments: Any, **options: Any) -> None:
    before = store.current(path)
    with pytest.raises(GfmError, match=words):
        change(path, *arguments, **options)
    assert store.current(path) == before


def test_another_content_is_not_added(path: Path) -> None:
    new = [document("p2", "Another."), document("p6", "New.")]
    refused(path, r"found another content for 'p2' \(1 such\); to replace them: gfm update", new, only_new=True)


def test_unknown_ids_are_not_deleted(path: Path) -> None:
    refused(path, r"found 'p8' \(2 such\); nothing was deleted", delete=["p1", "p9", "p8"])


def test_an_id_that_is_put_twice(path: Path) -> None:
    refused(path, "two documents have the id 'x'", [document("x", "One."), document("x", "Two.")])
    refused(path, "'p1' is to be put and to be deleted", [Z[0]], ["p1"])


def test_the_last_document_stays(path: Path) -> None:
    refused(path, "at least one document to be left", delete=[d.id for d in Z])


def test_another_encoder_or_extractor(path: Path) -> None:
    refused(path, "was built with encoder 'hashing:64'", [document("x", "X.")], encoder=HashingEncoder(32))
    other = Capitals()
    other.settings = "capitals-2"
    refused(path, "with the extractors capitals-1, found capitals-2; use the same, or build", extractors=[other])
    refused(path, "with the extractors capitals-1, found none", extractors=[])


def test_an_extractor_that_only_its_maker_knows(path: Path) -> None:
    """By name nobody can make it; that is told where a text has to be read, and not before."""
    change_documents(path, delete=["p5"])
    with pytest.raises(GfmError, match=r"extractor 'capitals': expected one of gfm's own, .* hand it in: extractors="):
        change_documents(path, [document("x", "X.")])


def test_an_index_of_an_earlier_version(path: Path) -> None:
    folder = path / store.current(path)
    staging = path / store.STAGING
    folder.rename(staging)
    (staging / store.MANIFEST).unlink()
    store.write_table(staging / "documents.parquet", {"id": ["p1"], "title": [""], "metadata": ["{}"]})
    store.commit(path, staging, {})
    with pytest.raises(GfmError, match=r"keeps the texts of its documents, .* build it again, once: gfm index PATH"):
        change(path, delete=["p1"])


def test_no_index(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(GfmError, match=r"expected (an index|the folder of an index), found n"):
            change(folder, delete=["p1"])
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(path: Path) -> None:
    """E05: and readers do not mind."""
    with writer_lock(path):
        refused(path, r"only writer of this index, found process \d+", delete=["p1"])
        assert GraphIndex.open(path).graph.num_passages == 5


def test_an_update_while_another_writes_is_not_lost(path: Path) -> None:
    """What is changed is the index as it is when the lock is held, not as it was when somebody opened it."""
    index = GraphIndex.open(path, Encoder())
    change(path, [document("p6", "Lake Town.")])
    assert index.delete("p1").passage_ids == ["p2", "p3", "p4", "p5", "p6"]


# --- given triples

BORN = ("Orla Venn", "born in", "Port Isk")
BUILT = ("Tarn Mill", "built by", "Orla Venn")
LIES = ("Port Isk", "lies on", "Halder Sea")


@pytest.fixture
def given(tmp_path: Path) -> Path:
    build_index(Z, tmp_path / "given", Encoder(), [triples_of(tmp_path, {"p1": [BUILT], "p2": [BORN]})])
    return tmp_path / "given"


def facts(path: Path) -> list[str]:
    return GraphIndex.open(path).fact_texts


def put(path: Path, documents: Sequence[Document], table: dict[str, Any] | None, **options: Any) -> Change:
    triples = None if table is None else triples_of(path.parent, table)
    return change_documents(path, documents, triples=triples, **options)


def test_all_passages_of_a_document_share_its_triples(tmp_path: Path) -> None:
    """A title comes that only the last passage names; the triple still goes to the first, which names both its ends."""
    long = document("a", f"Tarn Mill met Orla Venn. {LONG} Then came Lake Town.")
    table = {"a": [("Tarn Mill", "met", "Nobody"), BUILT]}
    build_index([long, *Z], tmp_path / "i", Encoder(), [triples_of(tmp_path, table)], BuildSettings(chunk_tokens=50))
    lake = document("b", "It is deep.", "Lake Town")
    put(tmp_path / "i", [lake], {"b": []})
    assert is_fresh(tmp_path / "i", [long, *Z, lake], triples_of(tmp_path, table | {"b": []}), chunk_tokens=50)


def test_given_triples_come_and_go_with_their_documents(given: Path) -> None:
    """The index keeps them: no file has to be there."""
    (given.parent / "triples.jsonl").unlink()
    assert put(given, [document("p6", "New.")], {"p6": [LIES]}).added == ("p6",)
    assert facts(given) == ["Tarn Mill built by Orla Venn", "Orla Venn born in Port Isk", "Port Isk lies on Halder Sea"]
    change_documents(given, delete=["p2"])
    assert facts(given) == ["Tarn Mill built by Orla Venn", "Port Isk lies on Halder Sea"]
    table = triples_of(given.parent, {"p1": [BUILT], "p6": [LIES]})
    assert is_fresh(given, [Z[0], *Z[2:], document("p6", "New.")], table)


def test_an_updated_document_gets_new_triples(given: Path) -> None:
    put(given, [document("p2", "Another text.")], {"p2": []})
    assert facts(given) == ["Tarn Mill built by Orla Venn"]


def test_new_triples_of_an_old_document_update_it(given: Path) -> None:
    done = put(given, [Z[0]], {"p1": [BUILT], "p2": [LIES]})
    assert (done.updated, done.unchanged) == (("p2",), ("p1",))
    assert facts(given) == ["Tarn Mill built by Orla Venn", "Port Isk lies on Halder Sea"]
    with pytest.raises(GfmError, match="found another content for 'p2'"):
        put(given, [], {"p2": [BORN]}, only_new=True)


def test_metadata_change_keeps_the_triples(given: Path) -> None:
    put(given, [Document("p2", "", Z[1].text, {"page": 2})], None)
    assert facts(given) == ["Tarn Mill built by Orla Venn", "Orla Venn born in Port Isk"]


def test_triples_are_asked_for_where_the_index_has_them(given: Path, path: Path) -> None:
    with pytest.raises(GfmError, match=r"expected triples for what is added, .* give them: --triples FILE"):
        put(given, [document("p6", "New.")], None)
    with pytest.raises(GfmError, match="expected no triples, as when the index was built"):
        put(path, [document("p6", "New.")], {"p6": [LIES]}, extractors=[Capitals()])
    with pytest.raises(GfmError, match=r"triples\.jsonl:1: expected the passage_id of a document .* found 'p9'"):
        put(given, [document("p6", "New.")], {"p9": [LIES]})


def test_entities_with_ids_go_with_what_named_them(tmp_path: Path) -> None:
    """Two of one name: the shared name means the cook once the diver is gone."""
    rows = [
        GivenEntity("Lee Moss", "1", "diver", "Dives at Port Isk.", passage_ids=("p2",)),
        GivenEntity("Lee Moss", "2", "cook", aliases=("Old Moss",), passage_ids=("p1",)),
    ]
    triples = [
        GivenTriple("", "dives at", "Port Isk", ("p2",), 0.5, "by day", head_id="1"),
        GivenTriple("", "cooks at", "Tarn Mill", ("p1",), head_id="2"),
        GivenTriple("Tarn Mill", "is", "Tarn Mill", ("p3",)),
    ]
    given, path = GivenGraph(resolve(rows, triples)), tmp_path / "given"
    build_index(Z, path, Encoder(), [given], table=known_entities([given], [("Tarny", "Tarn Mill")]))
    change_documents(path, delete=["p2"])
    left = given.without({"p2"}, {d.id for d in Z})
    fresh = tmp_path / "fresh"
    build_index([Z[0], *Z[2:]], fresh, Encoder(), [left], table=known_entities([left], [("Tarny", "Tarn Mill")]))
    assert store.current(path) == store.current(fresh)
    index = GraphIndex.open(path)
    assert index.manifest["counts"]["self_loops"] == 1
    assert [e.name for e in index.entities(np.arange(index.graph.num_entities))] == ["Lee Moss (cook)", "Tarn Mill"]
    assert index.table("aliases", "alias")[0] == ["Lee Moss", "Old Moss", "Tarny"]


# --- doors


def test_from_files_with_the_models_of_the_index(z_files: Path, tmp_path: Path) -> None:
    """The whole way, as people go it: spaCy and the encoder are found by the names in the manifest."""
    index = GraphIndex.build(z_files / "corpus.jsonl", tmp_path / "index", encoder="hashing:64")
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("Orla Venn died in London in 1950.", encoding="utf-8")
    (more / "b.txt").write_bytes(b"\x00\x01")
    grown = GraphIndex.open(tmp_path / "index").add(more)
    assert grown.change is not None
    assert (grown.change.added, grown.change.extracted) == (("a.txt",), 1)
    assert [(file.name, file.state) for file in grown.account.files] == [("a.txt", "indexed"), ("b.txt", "failed")]
    assert "London" in {grown.entity(i).name for i in range(grown.graph.num_entities)}
    assert index.passage_ids == ["p1", "p2", "p3", "p4", "p5"]
    (more / "a.txt").write_text("Orla Venn died in Paris in 1950.", encoding="utf-8")
    (more / "c.txt").write_text("Quince trees grow in Paris.", encoding="utf-8")
    with pytest.raises(GfmError, match=r"found another content for 'a\.txt'"):
        grown.add(more)
    assert grown.update(more, [document("d", "The Halder Sea.")]).document_ids[:3] == ["a.txt", "c.txt", "d"]
    (more / "a.txt").unlink()
    last = grown.update(more, delete_missing=True)
    assert last.document_ids == ["c.txt"]
    fresh = GraphIndex.build(more, tmp_path / "fresh", encoder="hashing:64")
    assert fresh.generation == last.generation


def test_a_file_that_cannot_be_read_any_more_is_not_missing(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"Text of {name}.", encoding="utf-8")
    index = GraphIndex.build(folder, tmp_path / "index", encoder="hashing:64", extractor="none")
    (folder / "a.txt").write_bytes(b"\x00\x01")
    (folder / "b.txt").unlink()
    last = index.update(folder, delete_missing=True)
    assert last.document_ids == ["a.txt", "c.txt"]
    assert last.passage(0).text == "Text of a.txt."


def test_a_cache_of_its_own(z_files: Path, tmp_path: Path) -> None:
    cache = tmp_path / "shared.sqlite"
    build = {"encoder": "hashing:64", "extractor": "none", "cache": cache}
    GraphIndex.build(z_files / "corpus.jsonl", tmp_path / "index", **build)
    change_corpora(tmp_path / "index", [[document("x", "New.")]], cache=cache)
    assert not (tmp_path / "index" / "cache.sqlite").exists()


class Slow(Capitals):
    """Adds to the index while it reads."""

    def __init__(self, meanwhile: Any) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        self.meanwhile()
        return super().extract(passages)


def test_readers_see_the_old_index_until_the_new_one_is_whole(path: Path) -> None:
    seen = []
    slow = Slow(lambda: seen.append(GraphIndex.open(path).graph.num_passages))
    change(path, [document("p6", "Lake Town.")], extractors=[slow])
    assert seen == [5]
    assert GraphIndex.open(path).graph.num_passages == 6


def test_triples_file_by_name(z_files: Path, tmp_path: Path) -> None:
    """The file of the whole corpus will do, with what is new in it."""
    index = GraphIndex.build(
        z_files / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", triples=z_files / "triples.jsonl"
    )
    lines = (z_files / "triples.jsonl").read_text(encoding="utf-8")
    row = {"head": "Halder Sea", "relation": "holds", "tail": "cod", "passage_id": "p6"}
    (tmp_path / "all.jsonl").write_text(lines + json.dumps(row) + "\n", encoding="utf-8")
    grown = index.add([document("p6", "Cod live there.")], triples=tmp_path / "all.jsonl")
    assert grown.change is not None
    assert (grown.change.added, grown.change.updated) == (("p6",), ())
    assert "Halder Sea holds cod" in grown.fact_texts
    assert GivenTriples(tmp_path / "all.jsonl").settings in grown.manifest["extractors"]
