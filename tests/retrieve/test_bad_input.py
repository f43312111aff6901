"""Bad input, row by row, from the file to the answer: the right result, or an error that names what to mend.

Where another file already proves a row, it is named here and not repeated.

| Bad input | Here | Elsewhere |
|---|---|---|
| Empty or blank question | every retriever | retrieve/test_base.py, cli/test_app.py, test_infer_door.py |
| No passages | an empty corpus | index/test_documents.py, index/test_builder.py |
| Passages without entities | every retriever | retrieve/test_gnn.py (A01), index/test_builder.py |
| Graph without edges | every retriever | retrieve/test_gnn.py, retrieve/test_candidates.py (A02) |
| k larger than the index | every retriever | index/test_vectors.py (D02) |
| Duplicate passage ids | – | index/test_documents.py, index/test_builder.py |
| Missing fields | – | index/test_documents.py, extract/test_given.py |
| Broken JSON line | corpus and triples | index/test_documents.py, extract/test_given.py, cli/test_app.py |
| BOM and CRLF | to the answer | index/test_documents.py |
| Names in other scripts | to the answer | text/test_normalise.py, graph/test_linker.py, index/test_lexical.py |
| A NaN vector | of a question | text/test_encoder.py, index/test_cache.py, index/test_builder.py |
| An index of another encoder | of equal dimension | index/test_index.py |
| A cut-off or altered file | opened by a retriever | index/test_store.py, index/test_index.py, nn/test_checkpoint.py |
| A hub of 50,000 edges | – | retrieve/test_candidates.py (A13), graph/test_pagerank.py |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Retriever
from gfm.retrievers import NAMES, TRAINED, load_retriever
from gfm.text.encoder import Fingerprint, HashingEncoder
from gfm.types import GfmError

MakeIndex = Callable[..., GraphIndex]


@pytest.fixture(params=NAMES)
def open_retriever(request: pytest.FixtureRequest, untrained: Path) -> Callable[[GraphIndex], Retriever]:
    """Each retriever in turn, over any index."""
    extra = {"path": untrained} if request.param in TRAINED else {}
    return lambda index: load_retriever(request.param, index, **extra)


OpenRetriever = Callable[[GraphIndex], Retriever]


@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u3000\u00a0"])
def test_a04_empty_or_blank_question(open_retriever: OpenRetriever, z: GraphIndex, question: str) -> None:
    with pytest.raises(GfmError, match=r"^expected a question, found .*: empty or blank"):
        open_retriever(z).retrieve(question)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_no_passages(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(content)
    with pytest.raises(GfmError, match=r"corpus\.jsonl"):
        GraphIndex.build(tmp_path / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", extractor="none")
    assert not (tmp_path / "index").exists()


def test_a01_passages_without_entities(open_retriever: OpenRetriever, make_index: MakeIndex) -> None:
    index = make_index({"a": "It was late.", "b": "Some time passed.", "c": "Then it stopped."})
    assert index.graph.num_entities == 0
    result = open_retriever(index).retrieve("what stopped?", top_k=10)
    assert result.passages[0].item.id == "c"
    assert np.isfinite([h.score for h in result.passages]).all()


def test_a02_graph_without_edges(open_retriever: OpenRetriever, tmp_path: Path) -> None:
    """Entities from titles alone; each title is mentioned by its own passage and related to nothing."""
    rows = [
        {"_id": f"p{i}", "title": name, "text": f"{name} is here."} for i, name in enumerate(["Orla", "Zorin", "Isk"])
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = GraphIndex.build(tmp_path / "corpus.jsonl", tmp_path / "i", encoder="hashing:64", extractor="none")
    assert (index.graph.num_entities, index.graph.num_triples) == (3, 0)
    result = open_retriever(index).retrieve("Where is Zorin?", top_k=3)
    assert "p1" in [h.item.id for h in result.passages]
    assert result.triples == []


def test_d02_k_larger_than_the_index(open_retriever: OpenRetriever, z: GraphIndex) -> None:
    ids = [h.item.id for h in open_retriever(z).retrieve("The sea by Port Isk in winter", top_k=10_000).passages]
    assert len(ids) == len(set(ids)) <= 5
    assert set(ids) <= {"p1", "p2", "p3", "p4", "p5"}


@pytest.mark.parametrize(
    ("name", "line"), [("corpus.jsonl", '{"_id": "p2", "text": "x"'), ("triples.jsonl", '{"head": "A", "relation"')]
)
def test_broken_json_line(tmp_path: Path, name: str, line: str) -> None:
    good = {
        "corpus.jsonl": '{"_id": "p1", "text": "A r B."}\n',
        "triples.jsonl": '{"head": "A", "relation": "r", "tail": "B", "passage_id": "p1"}\n',
    }
    for file, text in good.items():
        (tmp_path / file).write_text(text + (line + "\n" if file == name else ""), encoding="utf-8")
    with pytest.raises(GfmError, match=rf"{name}.*2"):
        GraphIndex.build(
            tmp_path / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", triples=tmp_path / "triples.jsonl"
        )
    assert not (tmp_path / "index").exists()


def test_b06_bom_and_crlf(open_retriever: OpenRetriever, tmp_path: Path) -> None:
    """A byte-order mark, CRLF, and a line separator inside a text: three passages, two facts, the right answer."""
    texts = {"p1": "Tarn Mill was built by Orla Venn.", "p2": "Orla Venn was born\u2028in Port Isk.", "p3": "Jam."}
    facts = [("Tarn Mill", "built by", "Orla Venn", "p1"), ("Orla Venn", "born in", "Port Isk", "p2")]
    keys = ("head", "relation", "tail", "passage_id")
    files: dict[str, Sequence[dict[str, str]]] = {
        "corpus.jsonl": [{"_id": i, "text": text} for i, text in texts.items()],
        "triples.jsonl": [dict(zip(keys, row, strict=True)) for row in facts],
    }
    for name, rows in files.items():
        body = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + body.encode() + b"\r\n")
    index = GraphIndex.build(
        tmp_path / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", triples=tmp_path / "triples.jsonl"
    )
    assert (index.passage_ids, index.graph.num_facts) == (["p1", "p2", "p3"], 2)
    result = open_retriever(index).retrieve("Where was Orla Venn born?", top_k=3)
    assert {"p1", "p2"} <= {h.item.id for h in result.passages}


SCRIPTS = {
    "chinese": ("李明", "创办", "海港书店", "李明创办了海港书店。", "谁创办了海港书店？"),
    "arabic": ("مطحنة النور", "بناها", "سالم", "مطحنة النور بناها سالم.", "من بنى مطحنة النور؟"),
    "russian": ("Мельница Тарн", "построена", "Орла Венн", "Мельница Тарн построена Орлой Венн.", "Где Мельница Тарн?"),
    "greek": ("ΜΎΛΟΣ", "από", "Όρλα", "Ο μύλος χτίστηκε από την Όρλα.", "Ποιος έχτισε τον Μύλος;"),
    "hindi": ("मिल", "बनाया", "ओरला", "ओरला ने मिल बनाया।", "मिल किसने बनाया?"),
}


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_b10_names_in_other_scripts(open_retriever: OpenRetriever, make_index: MakeIndex, script: str) -> None:
    texts = {name: row[3] for name, row in SCRIPTS.items()}
    index = make_index(texts, [(*row[:3], name) for name, row in SCRIPTS.items()])
    assert index.graph.num_entities == 10  # no name was lost or merged
    head, _, _, _, question = SCRIPTS[script]
    result = open_retriever(index).retrieve(question, top_k=5)
    assert script in [h.item.id for h in result.passages]
    if result.trace["retriever"] == "gfm" and script != "chinese":  # Chinese words are not cut apart
        assert head in result.trace["linked_entities"]


class Broken(HashingEncoder):
    """Says that it is hashing:64 and gives NaN for questions."""

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        vectors = super().encode(texts, is_query=is_query, progress=progress)
        return vectors * np.float32("nan") if is_query else vectors


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bm25", "ppr_entity")])
def test_c09_a_nan_vector(z_index: Path, untrained: Path, name: str) -> None:
    extra = {"path": untrained} if name in TRAINED else {}
    retriever = load_retriever(name, GraphIndex.open(z_index, Broken(64)), **extra)
    with pytest.raises(
        GfmError, match=r"expected finite query vectors .* use the encoder that the index was built with"
    ):
        retriever.retrieve("Where was Orla Venn born?")


class Other(HashingEncoder):
    """Another encoder of equal dimension."""

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint("other:64", "0" * 64, 64, (0.5,) * 8)


def test_d01_an_index_of_another_encoder(z_index: Path) -> None:
    with pytest.raises(GfmError, match=r"built with encoder 'hashing:64'.*query encoder is 'other:64'.*gfm index PATH"):
        GraphIndex.open(z_index, Other(64))


@pytest.mark.parametrize("name", ["vectors.safetensors", "graph.safetensors", "passages.parquet", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut off", "altered", "missing"])
def test_d09_a_cut_off_or_altered_file(make_index: MakeIndex, name: str, damage: str) -> None:
    index = make_index({"a": "Orla Venn.", "b": "Port Isk."}, [("Orla Venn", "of", "Port Isk", "a")])
    path = next(index.path.rglob(name))
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(data) // 2
        path.write_bytes(
            data[:middle] + (b"" if damage == "cut off" else bytes([data[middle] ^ 1]) + data[middle + 1 :])
        )
    with pytest.raises(GfmError, match=name.replace(".", r"\.")):
        GraphIndex.open(index.path)


def test_a_question_of_a_metadata_kind_is_no_surprise(open_retriever: OpenRetriever, z: GraphIndex) -> None:
    bad: Any = {"text": "Where?"}
    with pytest.raises(GfmError, match="expected a question"):
        open_retriever(z).retrieve(bad)
