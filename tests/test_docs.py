"""What README and docs tell people to type works, in the order in which it stands there."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import REPOSITORY as ROOT
from tests.fake_llm import FakeLLM, facts

_BLOCK = re.compile(
    r"^(<!-- run -->\n)?```(bash|python)\n(.*?)```"  # code
    r"|^<!-- run -->\n((?:\|[^\n]*\n)+)",  # a table
    re.DOTALL | re.MULTILINE,
)
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
# What stands for something of the reader's own, and what it is here; and numbers that would take minutes.
STAND_INS = {
    "outputs/DATE/TIME": "$(ls -d outputs/*/* | head -1)",
    "data.index=INDEX": "data.index=my_index data.made=20",
    "data.made=600": "",
    '"retrievers": "gfm,bm25"': '"retrievers": "gfm,bm25", "encoder": "hashing:64", "limit": 2, "apart": False',
    "INDEX": "my_index",
    "QUESTION": "Which composer led the orchestra that is named after a cloth hall?",
    "FOLDER": "sets",
    "8000": "PORT",
}
# What makes a program that takes minutes one of seconds; the shims add it.
SMALLER = {
    "train": "index.encoder=hashing:64 index.extractor=none trainer.max_steps=1 trainer.val_every=1",
    "bench": "--encoder hashing:64 --extractor none --limit 2 --one-process --no-pictures",
}
# Blocks that no test runs, by how they begin.
NOT_RUN = {
    "make demo": "makes an environment; scripts/check_install.sh does the same in one of its own",
    "pip install": "needs a package registry, as before",
    ".venv/bin/pip install": "needs a package registry, as before",
    "gfm train sanity=true": "learns by heart for a minute; tests/train/test_sanity.py does",
    "scripts/ablations.sh": "trains dozens of networks",
    "python train.py -m experiment=": "the same commands as in that script",
    "gfm bench --config baselines --root FOLDER": "the command of docs/benchmark.md, which is run",
    "gfm bench FOLDER/2wiki": "the command of docs/benchmark.md, which is run",
    "python train.py experiment=adapt data.index=INDEX data.made=600": "the command of docs/training.md, which is run",
}


class Snippet(NamedTuple):
    """Commands of a page: a block of code, or a row of a table."""

    page: str
    language: str
    text: str
    marked: bool


def blocks(repository: Path) -> Iterator[Snippet]:
    """Every block of commands, README first; tables only where they are marked to be run."""
    for page in PAGES:
        for mark, language, text, table in _BLOCK.findall((repository / page).read_text(encoding="utf-8")):
            if table:
                for command in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE):
                    yield Snippet(page, "bash", command, not command.startswith(tuple(NOT_RUN)))
            else:
                yield Snippet(page, language, text, bool(mark))


def head(source: Path, target: Path, lines: int) -> None:
    """The first lines of a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = source.read_text(encoding="utf-8").split("\n")[:lines]
    target.write_text("\n".join(kept) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def warm() -> Iterator[str]:
    """The socket of a process that has the libraries loaded, see `tests.warm`."""
    with tempfile.TemporaryDirectory(prefix="gfm-") as folder:  # not tmp_path: a socket's name is short
        path = f"{folder}/warm"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.warm", "serve", path]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            try:
                while not Path(path).exists():
                    assert process.poll() is None, "tests/warm.py ended"
                    time.sleep(0.05)
                yield path
            finally:
                process.kill()


def official_files(folder: Path) -> None:
    """What docs/benchmark.md converts: a few questions in the three official forms."""
    texts = {"Tarn Mill": "Tarn Mill was built by Orla Venn.", "Orla Venn": "Orla Venn was born in Port Isk."}
    plain, musique = [], []
    for i in range(6):
        question = f"Where was the builder of Tarn Mill {i} born?"
        steps = [
            {"id": n, "question": q, "answer": a, "paragraph_support_idx": n}
            for n, (q, a) in enumerate([("Who built Tarn Mill?", "Orla Venn"), ("Where was #1 born?", "Port Isk")])
        ]
        plain.append(
            {
                "_id": f"q{i}",
                "question": question,
                "answer": "Port Isk",
                "type": "bridge",
                "level": "hard",
                "supporting_facts": [[title, 0] for title in texts],
                "context": [[t, [x]] for t, x in texts.items()],
                "evidences": [["Tarn Mill", "builder", "Orla Venn"], ["Orla Venn", "place of birth", "Port Isk"]],
            }
        )
        musique.append(
            {
                "id": f"2hop__{i}",
                "question": question,
                "answer": "Port Isk",
                "answerable": True,
                "question_decomposition": steps,
                "paragraphs": [
                    {"idx": n, "title": t, "paragraph_text": x, "is_supporting": True}
                    for n, (t, x) in enumerate(texts.items())
                ],
            }
        )
    (folder / "2wiki").mkdir()
    (folder / "2wiki" / "dev.json").write_text(json.dumps(plain), encoding="utf-8")
    (folder / "hotpot_dev_distractor_v1.json").write_text(json.dumps(plain), encoding="utf-8")
    with gzip.open(folder / "musique_ans_v1.0_dev.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in musique)


@pytest.fixture
def checkout(repository: Path, tmp_path: Path, warm: str) -> Path:
    """A folder that looks like a checkout to a reader of the docs, with a small demo set and `gfm` on the PATH."""
    for name in ("corpus.jsonl", "queries.jsonl"):
        head(repository / "data" / "demo" / name, tmp_path / "data" / "demo" / name, _DOCUMENTS)
    shutil.copytree(repository / "data" / "demo", tmp_path / "sets" / "mine")
    official_files(tmp_path)
    for name in ("infer.py", "train.py", "configs"):
        (tmp_path / name).symlink_to(repository / name)
    ask = f'exec "{sys.executable}" -E "{repository}/tests/warm.py" "{warm}"'
    stays = f'serve | mcp) exec "{sys.executable}" -m gfm.cli "$@" ;;'
    smaller = {name: f'set -- "$@" {options} ;;' for name, options in SMALLER.items()}
    for name, cases in {
        "gfm": (stays, *(f"{command}) {options}" for command, options in smaller.items())),
        "python": (f"train.py) {smaller['train']}",),
    }.items():
        shim = tmp_path / "bin" / name
        shim.parent.mkdir(exist_ok=True)
        lines = ["#!/bin/sh", 'case "$1" in', *cases, "esac", f'{ask} {name} "$@"', ""]
        shim.write_text("\n".join(lines), encoding="utf-8")
        shim.chmod(0o755)
    return tmp_path


def model_that_quotes(body: dict[str, Any], number: int) -> str:
    """Finds one entity in each passage, the first word of it; answers from its first source; asks what was asked."""
    if body.get("stream"):
        return "Somebody did [1], says [99]."
    said = body["messages"][-1]["content"]
    if "<passage>" not in said:
        return STAND_INS["QUESTION"]
    return facts(entities=[(said.split()[1], "thing")])


def check_language_models(outputs: list[str], fake_llm: FakeLLM) -> None:
    """What the page on language models shows: a dry run, a build, an answer."""
    dry, built, asked, python = outputs
    assert dry.startswith("language model: 12 calls (0 of 12 passages are known)")
    assert "passages asked about: ok 12, empty 0, failed 0" in built
    assert asked.startswith("Somebody did [1], says.\n\nSources\n[1] ")
    assert "taken out: [99]" in asked
    assert re.search(rf"^{re.escape(STAND_INS['QUESTION'])} \['\w+'\]$", python, re.MULTILINE)
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
    assert said["docs/troubleshooting.md"][0].count("nothing is wrong") == 2
    library, found, answer, page, changed = said["docs/tutorial.md"]
    assert "files: 3 in = 3 indexed" in library
    assert re.search(r"^  1\. .*\[sea\.md\]$", found.partition('"context"')[0], re.MULTILINE)
    assert "Orla Venn" in answer
    assert page.endswith("wrote library.html: open it in any browser\n")
    assert changed.endswith("the index is whole\n")


def check_measuring(said: Mapping[str, list[str]], checkout: Path) -> None:
    """What the pages on benchmarks and on training show: tables, question sets, checkpoints that can be used."""
    demo, converted, compared, python = said["docs/benchmark.md"]
    assert demo.endswith("Wrote bench.json, bench.md and the runs to bench\n")
    assert re.findall(r"^next: gfm bench (.*)$", converted, re.MULTILINE) == [
        "sets/hotpotqa",
        "sets/2wiki",
        "sets/musique",
    ]
    assert compared.count("Wrote bench.json") == 2
    assert "gfm" in python
    settings, *trained, searched, adapted, own = said["docs/training.md"]
    assert settings.startswith("data:\n  ")
    assert "<context>" in searched
    folders = [re.findall(r"^checkpoint: (.*) \(sha256", text, re.MULTILINE) for text in (*trained, adapted, own)]
    assert list(map(len, folders)) == [1, 1, 1, 1, 3, 1, 1, 1]
    assert all((Path(folder) / "model.safetensors").is_file() for of in folders for folder in of)


def check_adapters(outputs: list[str]) -> None:
    """What the page on other programs shows: a service, and two retrievers that agree."""
    served, chain, engine = outputs
    assert '"status":"ok"' in served
    assert '"score_unit": "relevance"' in served
    assert len(chain.splitlines()) == 3
    assert chain == engine


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
    for page, language, written, marked in blocks(repository):
        if not marked:
            continue
        text = re.sub("|".join(map(re.escape, STAND_INS)), lambda found: STAND_INS[found[0]], written)
        text = text.replace("PORT", port)
        command = ["bash", "-euo", "pipefail", "-c", text] if language == "bash" else ["python", "-c", text]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False, timeout=900)
        print(f"{time.perf_counter() - start:.1f} s: {page}: {text.splitlines()[0]}", flush=True)
        assert done.returncode == 0, f"{text}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        said[page].append(done.stdout.decode("utf-8"))
    check_pages(said)
    check_language_models(said["docs/llm.md"], fake_llm)
    check_measuring(said, checkout)
    check_adapters(said["docs/adapters.md"])
    queries = (checkout / "data" / "demo" / "queries.jsonl").read_text(encoding="utf-8").split("\n")
    run = json.loads((checkout / "run.json").read_text(encoding="utf-8"))
    assert set(run) == {json.loads(line)["_id"] for line in queries if line}


def test_every_block_of_commands_is_run_or_has_a_reason(repository: Path) -> None:
    left_out = [(b.page, b.text) for b in blocks(repository) if not b.marked]
    assert [block for block in left_out if not block[1].startswith(tuple(NOT_RUN))] == []
    assert [start for start in NOT_RUN if not any(text.startswith(start) for _, text in left_out)] == []


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
