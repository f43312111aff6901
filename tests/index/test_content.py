from __future__ import annotations

import json
from pathlib import Path

import pytest

from gfm.index import store
from gfm.index.builder import build_index
from gfm.index.content import metadata_json, read_content, read_documents_of, write_content
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError
from tests.index.fakes import Capitals, triples_of

LONG = "  Tarn Mill met Orla Venn.\n\n\n" * 20
DOCUMENTS = [
    Document("b", "Tarn Mill", LONG, {"page": 1, "who": {"name": "李明"}}),
    Document("a", "", "Orla Venn \n"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A generation of a long and a short document."""
    given = triples_of(tmp_path, {"a": [("Orla Venn", "is", "李明")]})
    build_index(DOCUMENTS, tmp_path / "i", HashingEncoder(16), [Capitals(), given], BuildSettings(chunk_tokens=40))
    return tmp_path / "i" / store.current(tmp_path / "i")


def test_documents_are_kept_as_they_came(folder: Path) -> None:
    documents, passages = read_documents_of(folder)
    assert documents == sorted(DOCUMENTS, key=lambda d: d.id)
    assert len(passages) > 3
    assert [json.loads(row) for row in read_content(folder).given] == [
        ["triple", {"head": head, "relation": "is", "tail": tail, "passage_ids": ["a"]}]
        for head, tail in (("Orla Venn", "李明"), ("Nothing", "nothing"))
    ]


def test_metadata_is_the_same_once_it_was_read_back() -> None:
    """Keys that are numbers, and values that JSON does not know, become text at once."""
    text = metadata_json(Document("a", "", "A", {10: Path("x"), 9: (1, 2), "b": float("inf")}))
    assert text == '{"10": "x", "9": [1, 2], "b": Infinity}'
    assert metadata_json(Document("a", "", "A", json.loads(text))) == text
    assert metadata_json(Document("a", "", "A")) == "{}"


def test_written_and_read_and_written(folder: Path, tmp_path: Path) -> None:
    content = read_content(folder)
    (tmp_path / "again").mkdir()
    details = store.read_table(folder / "entities.parquet").to_pydict()
    write_content(tmp_path / "again", content, {name: details[name] for name in ("id", "type", "description")})
    names = sorted(p.name for p in (tmp_path / "again").iterdir())
    assert set(names) == {p.name for p in folder.iterdir()} - {
        *("graph.safetensors", "lexical.safetensors", "manifest.json"),
        *(f"{name}.parquet" for name in ("triples", "forms", "aliases")),
    }
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_an_earlier_version_kept_no_texts(folder: Path) -> None:
    store.write_table(folder / "documents.parquet", {"id": [], "title": [], "metadata": []})
    with pytest.raises(GfmError, match=f"build it again, once: gfm index PATH --out {folder.parent}"):
        read_documents_of(folder)
