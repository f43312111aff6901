"""`gfm explain`, as people and scripts meet it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Gfm

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def explain(gfm: Gfm, z_index: Path, untrained: Path) -> Run:
    """Asks Corpus Z with further arguments: exit status, standard output, standard error."""
    return partial(gfm, "explain", z_index, QUESTION, "--checkpoint", untrained)


def test_it_prints_passages_paths_and_the_other_retriever(explain: Run) -> None:
    status, output, errors = explain("--against", "bm25", "--top-k", 2)
    assert (status, errors) == (0, "")
    first, second = output.split("\nThe same question with bm25\n")
    assert first.startswith("Passages (score: relevance)\n  1. ")
    assert "\nEvidence paths\n" in first
    assert "\nReach: 5 of 5 passages, 5 of 5 entities\n" in first
    assert "\nThe first passage's score rests on\n  " in first + second
    assert "<context>" not in output
    assert second.startswith("Passages (score: BM25)\n  1. ")
    assert "  3. " not in output
    assert output.rstrip().split("\n")[-1].startswith("next: gfm explain ")


def test_json_has_the_whole_graph(explain: Run) -> None:
    status, output, _ = explain("--json", "--against", "dense")
    made = json.loads(output)
    assert status == 0
    assert len(made["graph"]["nodes"]) == 10
    assert made["against"]["trace"]["retriever"] == "dense"
    assert made["passages"][0]["rank"] == 1


def test_filters_limit_what_is_searched(explain: Run) -> None:
    status, output, _ = explain("--json", "--against", "dense", "--filter", '{"document_id": {"$in": ["p1", "p3"]}}')
    made = json.loads(output)
    assert status == 0
    assert {hit["id"] for hit in made["passages"]} == {hit["id"] for hit in made["against"]["passages"]} == {"p1", "p3"}
    assert "p2" not in output


def test_html_is_one_file(explain: Run, tmp_path: Path) -> None:
    file = tmp_path / "new" / "why.html"
    status, output, _ = explain("--html", file)
    assert status == 0
    assert output.rstrip().endswith(f"wrote {file}: open it in any browser")
    assert [path.name for path in file.parent.iterdir()] == ["why.html"]
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_with_both_only_json_is_printed(explain: Run, tmp_path: Path) -> None:
    status, output, _ = explain("--html", tmp_path / "why.html", "--json")
    assert status == 0
    assert json.loads(output)["query"]["text"] == QUESTION
    assert (tmp_path / "why.html").is_file()


def test_a_file_that_cannot_be_written_is_told_before_the_work(explain: Run, tmp_path: Path) -> None:
    status, output, errors = explain("--html", tmp_path)
    assert (status, output) == (1, "")
    assert errors.startswith(f"error: {tmp_path}: expected a file to write, found a folder; name a file in it")
