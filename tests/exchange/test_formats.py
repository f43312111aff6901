from __future__ import annotations

from pathlib import Path

import pytest

from gfm.cli import exchange as command
from gfm.exchange import formats, graphml
from gfm.exchange.exchange import export_graph
from gfm.exchange.tables import GraphTables
from gfm.types import Document, GfmError


def test_the_command_line_knows_the_same_formats() -> None:
    assert command.FORMATS == formats.NAMES


def test_a_path_in_no_format_tells_every_layout_that_was_tried(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(GfmError) as error:
        formats.detect(tmp_path)
    assert all(f"({name})" in str(error.value) for name in formats.NAMES)
    with pytest.raises(GfmError, match="does not exist"):
        formats.detect(tmp_path / "none")
    with pytest.raises(GfmError, match="format 'xml': expected one of graphrag, "):
        formats.read(tmp_path, "xml")


def test_an_index_is_not_imported(rich_index: Path) -> None:
    with pytest.raises(GfmError, match="found an index of gfm"):
        formats.read(rich_index)


def test_a_folder_with_something_in_it_is_left_alone(rich_index: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(GfmError, match="expected a new or empty folder"):
        export_graph(rich_index, tmp_path, "csv")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_does_not_read_back_never_gets_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B13."""
    tables = GraphTables([Document("p1", "", "x"), Document("p2", "", "y")])
    monkeypatch.setattr(graphml, "read", lambda path: GraphTables([Document("p1", "", "x")]))
    with pytest.raises(GfmError, match="expected to read back every passage"):
        formats.write(tables, tmp_path / "out", "graphml")
    assert not (tmp_path / "out").exists()


def test_an_empty_folder_and_what_an_earlier_run_left_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "rest.csv").write_text("x", encoding="utf-8")
    assert formats.write(GraphTables([Document("p1", "", "x")]), tmp_path / "out", "csv") == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert len(formats.read(tmp_path / "out").documents) == 1
