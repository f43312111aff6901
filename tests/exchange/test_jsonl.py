from __future__ import annotations

from pathlib import Path

import pytest

from gfm.exchange.exchange import import_graph
from gfm.exchange.jsonl import detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_three_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        passages='{"id": "p1", "text": "Tarn Mill."}\n',
        entities='{"name": "Tarn Mill", "colour": "red"}\n',
        triples='{"head": "A", "relation": "r", "tail": "B", "passage_id": "p1", "score": 1, "year": 2}\n',
    )
    assert detect(tmp_path)
    tables = read(tmp_path)
    assert tables.documents == [Document("p1", "", "Tarn Mill.")]
    assert tables.entities == [GivenEntity("Tarn Mill")]
    assert tables.triples == [GivenTriple("A", "r", "B", ("p1",))]
    assert tables.notes == [
        "entities.jsonl: fields that are not known, left out: colour",
        "triples.jsonl: fields that are not known, left out: score, year",
    ]


def test_a_file_of_triples_alone_makes_an_index(tmp_path: Path) -> None:
    path = write(tmp_path, t='{"head": "A", "relation": "r", "tail": "B"}\n') / "t.jsonl"
    assert detect(path)
    index = import_graph(path, tmp_path / "index", encoder="hashing:16").index
    assert index is not None
    assert (index.passage(0).title, index.passage(0).text) == ("A", "A r B.")
    assert index.triple(0).passage_ids == ("entity:A",)


def test_an_empty_file_and_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path, t="\n") / "t.jsonl"
    with pytest.raises(GfmError, match="found none"):
        read(path)
    write(tmp_path, entities='{"name": "A"}\n{"names": "B"}\n')
    with pytest.raises(GfmError, match=r"entities\.jsonl:2: expected the field 'name'"):
        read(tmp_path)


def test_a_folder_of_texts_is_no_graph(tmp_path: Path) -> None:
    assert not detect(write(tmp_path, corpus='{"text": "x"}\n'))
