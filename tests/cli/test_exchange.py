"""Import, export and merges on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Gfm


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Two of one name, one without a name, a self-loop."""
    (tmp_path / "entities.csv").write_text(
        "id,name,type,passage_ids\n1,Lee Moss,diver,p1\n2,Lee Moss,treasurer,p2\n3,,place,p1\n", encoding="utf-8"
    )
    (tmp_path / "triples.csv").write_text(
        "head_id,relation,tail_id,passage_ids\n1,dives at,3,p1\n1,is,1,p1\n", encoding="utf-8"
    )
    (tmp_path / "passages.csv").write_text(
        "id,title,text\np1,Lee Moss,Lee Moss dives.\np2,Lee Moss,Lee Moss keeps books.\n", encoding="utf-8"
    )
    return tmp_path


def test_in_out_and_merges(gfm: Gfm, graph: Path, tmp_path: Path) -> None:
    status, output, errors = gfm("import", graph, "--out", tmp_path / "i", "--encoder", "hashing:16")
    assert (status, errors) == (0, "")
    assert output.startswith("format: csv\nread: 2 passages, 3 rows of entities, 2 triples\n")
    assert "names that several entities share, kept apart: Lee Moss\n" in output
    assert "entities without a name, shown as unnamed: 1\n" in output
    assert "self-loops left out (statements of an entity about itself): 1\n" in output
    assert "next: gfm search" in output
    assert "files: " not in output
    status, output, _ = gfm("search", tmp_path / "i", "who is the diver?", "--retriever", "dense", "--json")
    assert status == 0
    assert {hit["name"] for hit in json.loads(output)["entities"]} <= {"Lee Moss (diver)", "Lee Moss (treasurer)"}
    status, output, _ = gfm("export", tmp_path / "i", "--out", tmp_path / "e", "--format", "graphrag")
    assert status == 0
    assert "note: not part of this format, and left out: " in output
    assert f"wrote {tmp_path / 'e'} (graphrag)" in output
    status, output, _ = gfm("merges", tmp_path / "i")
    assert (
        output == "Lee Moss (diver) (context): Lee Moss (1)\nLee Moss (treasurer) (context): Lee Moss (1)\n2 merges\n"
    )
    assert json.loads(gfm("merges", tmp_path / "i", "--json")[1])[0] == {
        "forms": {"Lee Moss": 1},
        "key": "lee moss (diver)",
        "name": "Lee Moss (diver)",
        "why": "context",
    }


def test_a_check_makes_nothing(gfm: Gfm, graph: Path) -> None:
    before = sorted(graph.iterdir())
    status, output, _ = gfm("import", graph, "--check")
    assert (status, "read: 2 passages" in output) == (0, True)
    assert sorted(graph.iterdir()) == before


def test_a_bad_row_is_one_message(gfm: Gfm, graph: Path, tmp_path: Path) -> None:
    (graph / "triples.csv").write_text("head_id,relation,tail_id\n1,r,99\n", encoding="utf-8")
    status, output, errors = gfm("import", graph, "--out", tmp_path / "i", "--encoder", "hashing:16")
    assert (status, output) == (1, "")
    assert errors.startswith(f"error: {graph / 'triples.csv'}:2: unknown node '99'")
    assert not (tmp_path / "i").exists()


def test_index_takes_aliases_and_tells_of_self_loops(gfm: Gfm, z_files: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("alias,name\nOrla Venn,Tarn Mill\n", encoding="utf-8")
    arguments = ("--triples", z_files / "triples.jsonl", "--aliases", tmp_path / "a.csv", "--encoder", "hashing:16")
    status, output, _ = gfm("index", z_files / "corpus.jsonl", "--out", tmp_path / "i", *arguments)
    assert status == 0
    assert "self-loops left out (statements of an entity about itself): 1" in output
    assert gfm("merges", tmp_path / "i")[1] == "Tarn Mill (alias): Orla Venn (2)\n1 merge\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "x"),
        ("import", "x", "--out", "i", "--check"),
        ("import", "x", "--out", "i", "--format", "xml"),
        ("export", "x"),
        ("export", "x", "--out", "o", "--format", "xml"),
    ],
)
def test_wrong_usage_is_status_2(gfm: Gfm, arguments: tuple[str, ...]) -> None:
    status, output, errors = gfm(*arguments)
    assert (status, output) == (2, "")
    assert "Usage: gfm" in errors


@pytest.mark.parametrize("command", ["import", "export", "merges"])
def test_help_has_an_example(gfm: Gfm, command: str) -> None:
    status, output, _ = gfm(command, "--help")
    assert (status, f"\n    gfm {command}" in output) == (0, True)
