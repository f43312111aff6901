"""What every test stands on: offline, few threads, deterministic torch, Corpus Z."""

from __future__ import annotations

import os

# Before anything imports torch or a Hugging Face library: each reads these once, when it loads.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
if "PYTEST_XDIST_WORKER" in os.environ:  # of several workers, each has its core
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pytest
import torch
from hypothesis import settings

from gfm.types import Document
from tests.fake_llm import FakeLLM, serve

if TYPE_CHECKING:
    from gfm.index.index import GraphIndex

REPOSITORY = Path(__file__).resolve().parents[1]

settings.register_profile("gfm", deadline=None)  # a busy machine is no defect
settings.load_profile("gfm")
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)  # of several workers, each has its core
torch.use_deterministic_algorithms(True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that no worker starts it when the others are done."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


# Five passages, four facts in one chain, one passage without any: enough for a question of three steps.
CORPUS_Z = {
    "p1": "Tarn Mill was built by Orla Venn in 1911.",
    "p2": "Orla Venn was born in Port Isk.",
    "p3": "Port Isk lies on the Halder Sea.",
    "p4": "The Halder Sea freezes each winter.",
    "p5": "Quince jam keeps for a year.",
}


TRIPLES_Z = [
    ("Tarn Mill", "built by", "Orla Venn", "p1"),
    ("Orla Venn", "born in", "Port Isk", "p2"),
    ("Port Isk", "lies on", "Halder Sea", "p3"),
    ("Halder Sea", "freezes in", "winter", "p4"),
]


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


@pytest.fixture
def fake_llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """A language model's server on this machine; no setting of the person who runs the tests counts."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serve() as fake:
        yield fake


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


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    """One JSON object a line."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="session")
def z_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Corpus Z (corpus.jsonl) and its four triples (triples.jsonl); not to be written to."""
    folder = tmp_path_factory.mktemp("z")
    write_jsonl(folder / "corpus.jsonl", [{"_id": name, "text": text} for name, text in CORPUS_Z.items()])
    rows = [dict(zip(("head", "relation", "tail", "passage_id"), row, strict=True)) for row in TRIPLES_Z]
    write_jsonl(folder / "triples.jsonl", rows)
    return folder


@pytest.fixture(scope="session")
def z_index(z_files: Path) -> Path:
    """An index of Corpus Z with its given triples and the encoder hashing:64; not to be written to."""
    from gfm.index.index import GraphIndex

    path = z_files / "index"
    GraphIndex.build(z_files / "corpus.jsonl", path, encoder="hashing:64", triples=z_files / "triples.jsonl")
    return path


@pytest.fixture(scope="session")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights, the same in every run."""
    from gfm.nn.checkpoint import save_model
    from gfm.nn.model import GraphRetrieverModel, ModelSettings
    from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS

    folder = tmp_path_factory.mktemp("checkpoint")
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = GraphRetrieverModel(ModelSettings(node_inputs=NODE_INPUTS, edge_inputs=EDGE_INPUTS, width=16))
    save_model(model, folder)
    return folder


@pytest.fixture(scope="session")
def placed_index(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., GraphIndex]:
    """Makes a real index of texts, given triples and cosines chosen by hand, see `_placed_index`."""
    return lambda *args, **kwargs: _placed_index(tmp_path_factory.mktemp("placed"), *args, **kwargs)


def _placed_index(
    folder: Path,
    texts: Mapping[str, str],
    triples: Sequence[tuple[str, str, str, str]] = (),
    cosine: Mapping[str, float] | None = None,
    like: Mapping[str, str] | None = None,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
) -> GraphIndex:
    """An index whose encoder puts every question on the first axis.

    Args:
        folder: Where it is made.
        texts: By document id.
        triples: (head, relation, tail, document id).
        cosine: Of a passage, a name or a fact ("head relation tail") with any question; 0 where it is not given.
        like: Text → the text with which it shares all other axes; on its own it is far from every other text.
        metadata: By document id.
    """
    from gfm.index.index import GraphIndex
    from gfm.text.encoder import Fingerprint, HashingEncoder

    near, same = cosine or {}, like or {}

    class Placed(HashingEncoder):
        calls = 0

        @property
        def fingerprint(self) -> Fingerprint:
            return Fingerprint("placed", "0" * 64, 257, (0.0,) * 8)

        def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
            self.calls += is_query
            own = super().encode([same.get(text, text) for text in texts])
            first = np.array([1.0 if is_query else near.get(text, 0.0) for text in texts], dtype=np.float32)[:, None]
            return np.concatenate([first, np.sqrt(1.0 - first**2) * own], axis=1)  # (n, 1 + 256)

    rows = [{"_id": i, "text": text, **(metadata or {}).get(i, {})} for i, text in texts.items()]
    write_jsonl(folder / "corpus.jsonl", rows)
    keys = ("head", "relation", "tail", "passage_id")
    write_jsonl(folder / "triples.jsonl", [dict(zip(keys, row, strict=True)) for row in triples])
    given: dict[str, Any] = {"triples": folder / "triples.jsonl"} if triples else {"extractor": "none"}
    return GraphIndex.build(folder / "corpus.jsonl", folder / "index", encoder=Placed(256), **given)


class MakePdf(Protocol):
    """Bytes of a small PDF."""

    def __call__(self, *pages: list[str], encrypted: bool = False) -> bytes:
        """One page for each list of lines; a page without lines holds a picture. Encrypted, no password opens it."""


@pytest.fixture(scope="session")
def make_pdf() -> MakePdf:
    """Writes PDFs object by object, so that no test needs a library that makes them."""

    def make(*pages: list[str], encrypted: bool = False) -> bytes:
        kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
        objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        ]
        for n, lines in enumerate(pages):
            shown = " T* ".join("({}) Tj".format(re.sub(r"([()\\])", r"\\\1", line)) for line in lines)
            picture = "q 9 0 0 9 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"
            stream = f"BT /F1 11 Tf 14 TL 50 800 Td {shown} ET" if lines else picture
            objects += [
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * n} 0 R "
                "/Resources << /Font << /F1 3 0 R >> >> >>",
                f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            ]
        out, places = b"%PDF-1.4\n", []
        for number, body in enumerate(objects, start=1):
            places.append(len(out))
            out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
        locked = f"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'00' * 32}> /U <{'00' * 32}> >>"
        table = "".join(f"{place:010} 00000 n \n" for place in places)
        size = len(objects) + 1
        return (
            out
            + (
                f"xref\n0 {size}\n0000000000 65535 f \n{table}"
                f"trailer\n<< /Size {size} /Root 1 0 R {locked if encrypted else ''} >>\nstartxref\n{len(out)}\n%%EOF\n"
            ).encode()
        )

    return make
