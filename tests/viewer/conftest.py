"""An index of texts that try to break out of a page, and what explains an answer from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.gnn import GNNRetriever
from gfm.retrievers import load_retriever
from gfm.viewer.graph import explanation

ATTACK = "</script><script>window.hacked = 1</script>"
TITLE = f"<script>window.hacked = 1</script> “Tarn” & 'Mill' {ATTACK}"
TEXT = f'🚀🚀 Tarn Mill was built by Orla Venn. <img src=x onerror="window.hacked = 1">{ATTACK}\u2028<!-- End.'
HOSTILE = [
    {"_id": "evil", "title": TITLE, "text": TEXT},
    {"_id": "rtl", "title": "طاحونة \u202e تارن", "text": "بنيت الطاحونة عام 1911. Orla Venn was born in Port Isk."},
    {"_id": "quote\"'<b>", "title": "", "text": "Port Isk lies on the Halder Sea."},
    {"_id": "jam", "title": "Jam", "text": "Quince jam keeps for a year."},
]
RELATION = '"><svg onload="window.hacked = 1">'
QUESTION = f"Who built Tarn Mill? {ATTACK}"


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile_index(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    """Four documents; of one, title, text, relation and names are markup."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    corpus = _write(folder / "corpus.jsonl", HOSTILE)
    triples = [
        ("Tarn Mill", RELATION, "Orla Venn", "evil"),
        ("Orla Venn", "born in", "Port Isk", "rtl"),
        ("Port Isk", "lies on", "Halder Sea", HOSTILE[2]["_id"]),
        ("Orla Venn", "wrote", ATTACK, "evil"),
    ]
    keys = ("head", "relation", "tail", "passage_id")
    given = _write(folder / "triples.jsonl", [dict(zip(keys, row, strict=True)) for row in triples])
    return GraphIndex.build(corpus, folder / "index", encoder="hashing:64", triples=given)


@pytest.fixture(scope="session")
def hostile(hostile_index: GraphIndex, untrained: Path) -> dict[str, Any]:
    """The explanation of an answer from it, with BM25 beside: three passages, and what is of jam is cut."""
    retriever = GNNRetriever.from_pretrained(hostile_index, untrained)
    explained = retriever.explain(QUESTION, len(HOSTILE))
    made = explanation(hostile_index, explained, load_retriever("bm25", hostile_index).retrieve(QUESTION, 3))
    made["passages"] = [hit for hit in made["passages"] if hit["id"] != "jam"]
    for node in made["graph"]["nodes"]:
        node["kept"] = node["id"] != "jam"
    return made
