from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gfm.index.lock import LOCK, writer_lock
from gfm.types import GfmError

HOLD = """
import sys
from pathlib import Path
from gfm.index.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_writers_in_one_process(tmp_path: Path) -> None:
    """E05."""
    with writer_lock(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"
        with (
            pytest.raises(GfmError, match=rf"found process {os.getpid()} writing it .*another --out"),
            writer_lock(tmp_path),
        ):
            pytest.fail("two writers at once")
        assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"
    assert (tmp_path / LOCK).read_bytes() == b""
    with writer_lock(tmp_path):
        pass


def test_a_writer_that_fails_lets_go(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="crash"), writer_lock(tmp_path):
        raise RuntimeError("crash")
    assert (tmp_path / LOCK).read_bytes() == b""
    with writer_lock(tmp_path):
        pass


def test_a_killed_writer_lets_go(tmp_path: Path, repository: Path) -> None:
    """E05: another process holds it; once that is killed, its process id stays in the file and stops nobody."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(GfmError, match=rf"found process {holder.pid} writing"), writer_lock(tmp_path):
            pytest.fail("two writers at once")
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{holder.pid}\n"
    with writer_lock(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_a_file_of_a_process_that_is_gone_is_no_lock(tmp_path: Path) -> None:
    """Nor one of a process that lives, but does not hold it: the system gives ids to new processes again."""
    for text in ("999999999\n", f"{os.getppid()}\n", "not a number", ""):
        (tmp_path / LOCK).write_text(text, encoding="utf-8")
        with writer_lock(tmp_path):
            assert (tmp_path / LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(GfmError, match=r"writer\.lock: expected a file that can be written"), writer_lock(tmp_path):
        pytest.fail("no lock")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(GfmError, match=r"No space left on device; see that its disk has space"), writer_lock(tmp_path):
        pytest.fail("a lock that names nobody")
    monkeypatch.undo()
    with writer_lock(tmp_path):
        pass
