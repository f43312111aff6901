"""``gfm bench`` and ``gfm convert``, as people and scripts meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Gfm

QUICK = ("--encoder", "hashing:64", "--extractor", "none", "--limit", "6", "--one-process", "--no-pictures")


@pytest.fixture(autouse=True)
def in_a_folder_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_tables_progress_and_a_second_run(gfm: Gfm, tmp_path: Path) -> None:
    command = ("bench", "demo", *QUICK, "--retrievers", "dense,bm25", "--out", "b")
    status, output, errors = gfm(*command)
    assert status == 0
    for part in ("All sets", "quality", "by hops", "strict recall: gold", "Wrote bench.json, bench.md", "p: of the"):
        assert part in output
    assert max(map(len, output.split("\n"))) <= 80
    assert output.isascii()
    assert "asking bm25" in errors
    assert json.loads((tmp_path / "b" / "bench.json").read_text(encoding="utf-8"))["command"] == " ".join(
        ("gfm", *command)
    )
    assert "the same figures as the run of" in gfm(*command)[1].replace("\n", " ")


def test_json_is_the_report_alone(gfm: Gfm) -> None:
    status, output, _ = gfm("bench", "demo", *QUICK, "--retrievers", "bm25", "--json")
    report = json.loads(output)
    assert status == 0
    (of,) = report["sets"].values()
    assert of["data"]["questions"] == 6
    assert report["settings"]["retrievers"] == [{"label": "bm25", "settings": {"name": "bm25"}}]
    assert report["repeated"] == []


def test_a_file_of_settings(gfm: Gfm, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("data: [demo]\nretrievers: [bm25]\nseed: 9\nout: c\n", encoding="utf-8")
    status, output, _ = gfm("bench", "--config", "mine.yaml", *QUICK)
    assert status == 0
    assert "Seed 9" in output
    assert (tmp_path / "c" / "bench.md").is_file()


def test_convert_tells_the_format_and_the_next_step(gfm: Gfm, tmp_path: Path) -> None:
    entry = {"_id": "a", "question": "who?", "supporting_facts": [["T", 0]], "context": [["T", ["It was Orla."]]]}
    (tmp_path / "hotpot_train.json").write_text(json.dumps([entry]), encoding="utf-8")
    status, output, _ = gfm("convert", "hotpot_train.json", "--out", "set")
    assert status == 0
    assert output.startswith("format: HotpotQA\n1 questions, 1 with gold passages; 1 passages")
    assert output.endswith("next: gfm bench set\n")
    assert gfm("bench", "set", *QUICK, "--retrievers", "bm25")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench",), "expected folders with question sets"),
        (("bench", "demo", "--retrievers", "magic"), "retriever 'magic': expected one of"),
        (("bench", "demo", "--config", "nowhere.yaml"), "nowhere.yaml: expected a YAML file"),
        (("convert", "nowhere.json", "--out", "x"), "nowhere.json: expected a readable file"),
    ],
)
def test_what_a_person_can_mend_is_one_line(gfm: Gfm, arguments: tuple[str, ...], message: str) -> None:
    status, output, errors = gfm(*arguments)
    assert (status, output) == (1, "")
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors
