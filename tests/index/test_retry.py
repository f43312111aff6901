from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gfm.cli import main
from gfm.index.index import GraphIndex
from gfm.index.retry import retry_failed
from gfm.index.verify import verify_index
from gfm.types import GfmError
from tests.conftest import CORPUS_Z, TRIPLES_Z
from tests.fake_llm import FakeLLM, facts


def truthful(body: dict[str, Any], number: int) -> str:
    said = body["messages"][1]["content"]
    return facts(*((h, r, t, CORPUS_Z[p]) for h, r, t, p in TRIPLES_Z if CORPUS_Z[p] in said))


@pytest.fixture
def index(fake_llm: FakeLLM, z_files: Path, tmp_path: Path) -> Path:
    """An index of Corpus Z in which two passages failed."""
    settings = tmp_path / "llm.yaml"
    settings.write_text(f"model: m\nbase_url: {fake_llm.url}\nprice_input: 1\nprice_output: 1\n", encoding="utf-8")
    fake_llm.behave = lambda body, n: "bad" if "Isk" in str(body) else truthful(body, n)
    GraphIndex.build(z_files / "corpus.jsonl", tmp_path / "i", encoder="hashing:64", extractor=f"llm:{settings}")
    fake_llm.requests.clear()
    fake_llm.behave = truthful
    return tmp_path / "i"


def test_only_what_failed_is_asked_about(index: Path, fake_llm: FakeLLM) -> None:
    before = GraphIndex.open(index).manifest["counts"]["triples"]
    plans: list[int] = []
    done = retry_failed(index, before=lambda plan: plans.append(plan.calls))
    assert plans == [2]
    assert len(fake_llm.requests) == 2
    assert done.model.report.as_json() == {"ok": 2, "empty": 0, "failed": {}, "dropped": {}}
    assert done.counts["triples"] == before + 2
    assert retry_failed(index).plan.calls == 0
    assert len(fake_llm.requests) == 2
    assert not any(verify_index(index, rebuild=True).values())


def test_a_dry_run_asks_nothing_and_verifying_spends_nothing(index: Path, fake_llm: FakeLLM) -> None:
    generation = GraphIndex.open(index).generation
    done = retry_failed(index, dry_run=True)
    assert done.lines()[0].startswith("language model: 2 calls (3 of 5 passages are known)")
    (problem,) = verify_index(index, rebuild=True)["fresh build"]
    assert problem.startswith("a fresh build would ask the language model about 2 passages")
    assert fake_llm.requests == []
    assert GraphIndex.open(index).generation == generation


def test_on_the_command_line(
    index: Path, fake_llm: FakeLLM, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["gfm", "retry", str(index), "--json"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    output, errors = capsys.readouterr()
    assert json.loads(output)["spent"]["calls"] == 2
    assert errors.startswith("language model: 2 calls")


def test_an_index_without_a_model_has_nothing_to_ask(z_index: Path) -> None:
    with pytest.raises(GfmError, match="expected an index whose facts a language model found, found extractors: given"):
        retry_failed(z_index)
