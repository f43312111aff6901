"""`gfm ask`, as people and scripts meet it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gfm.index.index import GraphIndex
from tests.conftest import Gfm
from tests.fake_llm import Answer, FakeLLM

KEY = "sk-secret-1234567890"
BUILT = "Who built Tarn Mill?"


@pytest.fixture
def ask(gfm: Gfm, monkeypatch: pytest.MonkeyPatch, z_index: Path) -> Any:
    """Runs `gfm ask` on the index of Corpus Z; gives exit status, standard output and standard error."""

    def run(*arguments: object, index: Path = z_index, said: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        return gfm("ask", index, "--retriever", "dense", *arguments)

    return run


@pytest.fixture
def llm(fake_llm: FakeLLM, tmp_path: Path) -> tuple[str, ...]:
    """Options that name the fake server, and let any passage count as evidence."""
    path = tmp_path / "llm.yaml"
    path.write_text(f"base_url: {fake_llm.url}\nmodel: m\napi_key: {KEY}\ntries: 1\n", encoding="utf-8")
    return "--llm", str(path), "--threshold=-1"


def test_an_answer_its_sources_and_what_to_be_careful_with(ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM) -> None:
    fake_llm.answers("Orla Venn built it [1]. She is tall [9].")
    status, output, errors = ask(BUILT, *llm)
    assert (status, errors) == (0, "")
    lines = output.rstrip("\n").split("\n")
    assert lines[0] == "Orla Venn built it [1]. She is tall."
    assert lines[2:4] == ["Sources", "[1] (p1, characters 0-41)"]
    assert "taken out: [9], cited by the model although there is no such source" in lines
    assert "no source is cited for: She is tall." in lines
    assert lines[-1].startswith("language model: 1 calls, ")


def test_json_holds_everything_and_no_key(ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM) -> None:
    fake_llm.answers("Orla Venn built it [1].")
    status, output, _ = ask(BUILT, *llm, "--json")
    row = json.loads(output)
    assert status == 0
    assert (row["kind"], row["text"]) == ("answered", "Orla Venn built it [1].")
    assert row["sources"] == [{"n": 1, "passage_id": "p1", "document_id": "p1", "start": 0, "end": 41}]
    assert row["spent"]["calls"] == 1
    assert KEY not in output


def test_without_a_model_the_sources_answer(ask: Any, fake_llm: FakeLLM) -> None:
    status, output, _ = ask(BUILT, "--threshold=-1")
    assert status == 0
    assert output.count("\n[") == 3
    assert "a language model answers with --llm FILE" in output
    assert json.loads(ask(BUILT, "--threshold=-1", "--json")[1])["kind"] == "extractive"


def test_only_documents_that_fit_are_asked(ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM) -> None:
    fake_llm.answers("Yes [1].")
    status, output, _ = ask(BUILT, *llm, "--filter", '{"document_id": {"$in": ["p2", "p5"]}}', "--json")
    assert status == 0
    assert set(json.loads(output)["passages"]) == {"p2", "p5"}
    assert "Tarn Mill was" not in fake_llm.said()


def test_no_evidence_is_said_and_no_model_asked(ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM) -> None:
    status, output, _ = ask("Who won the 1987 Brandle regatta?", *llm[:2], "--threshold", "0.99")
    assert status == 0
    assert output.startswith("No evidence found: the best score is 0.")
    assert "below the threshold 0.99." in output
    assert fake_llm.requests == []


def test_the_environment_names_a_model_and_extractive_passes_it_over(
    ask: Any, fake_llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "other")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_llm.url)
    fake_llm.answers("Orla Venn [1].")
    assert ask(BUILT, "--threshold=-1")[1].startswith("Orla Venn [1].\n")
    assert ask(BUILT, "--threshold=-1", "--model", "mine")[0] == 0
    assert [r["model"] for r in fake_llm.requests] == ["other", "mine"]
    assert ask(BUILT, "--threshold=-1", "--extractive")[0] == 0
    assert len(fake_llm.requests) == 2


def test_an_answer_that_breaks_off_and_a_server_that_fails_are_errors(
    ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM
) -> None:
    fake_llm.answers(Answer("Orla Venn built Tarn Mill [1].", cut=2))
    status, output, errors = ask(BUILT, *llm)
    assert status == 1
    assert output.startswith("Orla Venn buil")
    assert errors.startswith(f"error: {fake_llm.url}: the reply broke off")
    fake_llm.answers(Answer(f"who is {KEY}?", 500))
    status, output, errors = ask(BUILT, *llm)
    assert (status, output, errors.count("\n")) == (1, "", 1)
    assert KEY not in errors


def test_a_chat_takes_lines_and_goes_on_after_an_error(ask: Any, llm: tuple[str, ...], fake_llm: FakeLLM) -> None:
    def behave(body: dict[str, Any], n: int) -> Answer | str:
        if "Quince" in body["messages"][-1]["content"].split("Last question:")[-1].split("<question>")[-1]:
            return Answer("broken", 500)
        return "Orla Venn [1]." if body.get("stream") else "Where was Orla Venn born?"

    fake_llm.behave = behave
    status, output, errors = ask("--chat", *llm, "--json", said=f"{BUILT}\n\nQuince?\nWhere was she born?\n")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["question"] for row in rows] == [BUILT, "Where was she born?"]
    assert rows[1]["searched"] == "Where was Orla Venn born?"
    assert status == 1
    assert errors.count("error: ") == 2
    assert "1 question(s) without a whole answer" in errors
    status, output, _ = ask("--chat", *llm, said="Where was she born?\n")
    assert status == 0
    assert "searched: Where was Orla Venn born?" in output


def test_wrong_usage(ask: Any, fake_llm: FakeLLM, tmp_path: Path) -> None:
    assert ask()[0] == 2
    assert ask(BUILT, "--chat")[0] == 2
    assert ask(BUILT, "--llm", tmp_path / "none.yaml")[0] == 1
    status, _, errors = ask(BUILT, index=tmp_path)
    assert status == 1
    assert "expected an index" in errors


@pytest.mark.slow
def test_the_default_threshold_tells_foreign_questions(
    ask: Any, fake_llm: FakeLLM, z_files: Path, tmp_path: Path
) -> None:
    GraphIndex.build(z_files / "corpus.jsonl", tmp_path / "i", triples=z_files / "triples.jsonl")
    for question, kind in (
        ("Who won the 1987 Brandle regatta?", "no evidence"),
        ("How long does jam keep?", "extractive"),
        ("Which sea is near the birthplace of the builder of Tarn Mill?", "extractive"),
    ):
        assert json.loads(ask(question, "--json", index=tmp_path / "i")[1])["kind"] == kind, question
