from __future__ import annotations

import json
from pathlib import Path

import pytest

from gfm.exchange.exchange import export_graph, import_graph
from gfm.exchange.gfm_rag import detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

CORPUS = {"Tarn Mill": "It was built by Orla Venn.", "doc-2": "Orla Venn left.", "Quince jam": "It keeps."}
ENTITIES_OF = {"Tarn Mill": ["tarn mill", "orla venn"], "doc-2": ["orla venn", "port isk"], "gone": ["tarn mill"]}
KG = "tarn mill,built by,orla venn\norla venn,left,port isk\ntarn mill,near,port isk\ntarn mill,equivalent,tarn mills\n"


def save(folder: Path, kg: str = KG, entities_of: object = ENTITIES_OF, corpus: object = CORPUS) -> Path:
    raw, stage = folder / "raw", folder / "processed" / "stage1"
    raw.mkdir(parents=True)
    stage.mkdir(parents=True)
    (raw / "dataset_corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    (stage / "kg.txt").write_text(kg, encoding="utf-8")
    (stage / "document2entities.json").write_text(json.dumps(entities_of), encoding="utf-8")
    return folder


@pytest.mark.parametrize("place", [".", "processed/stage1"])
def test_a_data_set(tmp_path: Path, place: str) -> None:
    tables = read(save(tmp_path / "hotpotqa") / place)
    assert detect(tmp_path / "hotpotqa" / place)
    assert tables.documents == [
        Document("Tarn Mill", "Tarn Mill", "It was built by Orla Venn."),
        Document("doc-2", "", "Orla Venn left."),
        Document("Quince jam", "", "It keeps."),
    ]
    assert tables.entities == [
        GivenEntity("orla venn", passage_ids=("Tarn Mill", "doc-2")),
        GivenEntity("port isk", passage_ids=("doc-2",)),
        GivenEntity("tarn mill", passage_ids=("Tarn Mill",)),
    ]
    assert tables.triples == [
        GivenTriple("tarn mill", "built by", "orla venn", ("Tarn Mill",)),
        GivenTriple("orla venn", "left", "port isk", ("doc-2",)),
        GivenTriple("tarn mill", "near", "port isk"),
    ]
    assert tables.notes[0].startswith("documents that entities name that are not there, left out: 1, such as 'gone'")
    assert tables.notes[1] == "edges between near names ('equivalent'), left out: 1; an index makes its own"


def test_an_index_shows_the_title(tmp_path: Path) -> None:
    index = import_graph(save(tmp_path / "set"), tmp_path / "index", encoder="hashing:16").index
    assert index is not None
    assert [index.entity(i).name for i in range(index.graph.num_entities)] == ["orla venn", "port isk", "tarn mill"]
    assert index.passage_ids == ["Quince jam", "Tarn Mill", "doc-2", "entity:tarn mill"]


def test_names_lose_their_commas(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"head": "Isk, Port", "relation": "a, b", "tail": "C"}\n', encoding="utf-8")
    export_graph(tmp_path / "t.jsonl", tmp_path / "out", "gfm-rag")
    stage = tmp_path / "out" / "processed" / "stage1"
    assert (stage / "kg.txt").read_text(encoding="utf-8") == "Isk Port,a b,C\n"
    assert json.loads((stage / "document2entities.json").read_text(encoding="utf-8")) == {
        "Isk, Port": ["C", "Isk Port"]
    }


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"kg": "a,r,b\na,b\n"}, "kg.txt:2: expected head,relation,tail, found 'a,b'"),
        ({"kg": "a,r,b,c\n"}, "kg.txt:1: expected head,relation,tail"),
        ({"kg": "a,r, \n"}, "kg.txt:1: expected head,relation,tail"),
        ({"entities_of": {"d": "x"}}, "document2entities.json: 'd': expected an array of names"),
        ({"corpus": {"d": 1}}, "dataset_corpus.json: 'd': expected a text"),
        ({"corpus": []}, "dataset_corpus.json: expected an object"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, files: dict[str, object], words: str) -> None:
    with pytest.raises(GfmError) as error:
        read(save(tmp_path / "set", **files))  # type: ignore[arg-type]
    assert words in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    (save(tmp_path / "set") / "raw" / "dataset_corpus.json").unlink()
    with pytest.raises(GfmError, match=r"expected one file documents\.json or dataset_corpus\.json, found 0"):
        read(tmp_path / "set")
