"""The command line, as people and scripts meet it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gfm import __version__
from gfm.eval.demo import RETRIEVERS
from gfm.text.encoder import DEFAULT_ENCODER
from tests.conftest import Gfm

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"


def in_new_process(
    repository: Path, *arguments: object, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The same in a process of its own, with bytes as they come."""
    return subprocess.run(
        [sys.executable, "-m", "gfm.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(repository), **environment},
        cwd=cwd,
        capture_output=True,
        check=False,
    )


def test_index_tells_counts_seconds_and_place(gfm: Gfm, z_files: Path, tmp_path: Path) -> None:
    out = tmp_path / "a b = # 100% é 关"
    status, output, errors = gfm(
        "index",
        z_files / "corpus.jsonl",
        "--out",
        out,
        "--encoder",
        "hashing:64",
        "--triples",
        z_files / "triples.jsonl",
    )
    assert status == 0
    counts = dict(line.split() for line in output.split("\n\n")[0].split("\n"))
    wanted = {"documents": "5", "passages": "5", "entities": "5", "facts": "4", "triples": "4", "synonyms": "0"}
    assert counts == wanted
    assert "seconds: split " in output
    assert f"index: {out}" in output
    assert f"next: gfm search '{out}'" in output
    assert errors.startswith("warning: 1 of 5 passages have no entities")
    assert (out / "CURRENT").is_file()
    status, output, _ = gfm("search", out, "Who = “built” Tarn Mill, #1?", "--retriever", "bm25")
    assert status == 0
    assert "  1. " in output.split("\n")[1]
    assert output.split("\n")[1].endswith("[p1]")


def test_index_without_any_entity_succeeds_with_one_warning(gfm: Gfm, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"text": "It was late."}\n{"text": "Some time passed."}\n{"text": "Then it stopped."}\n')
    status, output, errors = gfm("index", corpus, "--out", tmp_path / "i", "--encoder", "hashing:64")
    assert status == 0
    assert "entities   0" in output
    assert errors.count("warning:") == 1
    assert "0 entities" in errors
    status, output, _ = gfm("search", tmp_path / "i", "what stopped?", "--retriever", "dense", "--top-k", 9)
    assert status == 0
    assert "  3. " in output
    assert "  4. " not in output


def test_the_learnt_retriever_names_its_fallback(gfm: Gfm, untrained: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"text": "It was late."}\n{"text": "Then it stopped."}\n')
    gfm("index", corpus, "--out", tmp_path / "i", "--encoder", "hashing:64", "--extractor", "none")
    status, output, _ = gfm("search", tmp_path / "i", "what stopped?", "--checkpoint", untrained)
    assert status == 0
    assert "Fallback: dense" in output


HASHED = ("--encoder", "hashing:64", "--extractor", "none")


def test_index_tells_what_became_of_every_file(gfm: Gfm, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.txt").write_text("Tarn Mill was built by Orla Venn.", encoding="utf-8")
    (folder / "latin.txt").write_bytes("Sölden liegt im Ötztal.".encode("latin-1"))
    (folder / "blank.txt").write_text("\n\t ", encoding="utf-8")
    (folder / "binary.txt").write_bytes(b"\0")
    status, output, _ = gfm("index", folder, "--out", tmp_path / "i", *HASHED)
    assert status == 0
    assert "\nfiles: 4 in = 2 indexed + 0 unchanged + 1 skipped + 1 failed\n  failed binary.txt: not text" in output
    assert "\n  skipped blank.txt: no text\n  indexed latin.txt: read as windows-1252 (detected)\n" in output
    status, output, _ = gfm("index", folder, "--out", tmp_path / "i", *HASHED, "--json", "--encoding", "latin-1")
    row = json.loads(output)
    assert status == 0
    assert (row["path"], row["counts"]["documents"]) == (str(tmp_path / "i"), 2)
    assert row["account"]["counts"] == {"in": 4, "indexed": 2, "unchanged": 0, "skipped": 1, "failed": 1}
    assert {file["encoding"] for file in row["account"]["files"] if file["state"] == "indexed"} == {"latin-1"}


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_index_fails_where_nothing_was_indexed(gfm: Gfm, tmp_path: Path, flags: tuple[str, ...]) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "blank.txt").write_text("\n\t ", encoding="utf-8")
    status, output, errors = gfm("index", folder, "--out", tmp_path / "i", *HASHED, *flags)
    assert status == 1
    counts = {"in": 1, "indexed": 0, "unchanged": 0, "skipped": 1, "failed": 0}
    if flags:
        assert json.loads(output)["account"]["counts"] == counts
    else:
        assert output.startswith("files: 1 in = 0 indexed + 0 unchanged + 1 skipped + 0 failed\n")
    assert errors.startswith(f"error: {folder}: expected a file with text in it")
    assert errors.count("\n") == 1
    assert not (tmp_path / "i").exists()


def test_the_sizes_of_passages_are_settings(gfm: Gfm, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(" ".join(f"Stone {i} is grey." for i in range(40)), encoding="utf-8")
    building = ("index", tmp_path / "x.txt", "--out", tmp_path / "i", *HASHED, "--json")

    def passages(*flags: object) -> int:
        return int(json.loads(gfm(*building, *flags)[1])["counts"]["passages"])

    assert passages() == 1
    assert passages("--chunk-tokens", 32) == 6
    assert passages("--chunk-tokens", 32, "--chunk-overlap", 8) == 8
    assert gfm(*building, "--chunk-tokens", 512)[2].startswith("warning: the encoder reads 256 tokens")
    status, _, errors = gfm(*building, "--chunk-tokens", 32, "--chunk-overlap", 32)
    assert status == 1
    assert "--chunk-overlap" in errors


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"title": "x"}', "expected the field 'text'"),
        ('{"text": ', "expected one JSON object"),
        ("[1]", "found an array"),
    ],
)
def test_a_bad_line_is_one_message_with_file_and_line(gfm: Gfm, tmp_path: Path, line: str, reason: str) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(f'{{"text": "fine"}}\n{line}\n', encoding="utf-8")
    status, output, errors = gfm("index", corpus, "--out", tmp_path / "i", "--encoder", "hashing:64")
    assert (status, output) == (1, "")
    assert errors.startswith(f"error: {corpus}:2: ")
    assert reason in errors
    assert errors.count("\n") == 1


def test_index_never_replaces_a_folder_of_something_else(gfm: Gfm, z_files: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    status, _, errors = gfm(
        "index", z_files / "corpus.jsonl", "--out", tmp_path, "--encoder", "hashing:64", "--extractor", "none"
    )
    assert status == 1
    assert "--out" in errors
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_search_prints_passages_evidence_and_context(gfm: Gfm, z_index: Path, untrained: Path) -> None:
    status, output, errors = gfm("search", z_index, QUESTION, "--checkpoint", untrained, "--top-k", 3)
    assert (status, errors) == (0, "")
    assert output.startswith("Passages (score: relevance)\n  1. 0.")
    assert "Evidence paths\n" in output
    assert "—mention→ [p" in output
    assert "\n<context>\nFacts:\nF1. " in output
    assert "Reach: 5 of 5 passages, 5 of 5 entities" in output


def test_search_as_json_is_the_whole_result(gfm: Gfm, z_index: Path) -> None:
    status, output, _ = gfm("search", z_index, "Port Isk lies where?", "--retriever", "dense", "--top-k", 2, "--json")
    row = json.loads(output)
    assert status == 0
    assert [hit["rank"] for hit in row["passages"]] == [1, 2]
    assert row["passages"][0]["id"] == "p3"
    assert row["query"]["text"] == "Port Isk lies where?"
    assert row["context"]["sources"][0]["passage_id"] == "p3"


def test_search_within_some_documents(gfm: Gfm, z_index: Path) -> None:
    asked = ("search", z_index, "Which sea?", "--retriever", "dense", "--filter")
    status, output, _ = gfm(*asked, '{"document_id": "p2"}', "--json")
    assert status == 0
    assert [hit["document_id"] for hit in json.loads(output)["passages"]] == ["p2"]
    status, output, errors = gfm(*asked, '{"document_id": "nobody"}')
    assert (status, output) == (1, "")
    assert "expected some document" in errors


def test_search_with_a_least_evidence_gives_all_or_nothing(gfm: Gfm, z_index: Path) -> None:
    asked = ("search", z_index, "Orla Venn", "--retriever", "bm25", "--least")
    status, output, _ = gfm(*asked, "0.1")
    assert status == 0
    assert re.search(r"^Evidence: 0\.\d\d \(cosine of the question and the best passage\)$", output, re.MULTILINE)
    status, output, _ = gfm(*asked, "0.99")
    assert status == 0
    assert output.startswith("No passage found for: Orla Venn\n\nContext: empty")
    assert ", below 0.99: nothing here has to do with the question\n" in output
    assert json.loads(gfm(*asked, "0.99", "--json")[1])["passages"] == []


def test_search_keeps_to_the_budget(gfm: Gfm, z_index: Path) -> None:
    _, output, _ = gfm("search", z_index, QUESTION, "--retriever", "dense", "--json", "--max-tokens", 60)
    context = json.loads(output)["context"]
    assert 0 < context["num_tokens"] <= 60
    assert context["cut"]


@pytest.mark.parametrize("question", ["", "   "])
def test_a_blank_question_is_an_error(gfm: Gfm, z_index: Path, question: str) -> None:
    status, _, errors = gfm("search", z_index, question, "--retriever", "bm25")
    assert status == 1
    assert errors.startswith("error: expected a question, found ")


@pytest.mark.parametrize("question", ["?", "a", "关系"])
def test_an_odd_question_is_answered_or_told_that_nothing_was_found(gfm: Gfm, z_index: Path, question: str) -> None:
    status, output, _ = gfm("search", z_index, question, "--retriever", "bm25")
    assert status == 0
    assert output.startswith(("Passages (score: BM25)", f"No passage found for: {question}"))
    assert gfm("search", z_index, question, "--retriever", "dense")[1].startswith("Passages (score: cosine)")


def test_stats_tell_what_an_index_holds(gfm: Gfm, z_index: Path) -> None:
    status, output, _ = gfm("stats", z_index, "--json")
    row = json.loads(output)
    assert status == 0
    assert (row["counts"]["entities"], row["counts"]["facts"], row["passages_without_entities"]) == (5, 4, 1)
    assert row["encoder"]["name"] == "hashing:64"
    assert row["path"] == str(z_index)
    text = gfm("stats", z_index)[1]
    assert ["passages", "5"] in [line.split() for line in text.split("\n")]
    assert "encoder: name hashing:64, dim 64" in text


def test_a_missing_index_is_told_with_where_it_was_looked_for(
    gfm: Gfm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("search", "nowhere", "x"), ("stats", "nowhere")):
        status, output, errors = gfm(*command)
        assert (status, output) == (1, "")
        assert errors.startswith(f"error: {tmp_path / 'nowhere'}")
        assert "gfm index PATH --out" in errors


def test_a_part_of_an_index_names_the_index(gfm: Gfm, z_index: Path) -> None:
    (generation,) = z_index.glob("generation-*")
    for part in (z_index / "CURRENT", generation, generation / "facts.parquet"):
        status, output, errors = gfm("stats", part)
        told = f"expected the folder of an index, found a part of one; name that folder: {z_index}"
        assert (status, output, errors) == (1, "", f"error: {part}: {told}\n")


def test_an_altered_index_is_refused(gfm: Gfm, z_index: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(z_index, copy)
    (victim,) = copy.glob("generation-*/facts.parquet")
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    status, _, errors = gfm("search", copy, QUESTION, "--retriever", "dense")
    assert status == 1
    assert str(victim) in errors


def test_a_defect_is_not_hidden(gfm: Gfm, z_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gfm.index.index import GraphIndex

    def broken(path: Path) -> GraphIndex:
        raise ZeroDivisionError

    monkeypatch.setattr(GraphIndex, "open", broken)
    with pytest.raises(ZeroDivisionError):
        gfm("stats", z_index)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["index", "x.jsonl"],
        ["search", "i"],
        ["search", "i", "q", "--retriever", "magic"],
        ["search", "i", "q", "--top-k", "0"],
        ["stats", "i", "--wrong"],
        ["bench", "demo", "--limit", "0"],
        ["convert", "x.json"],
        ["explain", "i"],
        ["explain", "i", "q", "--against", "magic"],
    ],
)
def test_wrong_usage_is_status_2(gfm: Gfm, arguments: list[str]) -> None:
    status, output, errors = gfm(*arguments)
    assert (status, output) == (2, "")
    assert "Usage: gfm" in errors


@pytest.mark.parametrize("command", ["demo", "index", "search", "stats", "bench", "convert", "explain", "doctor"])
def test_help_has_an_example(gfm: Gfm, command: str) -> None:
    status, output, _ = gfm(command, "--help")
    assert status == 0
    assert "Example" in output
    assert f"\n    gfm {command}" in output


def test_version(gfm: Gfm) -> None:
    assert gfm("--version")[:2] == (0, f"gfm {__version__}\n")


def test_names_that_stand_here_for_a_fast_start_are_those_of_the_rooms(gfm: Gfm) -> None:
    from gfm.retrievers import NAMES

    assert all(name in gfm("search", "--help")[1] for name in NAMES)
    assert f"default: {DEFAULT_ENCODER}" in gfm("index", "--help")[1].replace("\n", " ")


# What a command must not wait for; a name without a dot stands for all of its parts.
NEVER = {"transformers", "sentence_transformers", "sklearn", "spacy", "hydra", "lightning", "bs4"}
NO_NETWORK = {"torch", "torch_geometric", "rich"} | NEVER


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (("--help",), {"numpy", "faiss"} | NO_NETWORK),
        (("stats", "INDEX", "--json"), {"bm25s", "scipy"} | NO_NETWORK),
        (("search", "INDEX", "Port Isk", "--retriever", "bm25"), NO_NETWORK),
        (("search", "INDEX", QUESTION, "--checkpoint", "NET"), {"spacy", "hydra", "bs4"}),
    ],
)
def test_a_command_waits_for_no_library_that_it_does_not_need(
    repository: Path, z_index: Path, untrained: Path, arguments: tuple[str, ...], without: set[str]
) -> None:
    typed = ["gfm", *({"INDEX": str(z_index), "NET": str(untrained)}.get(word, word) for word in arguments)]
    code = (
        f"import sys; sys.argv = {typed!r}\nfrom gfm.cli import main\n"
        "try: main()\nexcept SystemExit as stop: assert not stop.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert "typer" in loaded
    assert without & {*loaded, *(name.partition(".")[0] for name in loaded)} == set()


@pytest.mark.slow
def test_everything_works_where_the_terminal_knows_only_ascii(repository: Path, tmp_path: Path) -> None:
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "60"}
    (tmp_path / "c.jsonl").write_text(
        '{"_id": "s", "title": "Sölden 삼 🚀", "text": "Ötztal – 관계."}\n', encoding="utf-8"
    )
    building = ("index", "c.jsonl", "--out", "i", "--encoder", "hashing:64", "--extractor", "none")
    built = in_new_process(repository, *building, cwd=tmp_path, **plain)
    assert built.returncode == 0, built.stderr
    assert "entities   1" in built.stdout.decode("ascii")
    asked = ("search", "i", "Wo liegt Sölden 삼? Ötztal", "--retriever", "bm25")
    found = in_new_process(repository, *asked, cwd=tmp_path, **plain)
    assert found.returncode == 0, found.stderr
    assert "S?lden ? ? [s]\n     ?tztal - ??." in found.stdout.decode("ascii")


def test_json_loses_nothing_where_the_terminal_knows_only_ascii(
    gfm: Gfm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.jsonl").write_text('{"_id": "s", "text": "Sölden 삼 🚀"}\n', encoding="utf-8")
    gfm("index", tmp_path / "c.jsonl", "--out", tmp_path / "i", "--encoder", "hashing:64", "--extractor", "none")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert gfm("search", tmp_path / "i", "Sölden", "--retriever", "dense", "--json")[0] == 0
    assert json.loads(raw.getvalue().decode("ascii"))["passages"][0]["text"] == "Sölden 삼 🚀"


@pytest.mark.slow
def test_the_demo_runs_and_its_figures_are_those_of_the_table(gfm: Gfm, untrained: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    arguments = ("demo", "--out", out, "--encoder", "hashing:64", "--checkpoint", untrained)
    status, output, _ = gfm(*arguments, "--json")
    assert status == 0
    row = json.loads(output)
    generation = (out / "CURRENT").read_text(encoding="utf-8")
    status, output, _ = gfm(*arguments)
    assert status == 0
    assert (out / "CURRENT").read_text(encoding="utf-8") == generation
    figures_of = row["figures"]["retrievers"]
    assert set(figures_of) == set(RETRIEVERS)
    assert row["figures"]["data"]["questions"] == 108
    assert row["figures"]["groups"]["type"] == {"one_hop": 25, "bridge": 44, "multi_hop": 20, "comparison": 19}
    for part in (
        "Evidence paths",
        "<context>",
        "strict recall@2",
        "strict recall@5",
        "median ms",
        "\nNext: gfm search",
    ):
        assert part in output
    table = output[output.index("\n108 questions ") + 1 :]
    line = next(line for line in table.split("\n") if "all (108)" in line)
    shown = [float(cell) for cell in line.split()[2:]]
    order = list(RETRIEVERS)
    assert shown == [round(100 * figures_of[name]["quality"]["R@2"]["mean"], 1) for name in order]
    assert figures_of["bm25"]["quality"]["R@2"]["mean"] > 0.5
    assert next(line for line in table.split("\n") if "query encoding" in line).split()[4] == "-"
    assert max(map(len, table.split("\n")[:14])) <= 60
