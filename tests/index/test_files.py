from __future__ import annotations

import os
from pathlib import Path

import pytest

from gfm.index.files import entries, name_of

KINDS = {".txt", ".md"}


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")


def told(folder: Path) -> list[tuple[str, str, str]]:
    """Name, state and reason of what was passed over."""
    return [(e.name, e.record.state, e.record.reason) for e in entries(folder, KINDS) if e.record]


def read(folder: Path) -> list[str]:
    return [e.name for e in entries(folder, KINDS) if not e.record]


def test_all_levels_in_order_of_the_paths(tmp_path: Path) -> None:
    write(tmp_path, "b.txt", "a.MD", "sub/deep/er/c.md", "sub.txt", "Мельница.txt", "a b & c.txt")
    (tmp_path / "dir.txt").mkdir()
    assert read(tmp_path) == ["a b & c.txt", "a.MD", "b.txt", "sub.txt", "sub/deep/er/c.md", "Мельница.txt"]
    assert told(tmp_path) == []


def test_what_is_passed_over_is_told(tmp_path: Path) -> None:
    write(tmp_path, ".git/HEAD.txt", ".secret.txt", "picture.png", "Makefile", "bell\x07.txt")
    hidden = "hidden; name it to have it read"
    assert told(tmp_path) == [
        (".git/", "skipped", hidden),
        (".secret.txt", "skipped", hidden),
        ("Makefile", "skipped", "of a kind that is not read (no ending)"),
        ("bell\x07.txt", "failed", "its name holds a control character; rename it"),
        ("picture.png", "skipped", "of a kind that is not read (.png)"),
    ]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_an_index_among_the_files_is_passed_over_whole(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "idx/generation-0123456789abcdef/b.txt", "other/CURRENT", "other/c.txt")
    (tmp_path / "idx" / "CURRENT").write_text("generation-0123456789abcdef\n", encoding="utf-8")
    assert read(tmp_path) == ["a.txt", "other/c.txt"]
    assert told(tmp_path)[0] == ("idx/", "skipped", "an index")


def test_no_link_leads_round_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path, "sub/a.txt")
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    (tmp_path / "link.txt").symlink_to(tmp_path / "sub" / "a.txt")
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    assert read(tmp_path) == ["link.txt", "self.txt", "sub/a.txt"]  # to open the second is the reader's to try
    assert told(tmp_path) == [("sub/up/", "skipped", "a link to a folder; name it to have it read")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_nothing_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert told(tmp_path) == [("pipe.txt", "skipped", "a pipe or a device")]


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are Unicode there")
def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    Path(os.fsdecode(path)).write_bytes(b"x")
    assert told(tmp_path) == [("caf\\xe9.txt", "failed", "its name is not UTF-8; rename it")]
    assert name_of(Path(os.fsdecode(path))) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may open everything")
def test_a_folder_that_cannot_be_opened(tmp_path: Path) -> None:
    write(tmp_path, "sub/a.txt")
    (tmp_path / "sub").chmod(0)
    try:
        assert told(tmp_path) == [("sub/", "failed", "cannot be opened; Permission denied")]
    finally:
        (tmp_path / "sub").chmod(0o700)
