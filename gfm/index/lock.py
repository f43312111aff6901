"""One writer at a time: a lock on an index's folder that dies with the process that holds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gfm.types import GfmError

LOCK = "writer.lock"

if sys.platform == "win32":
    import msvcrt

    def _acquire(handle: int) -> None:
        os.lseek(handle, 1 << 20, os.SEEK_SET)  # a locked byte cannot be read: keep clear of the process id
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _acquire(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Hold the right to write the index in the folder ``root``, which exists.

    The operating system holds the lock, not the file's presence: that of a killed process is free at once, and a
    process id that another program got since locks nobody out. The file stays (to delete it would race with the next
    writer); it names the process that holds the lock, and is empty otherwise.

    Raises:
        GfmError: Another process, or another thread of this one, is writing; the message names the process. Or the
            folder cannot be written.
    """
    try:
        handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise GfmError(
            f"{root / LOCK}: expected a file that can be written, found: {error}; see who may write this folder"
        ) from error
    try:
        try:
            _acquire(handle)
        except OSError as error:
            os.lseek(handle, 0, os.SEEK_SET)
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            raise GfmError(
                f"{root}: expected to be the only writer of this index, found process {holder or 'unknown'} writing it "
                f"({error.strerror}); wait for it to end, or give another --out"
            ) from error
        try:
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise GfmError(
                f"{root / LOCK}: expected a file that can be written, found: {error}; see that its disk has space"
            ) from error
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)
