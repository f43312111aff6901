"""``infer.py`` from outside: what it prints and writes, and how it fails."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

from gfm.retrievers import NAMES, TRAINED

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


class Infer:
    """Runs the script in this process, in a folder of the test."""

    def __init__(self, script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
        self._script, self._capsys, self._monkeypatch = script, capsys, monkeypatch

    def __call__(self, **settings: object) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        return self.arguments(*(f"{name}={value}" for name, value in settings.items()))

    def arguments(self, *arguments: str) -> tuple[int, str, str]:
        """The same, from whole arguments."""
        self._monkeypatch.setattr(sys, "argv", [str(self._script), *arguments])
        status = 0
        try:
            runpy.run_path(str(self._script), run_name="__main__")
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            GlobalHydra.instance().clear()
        return status, *self._capsys.readouterr()


@pytest.fixture
def infer(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Infer:
    monkeypatch.chdir(tmp_path)
    return Infer(repository / "infer.py", capsys, monkeypatch)


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.jsonl"
    path.write_text(
        '{"_id": "sea", "text": "' + QUESTION + '", "type": "bridge"}\n{"question": "how long does jam keep?"}\n',
        encoding="utf-8",
    )
    return path


def test_a_question_prints_passages_evidence_and_context(infer: Infer, z_index: Path, untrained: Path) -> None:
    status, output, errors = infer(index=z_index, question=QUESTION, checkpoint=untrained, top_k=3)
    assert (status, errors) == (0, "")
    assert output.startswith("Passages (score: relevance)\n  1. ")
    assert "Evidence paths\n" in output
    assert "<context>" in output


@pytest.mark.parametrize(
    "question",
    ["Wo liegt Port Isk, = hier?", "it's “Port Isk”", '"Port" Isk #1 ${x} 100%', "Port Isk 关系", "1984", "a: b"],
)
def test_a_question_means_what_was_typed(infer: Infer, z_index: Path, tmp_path: Path, question: str) -> None:
    status, _, errors = infer(index=z_index, question=question, retriever="dense", json_out="out.json")
    assert (status, errors) == (0, "")
    (result,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]
    assert result["query"]["text"] == question


def test_a_run_has_the_form_that_scorers_read(infer: Infer, z_index: Path, queries: Path, tmp_path: Path) -> None:
    status, output, _ = infer(index=z_index, queries=queries, retriever="dense", top_k=2, run_out="deep/run.json")
    assert status == 0
    assert output == "wrote deep/run.json: 2 question(s)\n"
    run = json.loads((tmp_path / "deep" / "run.json").read_text(encoding="utf-8"))
    assert {query: len(row) for query, row in run.items()} == {"sea": 2, "q2": 2}
    assert max(run["q2"], key=run["q2"].get) == "p5"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["run.json"]


def test_the_same_input_twice_gives_the_same_bytes(
    infer: Infer, z_index: Path, untrained: Path, queries: Path, tmp_path: Path
) -> None:
    for name in ("a.json", "b.json"):
        assert infer(index=z_index, queries=queries, checkpoint=untrained, top_k=100, run_out=name)[0] == 0
    first = (tmp_path / "a.json").read_bytes()
    assert first == (tmp_path / "b.json").read_bytes()
    assert set(json.loads(first)["sea"]) == {"p1", "p2", "p3", "p4", "p5"}


def test_json_out_holds_everything(infer: Infer, z_index: Path, untrained: Path, queries: Path, tmp_path: Path) -> None:
    assert infer(index=z_index, queries=queries, checkpoint=untrained, json_out="all.json")[0] == 0
    results = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["results"]
    assert [row["query"]["id"] for row in results] == ["sea", "q2"]
    row = results[0]
    assert row["query"]["metadata"] == {"type": "bridge"}
    assert row.keys() == {"query", "score_unit", "passages", "entities", "facts", "paths", "trace", "seconds"}
    assert row["trace"]["batch_encode"] is True
    assert {"encode", "candidates", "network", "prune"} <= row["seconds"].keys()
    assert row["entities"][0].keys() == {"rank", "score", "key", "name"}
    assert row["facts"][0].keys() == {"rank", "score", "head", "relation", "tail", "text", "weight", "passage_ids"}
    step = row["paths"]["p1"][-1]
    assert step.keys() == {"source", "kind", "text", "target", "passage_id"}


@pytest.mark.parametrize("retriever", NAMES)
def test_every_retriever_has_its_configuration(
    infer: Infer, z_index: Path, untrained: Path, tmp_path: Path, retriever: str
) -> None:
    extra = {"checkpoint": untrained} if retriever in TRAINED else {}
    status, _, errors = infer(index=z_index, question=QUESTION, retriever=retriever, json_out="x.json", **extra)
    assert (status, errors) == (0, "")
    (row,) = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["results"]
    assert row["trace"]["retriever"] == retriever
    assert row["passages"]


def test_settings_of_a_retriever_can_be_changed(infer: Infer, z_index: Path, untrained: Path, tmp_path: Path) -> None:
    status, _, _ = infer.arguments(
        f"index={z_index}", f"question={QUESTION}", f"checkpoint={untrained}", "retriever.keep=1.0", "json_out=x.json"
    )
    assert status == 0
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["results"][0]["trace"]["pruned_nodes"] == 0
    status, _, errors = infer.arguments(f"index={z_index}", "question=x", f"checkpoint={untrained}", "+retriever.kep=1")
    assert status == 1
    assert errors.startswith("error: ")
    assert "kep" in errors


def test_nothing_is_left_behind_in_the_folder(infer: Infer, z_index: Path, tmp_path: Path) -> None:
    infer(index=z_index, question=QUESTION, retriever="bm25")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, 'expected question="…" or queries=queries.jsonl, found neither'),
        ({"question": "x", "queries": "q.jsonl"}, "found both"),
        ({"question": " "}, "empty or blank"),
        ({"question": "x", "top_k": 0}, "top_k: expected"),
        ({"question": "x", "top_k": "many"}, "top_k: expected"),
        ({"queries": "nowhere.jsonl"}, "nowhere.jsonl: "),
        ({"question": "x", "checkpoint": "nowhere"}, "nowhere: expected a checkpoint"),
        ({"question": "x", "retriever": "bm25", "checkpoint": "c"}, "has no network"),
        ({"question": "x", "run_out": "."}, "expected a file to write, found a folder"),
        ({"question": "x", "top_k": "a=b"}, "quote its value: 'top_k=\"a=b\"'"),
    ],
)
def test_what_a_person_can_mend_is_one_line_and_status_1(
    infer: Infer, z_index: Path, settings: dict[str, object], message: str
) -> None:
    status, output, errors = infer(index=z_index, **settings)
    assert (status, output) == (1, "")
    assert errors.startswith("error: ")
    assert message in errors
    assert errors.count("\n") == 1


def test_a_blank_question_in_a_file_is_told_by_line_and_nothing_is_written(
    infer: Infer, z_index: Path, tmp_path: Path
) -> None:
    (tmp_path / "q.jsonl").write_text('{"text": "fine?"}\n{"text": "  "}\n', encoding="utf-8")
    status, _, errors = infer(index=z_index, queries="q.jsonl", retriever="bm25", run_out="run.json")
    assert status == 1
    assert errors.startswith("error: q.jsonl:2: ")
    assert not (tmp_path / "run.json").exists()


def test_a_missing_index_is_told_with_where_it_was_looked_for(infer: Infer, tmp_path: Path) -> None:
    status, _, errors = infer(index="nowhere", question="x")
    assert status == 1
    assert str(tmp_path / "nowhere") in errors
    assert infer(question="x")[2] == "error: index: expected the folder of an index, found none; name it: index=INDEX\n"


def test_hydras_own_errors_are_no_success(infer: Infer, z_index: Path) -> None:
    status, _, errors = infer(index=z_index, question="x", retriever="magic")
    assert status == 1
    assert "Available options in 'retriever'" in errors
    assert infer(index=z_index, question="x", nosuch="y")[0] == 1


@pytest.mark.slow
def test_a_new_process_in_another_folder_answers_from_the_index_alone(
    repository: Path, z_index: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere = #1 é"
    folder.mkdir()
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, str(repository / "infer.py"), f"index={z_index}", "question=Où est “Port Isk”, = quoi?"]
    done = subprocess.run(
        [*command, "retriever=dense", "json_out=out é.json"],
        cwd=folder,
        env={**os.environ, **plain},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Port Isk lies on the Halder Sea." in done.stdout.decode("ascii")
    (row,) = json.loads((folder / "out é.json").read_text(encoding="utf-8"))["results"]
    assert row["query"]["text"] == "Où est “Port Isk”, = quoi?"
    failed = subprocess.run(
        [*command, "top_k=0"], cwd=folder, env={**os.environ, **plain}, capture_output=True, check=False
    )
    assert (failed.returncode, failed.stdout) == (1, b"")


def test_filters_are_json(repository: Path, z_index: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(repository / "infer.py"),
        f"index={z_index}",
        "question=Which sea?",
        "retriever=bm25",
    ]
    good = [*command, 'filters={"document_id": {"$in": ["p2", "p3"]}}', f"json_out={tmp_path / 'out.json'}"]
    done = subprocess.run(good, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]
    assert {p["document_id"] for p in row["passages"]} <= {"p2", "p3"}
    bad = subprocess.run([*command, "filters={year"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "expected a JSON object" in bad.stderr
    assert bad.stderr.count("\n") == 1
