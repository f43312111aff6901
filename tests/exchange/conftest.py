"""Two graphs that pass through every format: one with everything that can be handed in, one that was found in texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from gfm.exchange.exchange import import_graph
from gfm.extract.extraction import Extraction, Mention
from gfm.index.index import GraphIndex
from gfm.types import Document, Passage

CORPUS = [
    {"_id": "p1", "title": "Tarn Mill", "text": 'Tarn Mill was built by Orla "Orl" Venn,\nin 1911 & burned <once>.'},
    {"_id": "p2", "text": "Orla Venn was born in Port Isk.", "metadata": {"year": 1880, "tags": ["a"]}},
    {"_id": "p3", "title": "notes.txt", "text": "Lee Moss dives at Port Isk. 李明创办了海港书店。"},
    {"_id": "p4", "title": "Mercury (planet)", "text": "Mercury is hot."},
]
ENTITIES = [
    {"id": "e1", "name": "Lee Moss", "type": "diver", "aliases": ["Moss"]},
    {"id": "e2", "name": "Lee Moss", "type": "treasurer", "description": "Keeps the books of Abel Works."},
    {"id": "e17", "name": "", "type": "place"},
    {"name": "Orla Venn", "description": "A builder, and a sailor.", "passage_ids": ["p1"]},
    {"name": "Solo, the; \"cat\" | 'c'", "passage_ids": ["p2"]},
    {"name": "Harbour Books", "aliases": ["海港书店"], "type": "shop"},
]
TRIPLES = [
    {
        "head": "Tarn Mill",
        "relation": "built by",
        "tail": "Orla Venn",
        "passage_id": "p1",
        "weight": 2.5,
        "description": "Orla Venn put up Tarn Mill.",
    },
    {"head": "Orla Venn", "relation": "born in", "tail": "Port Isk", "passage_id": "p2"},
    {"head": "ORLA VENN", "relation": "", "tail": "Port Isk", "passage_ids": ["p2", "p1"], "weight": 0.1},
    {"head": "Lee Moss", "head_id": "e1", "relation": "dives at", "tail": "Port Isk", "passage_id": "p3"},
    {"head": "Lee Moss", "relation": "is", "tail": "a name", "passage_id": "p3"},
    {"head": "", "head_id": "e17", "relation": "near", "tail": "Tarn Mill"},
    {"head": "Abel Works", "relation": "owns", "tail": "ABEL WORKS", "passage_id": "p2"},
    {"head": "Mercury", "relation": "orbits", "tail": "Sun", "passage_id": "p4", "text": "Mercury goes round the Sun."},
    {"head": "李明", "relation": "创办", "tail": "海港书店", "passage_id": "p3"},
    {"text": "A sentence of its own.", "passage_ids": ["p1", "p2"]},
]


@pytest.fixture(scope="session")
def rich_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our own form of a graph with everything in it; not to be written to."""
    folder = tmp_path_factory.mktemp("rich")
    for name, rows in (("corpus", CORPUS), ("entities", ENTITIES), ("triples", TRIPLES)):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    return folder


@pytest.fixture(scope="session")
def rich_index(rich_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of it; not to be written to."""
    path = tmp_path_factory.mktemp("rich_index") / "index"
    import_graph(rich_folder, path, encoder="hashing:32")
    return path


class Names:
    """An extractor that takes each sentence of a text for one, and each capitalised word in it for a name."""

    cached = True
    name = "names"
    rows = ()
    settings = "names-1"

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage."""
        return [self._one(p.text) for p in passages]

    def _one(self, text: str) -> Extraction:
        ends = [i + 1 for i, c in enumerate(text) if c == "."]
        starts = [0, *ends]
        words = [w.strip(".,") for w in text.split()]
        names = [w for w in words if w[:1].isupper() and len(w) > 3]
        return Extraction(
            sentences=tuple(zip(starts, ends, strict=False)),
            mentions=tuple(Mention(text.index(w), text.index(w) + len(w), "X") for w in dict.fromkeys(names)),
        )


@pytest.fixture(scope="session")
def found_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose facts were found in its texts, one of them long enough for several passages."""
    filler = " ".join(f"It rained on day {n}." for n in range(60))
    documents = [
        Document("a", "Orla Venn", "Orla built Tarnmill near Isk. It burned."),
        Document("b", "Port Isk", "Orla built Tarnmill near Isk. Nothing else happened."),
        Document("c", "", f"Zorin met Orla. {filler} Zorin left Isk. {filler}", {"n": 1}),
        Document("d", "", "nothing at all"),
        Document("e", "Mercury (planet)", "MERCURY is hot. Zorin saw Mercury."),
        Document("f", "Mercury (planet)", "Mercury is small."),
    ]
    path = tmp_path_factory.mktemp("found") / "index"
    GraphIndex.build_from(documents, [Names()], path, "hashing:32")
    return path
