"""Kills, full disks and forbidden folders, for real: what is to fail runs in a forked process. Run by test_crash.py.

python crash_worker.py kills|limits|readonly FOLDER [COUNT]
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gfm.index import store
from gfm.index.builder import build_index
from gfm.index.content import read_documents_of
from gfm.index.living import change_documents
from gfm.index.recipe import BuildSettings
from gfm.index.verify import verify_index
from gfm.text.encoder import HashingEncoder
from gfm.types import Document, GfmError
from tests.index.fakes import Capitals

ENCODER, SETTINGS = HashingEncoder(16), BuildSettings(chunk_tokens=40)
NAMES = ("Tarn Mill", "Orla Venn", "Port Isk", "Halder Sea", "Mercury (god)", "Mercury")
Documents = dict[str, Document]
Step = Callable[[], object]


def some(rng: random.Random, count: int, names: int = 12) -> Documents:
    """Documents that name each other; their ids are few, so that they replace each other."""
    made = (
        Document(
            f"d{rng.randrange(20)}", rng.choice(NAMES), f"{' met '.join(rng.choices(NAMES, k=names))} {rng.random()}."
        )
        for _ in range(count)
    )
    return {d.id: d for d in made}


def build(path: Path, documents: Documents) -> None:
    build_index(list(documents.values()), path, ENCODER, [Capitals()], SETTINGS)


def change(path: Path, put: Documents, delete: list[str]) -> int:
    """Extractions that had to be made."""
    return change_documents(path, list(put.values()), delete, encoder=ENCODER, extractors=[Capitals()]).extracted


def held(path: Path) -> Documents:
    return {d.id: d for d in read_documents_of(store.open_generation(path)[0])[0]}


def cached(path: Path) -> int:
    with sqlite3.connect(path / "cache.sqlite") as connection:
        (count,) = connection.execute("SELECT count(*) FROM extraction").fetchone()
    connection.close()
    return int(count)


def child(step: Step) -> int:
    """Start a step in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            step()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def run(step: Step) -> None:
    """A step that must not fail."""
    if os.waitpid(child(step), 0)[1] != 0:
        raise SystemExit("a step failed")


def check(path: Path, *allowed: Documents) -> None:
    """The index opens, is whole, and holds one of the sets of documents."""
    found = verify_index(path)
    assert not any(found.values()), found
    assert held(path) in allowed, (sorted(held(path)), [sorted(d) for d in allowed])


class Move(NamedTuple):
    """One step of the kills: what it does and what comes of it."""

    kind: str
    put: Documents
    delete: list[str]
    after: Documents

    def go(self, path: Path) -> None:
        """Do it."""
        if self.kind == "build":
            build(path, self.after)
        else:
            change(path, self.put, self.delete)

    def go_on(self, path: Path) -> None:
        """Do what a kill left undone, and extract nothing that the cache has."""
        before, there = cached(path), held(path)
        if self.kind == "build":
            build(path, self.after)
        else:
            made = change(path, self.put, [i for i in self.delete if i in there])
            assert made == cached(path) - before
        check(path, self.after)


def move(rng: random.Random, kind: str, now: Documents) -> Move:
    if kind == "delete":
        gone = rng.sample(sorted(now), min(2, len(now) - 1))
        return Move(kind, {}, gone, {i: d for i, d in now.items() if i not in gone})
    put = some(rng, 12 if kind == "build" else 3)
    return Move(kind, put, [], put if kind == "build" else now | put)


def kills(root: Path, count: int) -> dict[str, int]:
    """Kill builds, additions and deletions at random moments, until ``count`` of them were killed.

    How long a step takes is learnt on the way: where one was over before its end, the next are not waited for as long.
    """
    rng, path, found = random.Random(7), root / "index", Counter[str]()
    now, seconds = some(rng, 12), 0.0
    build(path, now)  # loads what is loaded late
    for _ in range(2):
        start = time.perf_counter()
        run(partial(build, path, now))
        seconds = time.perf_counter() - start
    while found["killed"] < count:
        i = found.total()
        step = move(rng, ("build", "add", "delete")[i % 3], now)
        pid = child(partial(step.go, path))
        time.sleep(rng.random() * seconds)
        os.kill(pid, signal.SIGKILL)
        code = os.waitpid(pid, 0)[1]
        found["killed" if os.WIFSIGNALED(code) else "finished"] += 1
        seconds *= 1.05 if os.WIFSIGNALED(code) else 0.8
        check(path, now, step.after)
        step.go_on(path)
        now = step.after
    return dict(found)


def refused(path: Path, step: Step, before: Documents) -> None:
    """The step ends with an error that a person can mend, and the index stands as it was."""
    try:
        step()
    except GfmError as error:
        print(error, file=sys.stderr)
    else:
        raise AssertionError("expected an error")
    check(path, before)


def limited(path: Path, put: Documents, now: Documents, size: int) -> None:
    """An addition that finds no file may grow beyond a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    refused(path, lambda: change(path, put, []), now)


def limits(root: Path) -> dict[str, int]:
    """A disk that is full when a file reaches a size: that of each greater file, and less than lock and cache need."""
    path = root / "index"
    now, more = some(random.Random(1), 12, names=900), some(random.Random(2), 3)
    run(partial(build, path, now))
    run(partial(change, path, more, []))  # so that the cache knows all
    folder = path / store.current(path)
    sizes = sorted({p.stat().st_size for p in folder.iterdir() if p.stat().st_size > 1 << 16})
    run(partial(build, path, now))
    for size in sizes:
        run(partial(limited, path, more, now, size - 1))
    for size in (0, 5000):
        run(partial(limited, path, some(random.Random(3), 3), now, size))
    run(partial(change, path, more, []))
    run(partial(check, path, now | more))
    return {"sizes": len(sizes)}


def readonly(root: Path) -> dict[str, int]:
    """A folder that may not be written, by a user whom that stops."""
    path = root / "index"
    now, more = some(random.Random(1), 12), some(random.Random(2), 3)
    run(partial(build, path, now))
    for entry in (*path.iterdir(), path):
        entry.chmod(0o555 if entry.is_dir() else 0o444)

    def as_nobody() -> None:
        check(path, now)  # imports what waits for its first use: nobody may be unable to read where Python lies
        if os.geteuid() == 0:
            os.setuid(65534)
        check(path, now)
        refused(path, lambda: change(path, more, []), now)
        refused(path, lambda: build(path, more), now)

    run(as_nobody)
    path.chmod(0o755)
    for entry in path.iterdir():
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    run(partial(change, path, more, []))
    run(partial(check, path, now | more))
    return {}


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    steps = {"kills": kills, "limits": limits, "readonly": readonly}
    print(json.dumps(steps[command](Path(folder), *map(int, rest))))
