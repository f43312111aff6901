"""`gfm index` with a language model, as people and scripts meet it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gfm.cli import main
from gfm.index.index import GraphIndex
from tests.conftest import CORPUS_Z, TRIPLES_Z, Gfm
from tests.fake_llm import FakeLLM, facts

KEY = "sk-secret-1234567890"


def truthful(body: dict[str, Any], number: int) -> str:
    said = body["messages"][1]["content"]
    return facts(*((h, r, t, CORPUS_Z[p]) for h, r, t, p in TRIPLES_Z if CORPUS_Z[p] in said))


@pytest.fixture
def index(gfm: Gfm, fake_llm: FakeLLM, z_files: Path, tmp_path: Path) -> Any:
    """Runs `gfm index` on Corpus Z; gives exit status, standard output and standard error."""
    settings = tmp_path / "llm.yaml"
    settings.write_text(
        f"model: m\nbase_url: {fake_llm.url}\napi_key: {KEY}\nprice_input: 1\nprice_output: 2\ntries: 1\n",
        encoding="utf-8",
    )

    def run(*more: str, extractor: str = f"llm:{settings}") -> tuple[int, str, str]:
        command = ["index", z_files / "corpus.jsonl", "--out", tmp_path / "i", "--encoder", "hashing:64"]
        return gfm(*command, "--extractor", extractor, *more)

    return run


def test_a_dry_run_tells_the_price_and_asks_nothing(index: Any, fake_llm: FakeLLM, tmp_path: Path) -> None:
    status, output, errors = index("--dry-run")
    assert (status, errors) == (0, "")
    assert output.startswith("language model: 5 calls (0 of 5 passages are known)")
    assert "at most $" in output
    status, output, _ = index("--dry-run", "--json")
    assert json.loads(output)["plan"]["calls"] == 5
    assert fake_llm.requests == []
    assert not (tmp_path / "i").exists()
    assert index("--dry-run", extractor="none")[:2] == (0, "no language model is asked: no calls, no price\n")


def test_the_plan_before_and_what_became_of_it_after(index: Any, fake_llm: FakeLLM, tmp_path: Path) -> None:
    fake_llm.behave = lambda body, n: "bad" if "Orla Venn was born" in str(body) else truthful(body, n)
    status, output, errors = index()
    assert status == 0
    assert "language model: 5 calls (0 of 5 passages are known)" in errors
    assert "passages asked about: ok 3, empty 1, failed 1" in output
    assert "failed p2: expected JSON with entities and triples, found: 'bad'" in output
    assert "language model: 6 calls, 600 tokens read, 60 written, $0.0007" in output
    fake_llm.behave = truthful
    status, output, errors = index("--json")
    row = json.loads(output)
    assert row["extraction"] == {"ok": 1, "empty": 0, "failed": {}, "dropped": {}}
    assert row["spent"] == {"calls": 1, "input_tokens": 100, "output_tokens": 10, "usd": 0.00012}
    assert row["counts"]["triples"] >= 4
    assert "nothing to ask, all 5 passages are known" in index()[2]
    for path in (tmp_path / "i").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path


def test_a_refused_key_leaves_the_index_as_it_was(index: Any, fake_llm: FakeLLM, tmp_path: Path) -> None:
    from tests.fake_llm import Answer

    index(extractor="none")
    before = (tmp_path / "i" / "CURRENT").read_bytes()
    fake_llm.answers(Answer(f"no such key: {KEY}", 401))
    status, output, errors = index()
    assert (status, output) == (1, "")
    assert errors.strip().split("\n")[-1].startswith(f"error: {fake_llm.url}: HTTP 401, access denied; check the key")
    assert KEY not in errors
    assert (tmp_path / "i" / "CURRENT").read_bytes() == before


def test_settings_that_are_wrong_are_one_line(index: Any, tmp_path: Path) -> None:
    status, _, errors = index(extractor="llm")
    assert (status, errors.count("\n")) == (1, 1)
    assert "expected the name of a model, found none" in errors
    status, _, errors = index(extractor=f"llm:{tmp_path / 'none.yaml'}")
    assert (status, errors.count("\n")) == (1, 1)


def test_a_missing_package_is_named(index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    status, _, errors = index()
    assert status == 1
    assert "expected the package openai, found none; install it with: pip install 'gfm-retriever[llm]'" in errors


def test_what_is_added_later_is_asked_about_by_the_same_model(
    index: Any, fake_llm: FakeLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake_llm.behave = truthful
    assert index()[0] == 0
    more = tmp_path / "more.jsonl"
    more.write_text(
        '{"_id": "p6", "text": "Sam Pell built Abel Works."}\n{"_id": "p7", "text": "It rained."}\n', "utf-8"
    )
    fake_llm.behave = lambda body, n: "bad" if "rained" in str(body) else facts(entities=[("Abel Works", "thing")])
    monkeypatch.setattr(sys, "argv", ["gfm", "add", str(tmp_path / "i"), str(more)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert len(fake_llm.requests) == 5 + 3
    assert "1 of 2 passages failed" in caplog.text
    assert "abel works" in GraphIndex.open(tmp_path / "i").entity_keys
