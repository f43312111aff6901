from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gfm.cli.index import hub_rows
from gfm.graph import knowledge_graph
from gfm.index.index import GraphIndex
from tests.conftest import Gfm


@pytest.fixture
def index(gfm: Gfm, tmp_path: Path) -> Path:
    """An index of two notes, in a folder whose name a shell would not like."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("Tarn Mill was built by Orla Venn.", encoding="utf-8")
    (notes / "b é.txt").write_text("Orla Venn was born in Port Isk.", encoding="utf-8")
    out = tmp_path / "my index"
    gfm("index", notes, "--out", out, "--encoder", "hashing:64", "--extractor", "none")
    return out


def test_add_tells_what_was_done(gfm: Gfm, index: Path, tmp_path: Path) -> None:
    (tmp_path / "notes" / "c.txt").write_text("Quince jam.", encoding="utf-8")
    (tmp_path / "notes" / "blank.txt").write_text(" ", encoding="utf-8")
    status, output, errors = gfm("add", index, tmp_path / "notes")
    assert (status, errors) == (0, "")
    assert output.startswith(
        "documents: added 1, updated 0, unchanged 2, deleted 0\n"
        "new work: passages extracted 0, texts encoded 2\n"
        "the index holds: documents 3, edges "
    )
    assert "seconds: open " in output
    assert "; peak memory " in output
    assert "skipped blank.txt: no text" in output
    assert gfm("add", index, tmp_path / "notes")[1].startswith(
        "documents: added 0, updated 0, unchanged 3, deleted 0\n"
    )


def test_add_does_not_replace(gfm: Gfm, index: Path, tmp_path: Path) -> None:
    (tmp_path / "notes" / "a.txt").write_text("Another text.", encoding="utf-8")
    status, _, errors = gfm("add", index, tmp_path / "notes")
    assert status == 1
    assert "found another content for 'a.txt'" in errors
    assert "gfm update" in errors


def test_update_and_delete_missing(gfm: Gfm, index: Path, tmp_path: Path) -> None:
    (tmp_path / "notes" / "a.txt").write_text("Another text.", encoding="utf-8")
    (tmp_path / "notes" / "b é.txt").unlink()
    status, output, _ = gfm("update", index, tmp_path / "notes", "--json")
    row = json.loads(output)
    assert status == 0
    assert (row["updated"], row["deleted"], row["counts"]["documents"]) == (["a.txt"], [], 2)
    status, output, _ = gfm("update", index, tmp_path / "notes", "--delete-missing", "--json")
    assert json.loads(output)["deleted"] == ["b é.txt"]
    assert GraphIndex.open(index).document_ids == ["a.txt"]


def test_delete(gfm: Gfm, index: Path) -> None:
    status, output, _ = gfm("delete", index, "b é.txt")
    assert status == 0
    assert output.startswith("documents: added 0, updated 0, unchanged 0, deleted 1\n")
    status, _, errors = gfm("delete", index, "b é.txt")
    assert status == 1
    assert "expected ids of documents of the index, found 'b é.txt'" in errors
    assert "at least one document" in gfm("delete", index, "a.txt")[2]


def test_verify(gfm: Gfm, index: Path) -> None:
    status, output, _ = gfm("verify", index, "--rebuild")
    assert status == 0
    assert output == (
        "checksums: ok\ncounts: ok\ndocuments: ok\ngraph: ok\noccurrences: ok\nvectors: ok\nfresh build: ok\n"
        "the index is whole\n"
    )
    assert json.loads(gfm("verify", index, "--json")[1])["whole"] is True
    (victim,) = index.glob("generation-*/facts.parquet")
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    status, _, errors = gfm("verify", index)
    assert status == 1
    assert "facts.parquet" in errors


def test_verify_lists_what_is_wrong(gfm: Gfm, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [f"vector of passage {i}: expected length 1, found 2.0000" for i in range(30)]
    monkeypatch.setattr("gfm.index.verify.verify_index", lambda *a: {"graph": [], "vectors": wrong})
    status, output, _ = gfm("verify", index)
    assert status == 1
    assert output.startswith("graph: ok\nvectors: 30 wrong\n  vector of passage 0: expected length 1")
    assert f"  and 10 more\nbuild the index again: gfm index PATH --out {index}\n" in output
    assert json.loads(gfm("verify", index, "--json")[1]) == {
        "problems": {"graph": [], "vectors": wrong},
        "whole": False,
    }


def test_no_index(gfm: Gfm, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    for command in (("add", "i", tmp_path / "c.jsonl"), ("delete", "i", "x"), ("verify", "i")):
        status, output, errors = gfm(*command)
        assert (status, output) == (1, "")
        assert "expected the folder of an index, found none" in errors


@pytest.mark.parametrize("command", ["add", "update", "delete", "verify"])
def test_help_has_an_example(gfm: Gfm, command: str) -> None:
    status, output, _ = gfm(command, "--help")
    assert status == 0
    assert f"\n    gfm {command}" in output


def test_hubs_are_listed(gfm: Gfm, z_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A13: by edges, then by number; with the passages that mention them."""
    monkeypatch.setattr(knowledge_graph, "HUB_DEGREE", 3)
    rows = hub_rows(GraphIndex.open(z_index))
    assert rows == [
        {"name": "Halder Sea", "edges": 4, "passages": 2},
        {"name": "Orla Venn", "edges": 4, "passages": 2},
        {"name": "Port Isk", "edges": 4, "passages": 2},
    ]
    assert hub_rows(GraphIndex.open(z_index), 1) == rows[:1]
    shutil.copytree(z_index, tmp_path / "i")
    output = gfm("stats", tmp_path / "i")[1]
    assert "\nhubs: name Halder Sea, edges 4, passages 2; name Orla Venn" in output
    monkeypatch.undo()
