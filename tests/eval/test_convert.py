"""Official files, a few hand-written entries in the shape of each."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gfm.eval.beir import load_dataset
from gfm.eval.convert import Asked, convert, read_official
from gfm.index.documents import read_documents
from gfm.types import GfmError

HOTPOT: list[dict[str, Any]] = [
    {
        "_id": "5a8b",
        "question": "Where was the builder of  Tarn Mill born?",
        "answer": "Port Isk",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Tarn Mill", 0], ["Orla Venn", 1], ["Orla Venn", 0]],
        "context": [
            ["Tarn Mill", ["Tarn Mill was built by Orla Venn.", " It burned in 1911."]],
            ["Orla Venn", ["Orla Venn was a builder.", " She was born in Port Isk."]],
            ["Jam", ["Quince jam keeps for a year."]],
        ],
    },
    {
        "_id": "5a8c",
        "question": "Which keeps longer, quince jam or plum jam?",
        "answer": "quince jam",
        "type": "comparison",
        "level": "medium",
        "supporting_facts": [["Jam", 0], ["Plum", 0]],
        "context": [
            ["Jam", ["Plum jam keeps for a month."]],
            ["Orla Venn", ["Orla Venn was a builder.", " She was born in Port Isk."]],
        ],
    },
]
WIKI: list[dict[str, Any]] = [
    {
        "_id": "13f5",
        "type": "compositional",
        "question": "Where was the builder of Tarn Mill born?",
        "context": HOTPOT[0]["context"],
        "supporting_facts": [["Tarn Mill", 0], ["Orla Venn", 0]],
        "evidences": [["Tarn Mill", "builder", "Orla Venn"], ["Orla Venn", "place of birth", "Port Isk"]],
        "answer": "Port Isk",
    }
]
MUSIQUE: list[dict[str, Any]] = [
    {
        "id": "2hop__1_2",
        "paragraphs": [
            {"idx": 0, "title": "Tarn Mill", "paragraph_text": "Built by Orla Venn.", "is_supporting": True},
            {"idx": 1, "title": "Jam", "paragraph_text": "Jam keeps.", "is_supporting": False},
            {"idx": 2, "title": "Orla Venn", "paragraph_text": "Born in Port Isk.", "is_supporting": True},
            {"idx": 3, "title": "Blank", "paragraph_text": " \n", "is_supporting": False},
        ],
        "question": "Where was the builder of Tarn Mill born?",
        "question_decomposition": [
            {"id": 1, "question": "Tarn Mill >> builder", "answer": "Orla Venn", "paragraph_support_idx": 0},
            {"id": 2, "question": "#1 >> place of birth", "answer": "Port Isk", "paragraph_support_idx": 2},
        ],
        "answer": "Port Isk",
        "answer_aliases": ["Isk"],
        "answerable": True,
    },
    {
        "id": "2hop__1_2",
        "paragraphs": [{"idx": 0, "title": "Tarn Mill", "paragraph_text": "It burned.", "is_supporting": True}],
        "question": "Where was the builder of Tarn Mill born?",
        "question_decomposition": [],
        "answer": "Port Isk",
        "answer_aliases": [],
        "answerable": False,
    },
]


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_hotpotqa(tmp_path: Path) -> None:
    file = put(tmp_path / "hotpot_dev_distractor_v1.json", json.dumps(HOTPOT))
    found = convert(file, tmp_path / "set")
    assert (found.format, found.split) == ("HotpotQA", "dev")
    assert found.counts == {"questions": 2, "judged": 1, "passages": 4, "repeated": 1, "blank": 0}
    assert "1 questions are not judged" in found.text()
    dataset = load_dataset(found.folder)
    first, second = dataset.queries
    assert (first.id, first.text) == ("5a8b", "Where was the builder of Tarn Mill born?")
    assert first.metadata == {"answer": "Port Isk", "type": "bridge", "level": "hard", "hops": 2}
    assert dataset.qrels == {"5a8b": {"Tarn Mill": 1, "Orla Venn": 1}}
    assert second.metadata["hops"] == 2
    documents = {d.id: d for d in read_documents(dataset.corpus).documents}
    assert documents["Orla Venn"].text == "Orla Venn was a builder. She was born in Port Isk."
    jams = sorted(name for name, d in documents.items() if d.title == "Jam")
    assert len(jams) == 2  # two texts under one title: neither may pass for the other
    assert all(name.startswith("Jam [") for name in jams)


def test_2wiki_tells_its_evidences(tmp_path: Path) -> None:
    found = convert(put(tmp_path / "train.json", json.dumps(WIKI)), tmp_path / "set")
    assert (found.format, found.split) == ("2WikiMultiHopQA", "train")
    (query,) = load_dataset(found.folder).queries
    assert query.metadata["evidences"][1] == ["Orla Venn", "place of birth", "Port Isk"]
    assert (query.metadata["type"], query.metadata["hops"]) == ("compositional", 2)


def test_musique_tells_its_steps_and_an_unanswerable_twin_has_no_gold(tmp_path: Path) -> None:
    found = convert(put(tmp_path / "musique_full_v1.0_test.jsonl", lines(MUSIQUE)), tmp_path / "set")
    assert (found.format, found.split) == ("MuSiQue", "test")
    assert found.counts == {"questions": 2, "judged": 1, "passages": 4, "repeated": 0, "blank": 1}
    dataset = load_dataset(found.folder)
    assert [q.id for q in dataset.queries] == ["2hop__1_2", "2hop__1_2-unanswerable"]
    assert dataset.qrels["2hop__1_2"].keys() == {
        next(d.id for d in read_documents(dataset.corpus).documents if d.text == text)
        for text in ("Built by Orla Venn.", "Born in Port Isk.")
    }
    assert (dataset.queries[0].metadata["type"], dataset.queries[0].metadata["hops"]) == ("2hop", 2)
    assert dataset.queries[0].metadata["decomposition"][0]["answer"] == "Orla Venn"


@pytest.mark.parametrize("shape", ["list", "lines", "gz list", "gz lines", "mark"])
def test_every_shape_of_a_file_gives_the_same(tmp_path: Path, shape: str) -> None:
    text = lines(HOTPOT) if "lines" in shape else json.dumps(HOTPOT, indent=1)
    data = b"\xef\xbb\xbf" * (shape == "mark") + text.encode()
    file = tmp_path / "any.name"
    file.write_bytes(gzip.compress(data) if shape.startswith("gz") else data)
    assert read_official(file) == read_official(put(tmp_path / "x.json", json.dumps(HOTPOT)))


def test_the_order_of_entries_changes_no_name(tmp_path: Path) -> None:
    convert(put(tmp_path / "a.json", json.dumps(HOTPOT)), tmp_path / "a")
    convert(put(tmp_path / "b.json", json.dumps(HOTPOT[::-1])), tmp_path / "b")
    names = [{d.id: d.text for d in read_documents(tmp_path / name).documents} for name in ("a", "b")]
    assert names[0] == names[1]


def test_a_test_file_without_answers_is_a_set_without_gold(tmp_path: Path) -> None:
    rows = [{k: row[k] for k in ("_id", "question", "context")} for row in HOTPOT]
    found = convert(put(tmp_path / "x.json", json.dumps(rows)), tmp_path / "set")
    assert found.counts["judged"] == 0
    assert load_dataset(found.folder).qrels == {}


def test_gold_without_text_or_outside_the_context_makes_no_judgement(tmp_path: Path) -> None:
    blank = {
        **MUSIQUE[0],
        "paragraphs": [{**MUSIQUE[0]["paragraphs"][0], "paragraph_text": ""}, *MUSIQUE[0]["paragraphs"][1:]],
    }
    _, (asked,) = read_official(put(tmp_path / "m.jsonl", lines([blank])))
    assert isinstance(asked, Asked)
    assert asked.gold == []


def bad(row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**row, **changes}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps([HOTPOT[0], bad(HOTPOT[1], question=" ")]), ": entry 2: 'question' is blank"),
        (lines([HOTPOT[0], bad(HOTPOT[1], question=" ")]), ":2: 'question' is blank"),
        (json.dumps([bad(HOTPOT[0], context=[["x"]])]), r": entry 1: 'context': expected \[title"),
        (json.dumps([bad(HOTPOT[0], context={"title": []})]), ": entry 1: 'context': expected a list"),
        (json.dumps([bad(HOTPOT[0], supporting_facts=[3])]), ": entry 1: 'supporting_facts': expected"),
        (json.dumps([bad(HOTPOT[0], _id=None)]), ": entry 1: expected the field '_id' with an id"),
        (json.dumps([HOTPOT[0], HOTPOT[0]]), ": entry 2: the id '5a8b' stands at 1 too"),
        (json.dumps([HOTPOT[0], WIKI[0]]), ": entry 2: expected an entry of HotpotQA as before, found one of 2Wiki"),
        (lines([bad(MUSIQUE[0], paragraphs=[{"title": "x"}])]), ":1: 'paragraphs': expected an object"),
        (lines([{"text": "x"}]), ":1: expected a file of HotpotQA .* found the fields 'text'"),
        (lines(MUSIQUE[:1]) + "\n{", ":3: expected one JSON object"),
        (json.dumps([1]), ": entry 1: expected a JSON object, found 1"),
        ("[1,", "expected a JSON list, found: "),
        ("", "found no entry"),
        (json.dumps([bad(HOTPOT[0], context=[])]), "expected questions with passages"),
        ("PK\x03\x04", "found a .zip; unpack it"),
    ],
)
def test_a_bad_row_is_named_by_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = put(tmp_path / "x.json", text)
    with pytest.raises(GfmError, match=words) as error:
        convert(file, tmp_path / "set")
    assert str(error.value).startswith(str(file))
    assert not (tmp_path / "set").exists()


def test_a_set_is_never_written_over(tmp_path: Path) -> None:
    file = put(tmp_path / "x.json", json.dumps(HOTPOT))
    convert(file, tmp_path / "set", "mine")
    assert load_dataset(tmp_path / "set", "mine").judged()
    with pytest.raises(GfmError, match="is there already"):
        convert(file, tmp_path / "set")
    with pytest.raises(GfmError, match="--split: expected a name"):
        convert(file, tmp_path / "other", "../x")
    with pytest.raises(GfmError, match="expected a readable file"):
        convert(tmp_path / "nowhere", tmp_path / "other")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"[1, 2, 3]")[:-9])
    with pytest.raises(GfmError, match="ends early"):
        convert(tmp_path / "cut.gz", tmp_path / "other")
