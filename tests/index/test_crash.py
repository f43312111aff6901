"""What a kill, a full disk or a forbidden folder leaves behind: the old index or the new one, whole.

100 kills by default; more:

    GFM_KILLS=2000 python -m pytest tests/index/test_crash.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

KILLS = int(os.environ.get("GFM_KILLS", "100"))

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into, as pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="gfm-crash-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def worker(repository: Path, *arguments: object) -> tuple[dict[str, int], str]:
    done = subprocess.run(
        [sys.executable, str(repository / "tests" / "index" / "crash_worker.py"), *map(str, arguments)],
        # One thread: the process forks.
        env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found, done.stderr


@pytest.mark.slow
def test_kills_at_random_moments(repository: Path, tmp_path: Path) -> None:
    """D08: each time the old or the new index opens, whole, and the next run goes on from the cache."""
    found, _ = worker(repository, "kills", tmp_path, KILLS)
    assert found["killed"] == KILLS


@pytest.mark.slow
def test_a_disk_that_is_full(repository: Path, tmp_path: Path) -> None:
    found, errors = worker(repository, "limits", tmp_path)
    assert found["sizes"] > 3  # vectors, graph, texts, …
    assert errors.count("see that it is writable and has space") == found["sizes"]
    assert errors.count("writer.lock: expected a file that can be written") == 1
    assert errors.count("cache.sqlite: expected the index's cache") == 1


def test_a_folder_that_may_not_be_written(repository: Path, open_folder: Path) -> None:
    _, errors = worker(repository, "readonly", open_folder)
    assert errors.count("writer.lock: expected a file that can be written") == 2
