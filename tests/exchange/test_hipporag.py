from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from gfm.exchange import formats
from gfm.exchange.hipporag import detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

DOCS: list[dict[str, Any]] = [
    {
        "idx": "chunk-1",
        "passage": "Tarn Mill\nTarn Mill was built by Orla Venn.",
        "extracted_entities": ["Tarn Mill", "Orla Venn", "1911"],
        "extracted_triples": [["Tarn Mill", "was built by", "Orla Venn"]],
    },
    {
        "idx": 7,
        "passage": "She left.\nNobody knows why.",
        "extracted_entities": ["Orla Venn", None, " "],
        "extracted_triples": [["Orla Venn", "left"], ["Orla Venn", "saw", 3], ["Orla Venn", "left", "Port Isk"]],
    },
    {"passage": "Nothing found here.", "extracted_entities": [], "extracted_triples": []},
]


def save(folder: Path, docs: object = DOCS, name: str = "openie_results_ner_gpt-4o-mini.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"docs": docs, "avg_ent_chars": 7}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["openie_results_ner_gpt-4o-mini.json", "openie_musique_results_ner_gpt_3_500.json"])
def test_both_versions(tmp_path: Path, name: str) -> None:
    tables = read(save(tmp_path / "outputs" / "musique", name=name))
    assert detect(tmp_path)
    assert [(d.id, d.title, d.text) for d in tables.documents[:2]] == [
        ("chunk-1", "Tarn Mill", "Tarn Mill was built by Orla Venn."),
        ("7", "", "She left.\nNobody knows why."),
    ]
    assert tables.documents[2] == Document(tables.documents[2].id, "", "Nothing found here.")
    assert tables.documents[2].id.startswith("doc-")
    assert tables.entities == [
        GivenEntity("1911", passage_ids=("chunk-1",)),
        GivenEntity("Orla Venn", passage_ids=("7", "chunk-1")),
        GivenEntity("Tarn Mill", passage_ids=("chunk-1",)),
    ]
    assert tables.triples == [
        GivenTriple("Tarn Mill", "was built by", "Orla Venn", ("chunk-1",)),
        GivenTriple("Orla Venn", "left", "Port Isk", ("7",)),
    ]
    (note,) = tables.notes
    assert note.startswith("entities and triples that are none, left out: 4, such as ")
    assert note.endswith("docs[1].extracted_triples[0]")


class Bomb:
    """What a hostile graph.pickle may hold."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("target", ["graph.pickle", "."])
def test_a_pickle_is_never_loaded(tmp_path: Path, target: str) -> None:
    """D11."""
    folder, marker = tmp_path / "run", tmp_path / "marker"
    folder.mkdir()
    (folder / "graph.pickle").write_bytes(pickle.dumps(Bomb(marker)))
    with pytest.raises(GfmError, match=r"only a pickle, which is never loaded.*Give the openie_results_ner"):
        formats.read(folder / target)
    assert not marker.exists()
    assert len(read(save(folder)).documents) == 3
    assert not marker.exists()


@pytest.mark.parametrize(
    ("docs", "words"),
    [
        ([], "expected an array 'docs'"),
        ({"a": 1}, "expected an array 'docs'"),
        (["x"], "docs[0]: expected an object with 'passage'"),
        ([DOCS[0], {"idx": "2", "passage": " "}], "docs[1]: expected a text that is not blank"),
        ([{"idx": "a\tb", "passage": "x"}], "docs[0]: expected the id of a passage"),
        ([{"idx": "1", "passage": "x", "extracted_triples": "y"}], "docs[0]: 'extracted_triples': expected an array"),
    ],
)
def test_bad_passages_are_named(tmp_path: Path, docs: object, words: str) -> None:
    with pytest.raises(GfmError) as error:
        read(save(tmp_path, docs))
    assert words in str(error.value)


def test_two_runs_have_to_be_told_apart(tmp_path: Path) -> None:
    save(save(tmp_path), name="openie_results_ner_other.json")
    with pytest.raises(GfmError, match="expected one openie"):
        read(tmp_path)
    assert len(read(tmp_path / "openie_results_ner_other.json").documents) == 3
