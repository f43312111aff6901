"""What holds for every command of `gfm`, also for those to come: help, JSON, exit statuses, narrow terminals."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from gfm.cli.app import app, main

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
SERVERS = {"serve", "mcp"}  # they run until they are stopped, and speak for themselves
NO_JSON = SERVERS
QUESTION = "Who built Tarn Mill?"
HASHED = ("--encoder", "hashing:64")
TINY = ("data.sets=[{name:demo,limit:8}]", "data.val_share=0.25", "index.encoder=hashing:64", "index.extractor=none")
STEPS = ("model.width=16", "trainer.max_steps=1", "trainer.val_every=1")
# What a person types, by command; INDEX is a copy of the index of Corpus Z, NET a network drawn at random.
TYPED: dict[str, tuple[str, ...]] = {
    "demo": ("--out", "demo", *HASHED, "--checkpoint", "NET"),
    "index": ("corpus.jsonl", "--out", "new", *HASHED, "--extractor", "none"),
    "add": ("PLAIN", "more.jsonl"),
    "update": ("PLAIN", "more.jsonl"),
    "delete": ("PLAIN", "p5"),
    "verify": ("INDEX",),
    "retry": ("INDEX",),
    "search": ("INDEX", QUESTION, "--checkpoint", "NET"),
    "ask": ("INDEX", QUESTION, "--extractive", "--checkpoint", "NET"),
    "explain": ("INDEX", QUESTION, "--checkpoint", "NET", "--against", "bm25"),
    "doctor": ("INDEX",),
    "stats": ("INDEX",),
    "answers": ("INDEX", "asked.jsonl", "--retrievers", "ppr_entity"),
    "bench": ("demo", "--limit", "4", "--retrievers", "bm25,dense", *HASHED, "--extractor", "none", "--one-process"),
    "convert": ("musique.jsonl", "--out", "set"),
    "import": ("triples", "--out", "imported", *HASHED),
    "export": ("INDEX", "--out", "exported", "--format", "csv"),
    "merges": ("INDEX",),
    "train": (*TINY, *STEPS),
}
# These answer many questions, and are run in tests of their own.
LONG = {"demo", "bench"}
# What asks for what this folder lacks ends as an error; it is a line, in the same terminal.
FAILS = {"retry"}


@dataclass
class Terminal:
    """Runs a command as on a terminal of 60 columns that knows ASCII alone."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="ascii") for name in ("stdout", "stderr")}
        for name, stream in streams.items():
            self.monkeypatch.setattr(sys, name, stream)
        self.monkeypatch.setattr(sys, "argv", ["gfm", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        for stream in streams.values():
            stream.flush()
        return status, *(stream.buffer.getvalue().decode("ascii") for stream in streams.values())  # type: ignore[attr-defined]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return Terminal(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def plain_index(tmp_path_factory: pytest.TempPathFactory, z_files: Path) -> Path:
    """Corpus Z without triples, which documents can be added to without any."""
    from gfm.index.index import GraphIndex

    path = tmp_path_factory.mktemp("plain") / "index"
    GraphIndex.build(z_files / "corpus.jsonl", path, encoder="hashing:64", extractor="none")
    return path


@pytest.fixture
def typed(
    terminal: Terminal, z_files: Path, z_index: Path, plain_index: Path, untrained: Path
) -> Callable[[str], list[str]]:
    """The arguments of a command, and around it the files that they name: spaces, =, #, % and other scripts in each."""
    folder = terminal.folder
    odd = {"INDEX": "my index #1 = 100% \u5173", "PLAIN": "plain #1 = 50% \u00e9"}
    shutil.copy(z_files / "corpus.jsonl", folder)
    (folder / "triples").mkdir()
    for name in ("corpus.jsonl", "triples.jsonl"):
        shutil.copy(z_files / name, folder / "triples")
    asked = {"text": "Who built Tarn Mill?", "answers": ["Orla Venn"]}
    (folder / "asked.jsonl").write_text(json.dumps(asked) + "\n", encoding="utf-8")
    (folder / "more.jsonl").write_text('{"_id": "p6", "text": "Sölden – 관계."}\n', encoding="utf-8")
    row = {"id": "2hop__1", "question": QUESTION, "answer": "Orla Venn", "answerable": True, "paragraphs": []}
    row["paragraphs"] = [
        {"idx": i, "title": f"Ötz {i}", "paragraph_text": f"Text {i}.", "is_supporting": i < 2} for i in range(3)
    ]
    (folder / "musique.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")

    def arguments(name: str) -> list[str]:
        for word, source in (("INDEX", z_index), ("PLAIN", plain_index)):
            if word in TYPED[name]:
                shutil.copytree(source, folder / odd[word])
        return [name, *({**odd, "NET": str(untrained)}.get(word, word) for word in TYPED[name])]

    return arguments


def test_every_command_is_tried_here() -> None:
    assert set(COMMANDS) - SERVERS == set(TYPED)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_and_shows_an_example(terminal: Terminal, name: str) -> None:
    status, output, errors = terminal(*([name] if name else []), "--help")
    assert (status, errors) == (0, "")
    assert [line for line in output.split("\n") if len(line) > 60] == []
    if name:
        assert f"\n    gfm {name}" in output[output.index("  Example") :]
        assert all(getattr(parameter, "help", None) for parameter in COMMANDS[name].params)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - NO_JSON))
def test_every_command_can_print_json(name: str) -> None:
    assert any("--json" in parameter.opts and parameter.is_flag for parameter in COMMANDS[name].params)


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_usage_is_status_2(terminal: Terminal, name: str) -> None:
    status, output, errors = terminal(name, "--no-such-option")
    assert (status, output) == (2, "")
    assert "--no-such-option" in errors


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_is_one_line_and_status_130(terminal: Terminal, name: str) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    (command,) = [c for c in app.registered_commands if name in {c.name, getattr(c.callback, "__name__", "")}]
    terminal.monkeypatch.setattr(command, "callback", interrupted)
    assert terminal(name) == (130, "", "error: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(TYPED) - {"demo"}))
def test_output_for_people_needs_no_more_than_ascii(
    terminal: Terminal, typed: Callable[[str], list[str]], name: str
) -> None:
    status, output, errors = terminal(*typed(name))
    if name in FAILS:
        assert (status, errors.count("\n")) == (1, 1)
        assert errors.startswith("error: ")
    else:
        assert status == 0, errors
        assert output.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(TYPED) - FAILS - LONG))
def test_json_is_all_that_is_printed(terminal: Terminal, typed: Callable[[str], list[str]], name: str) -> None:
    status, output, errors = terminal(*typed(name), "--json")
    assert status == 0, errors
    assert json.loads(output) is not None


def test_words_are_completed(terminal: Terminal) -> None:
    for name, value in {"_GFM_COMPLETE": "complete_bash", "COMP_WORDS": "gfm sear", "COMP_CWORD": "1"}.items():
        terminal.monkeypatch.setenv(name, value)
    assert terminal()[:2] == (0, "search\n")
