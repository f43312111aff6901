"""What README and docs tell people to type works, in the order in which it stands there."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fake_llm import FakeLLM, facts

_SNIPPET = re.compile(r"<!-- run -->\n```(bash|python)\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)")
PAGES = (
    "README.md",
    "docs/data.md",
    "docs/exchange.md",
    "docs/index.md",
    "docs/architecture.md",
    "docs/benchmark.md",
    "docs/ablations.md",
    "docs/explain.md",
    "docs/troubleshooting.md",
    "docs/llm.md",
    "docs/adapters.md",
    "docs/tutorial.md",
    "docs/training.md",
    "docs/comparison.md",
    "docs/results.md",
)
_DOCUMENTS = 12  # of the demo corpus: enough to answer from, few enough to encode in a second


def snippets(repository: Path) -> list[tuple[str, str, str]]:
    """(page, language, text) of every runnable snippet, README first."""
    return [
        (page, *found) for page in PAGES for found in _SNIPPET.findall((repository / page).read_text(encoding="utf-8"))
    ]


def head(source: Path, target: Path, lines: int) -> None:
    """The first lines of a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = source.read_text(encoding="utf-8").split("\n")[:lines]
    target.write_text("\n".join(kept) + "\n", encoding="utf-8")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A folder that looks like a checkout to a reader of the docs, with a small demo set and `gfm` on the PATH."""
    for name in ("corpus.jsonl", "queries.jsonl"):
        head(repository / "data" / "demo" / name, tmp_path / "data" / "demo" / name, _DOCUMENTS)
    for name in ("infer.py", "configs"):
        (tmp_path / name).symlink_to(repository / name)
    for name, command in (("gfm", "-m gfm.cli"), ("python", "")):
        shim = tmp_path / "bin" / name
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    return tmp_path


def model_that_quotes(body: dict[str, Any], number: int) -> str:
    """Finds one entity in each passage, the first word of it, and answers every question with its first source."""
    if body.get("stream"):
        return "Somebody did [1], says [99]."
    said = body["messages"][-1]["content"]
    return facts(entities=[(said.split()[1], "thing")])


def check_language_models(outputs: list[str], fake_llm: FakeLLM) -> None:
    """What the page on language models shows: a dry run, a build, an answer."""
    dry, built, asked = outputs
    assert dry.startswith("language model: 12 calls (0 of 12 passages are known)")
    assert "passages asked about: ok 12, empty 0, failed 0" in built
    assert asked.startswith("Somebody did [1], says.\n\nSources\n[1] ")
    assert "taken out: [99]" in asked
    assert sum("<passage>" in str(body) for body in fake_llm.requests) == 12


def check_pages(said: Mapping[str, list[str]]) -> None:
    """What the other pages say comes out: their snippets in order."""
    built, asked = said["README.md"]
    assert re.search(r"^documents +12$", built, re.MULTILINE)
    assert "<context>" in built
    assert asked.startswith("<context>\nFacts:\n")
    assert "wrote run.json: 12 question(s)" in said["docs/data.md"][0]
    csv, graphml, merges = said["docs/exchange.md"]
    assert "wrote " in csv
    assert re.search(r"^read: 12 passages, \d+ rows of entities, \d+ triples$", csv, re.MULTILINE)
    assert graphml.startswith("graphml 12 ")
    assert re.search(r"^Czech Republic \(alias\): Czechia \(\d+\)$", merges, re.MULTILINE)
    life, python = said["docs/index.md"]
    assert [line for line in life.split("\n") if line.startswith("documents: added")] == [
        "documents: added 1, updated 0, unchanged 2, deleted 0",
        "documents: added 0, updated 1, unchanged 2, deleted 0",
        "documents: added 0, updated 0, unchanged 2, deleted 1",
        "documents: added 0, updated 0, unchanged 0, deleted 1",
    ]
    assert life.endswith("fresh build: ok\nthe index is whole\n")
    assert python.startswith("('log/1',) ")
    assert said["docs/explain.md"][0].endswith("wrote why.html: open it in any browser\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the snippets are for a POSIX shell")
def test_snippets_run_in_order(repository: Path, checkout: Path, fake_llm: FakeLLM) -> None:
    fake_llm.behave = model_that_quotes
    environment = {
        **os.environ,
        "PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(repository),
        "PYTHONIOENCODING": "utf-8",
        "OPENAI_BASE_URL": fake_llm.url,
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    said = defaultdict(list)
    for page, language, written in snippets(repository):
        text = written.replace("8000", port)
        command = ["bash", "-euo", "pipefail", "-c", text] if language == "bash" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False, timeout=900)
        assert done.returncode == 0, f"{text}\n{done.stderr.decode()}"
        said[page].append(done.stdout.decode("utf-8"))
    check_pages(said)
    check_language_models(said["docs/llm.md"], fake_llm)
    queries = (checkout / "data" / "demo" / "queries.jsonl").read_text(encoding="utf-8").split("\n")
    run = json.loads((checkout / "run.json").read_text(encoding="utf-8"))
    assert set(run) == {json.loads(line)["_id"] for line in queries if line}


def test_there_is_something_to_run(repository: Path) -> None:
    assert {page for page, _, _ in snippets(repository)} == {
        "README.md",
        *(f"docs/{name}.md" for name in ("data", "exchange", "index", "explain", "llm")),
    }


def test_every_page_is_known_here(repository: Path) -> None:
    assert {"README.md", *(f"docs/{path.name}" for path in (repository / "docs").glob("*.md"))} == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(repository: Path, page: str) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    for target, anchor in _LINK.findall(text):
        if target.startswith("https:"):
            continue
        path = (repository / page).parent / target if target else repository / page
        assert path.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}, anchor


def test_every_file_that_the_architecture_names_is_there(repository: Path) -> None:
    text = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:gfm|configs|data|tests)/[\w./]*|\w+\.py)`", text))
    assert len(named) > 20
    places = [repository, repository / "gfm" / "retrieve", repository / "gfm" / "graph"]
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_machine(repository: Path, page: str) -> None:
    text = (repository / page).read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|tmp|root|work|Users)/\S*", text) == []
