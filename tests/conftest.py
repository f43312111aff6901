"""What every test stands on: offline, few threads, deterministic torch, Corpus Z."""

from __future__ import annotations

import os

# Before anything imports torch or a Hugging Face library: each reads these once, when it loads.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from gfm.types import Document

REPOSITORY = Path(__file__).resolve().parents[1]

torch.set_num_threads(2)
torch.use_deterministic_algorithms(True)

# Five passages, four facts in one chain, one passage without any: enough for a question of three steps.
CORPUS_Z = {
    "p1": "Tarn Mill was built by Orla Venn in 1911.",
    "p2": "Orla Venn was born in Port Isk.",
    "p3": "Port Isk lies on the Halder Sea.",
    "p4": "The Halder Sea freezes each winter.",
    "p5": "Quince jam keeps for a year.",
}


class CorpusZ(NamedTuple):
    """Corpus Z twice: in memory, and as a file in BEIR's layout."""

    documents: list[Document]
    path: Path


@pytest.fixture
def corpus_z(tmp_path: Path) -> CorpusZ:
    """Corpus Z as documents without titles, and the same in ``tmp_path/corpus.jsonl``."""
    documents = [Document(id=name, title="", text=text) for name, text in CORPUS_Z.items()]
    lines = [json.dumps({"_id": d.id, "title": d.title, "text": d.text}, ensure_ascii=False) + "\n" for d in documents]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return CorpusZ(documents, path)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of benchmark data beside the repository; tests that need it are skipped where it is not."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder `shared` with benchmark data beside the repository")
    return folder
