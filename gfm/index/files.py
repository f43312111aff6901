"""The files below a folder: those to read, and what is passed over with the reason."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gfm.index.account import FileRecord, State
from gfm.index.store import GENERATION, current
from gfm.text.reading import is_identifier


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to read, or, with a record, something that was passed over.

    Attributes:
        name: Relative POSIX path, in Unicode whatever the locale.
        path: To open it.
        record: Why it was passed over.
    """

    name: str
    path: Path
    record: FileRecord | None = None


def entries(folder: Path, kinds: Collection[str]) -> list[Entry]:
    """Everything below a folder, through all levels, sorted by name.

    Hidden files and folders are passed over, indexes, and links to folders, so that none leads round in a circle.

    Args:
        folder: Where to look.
        kinds: Endings, in lower case, of the files to read.
    """
    found: list[Entry] = []

    def unreadable(error: OSError) -> None:
        found.append(_passed_over(folder, Path(error.filename), "failed", f"cannot be opened; {error.strerror}"))

    for place, folders, files in os.walk(folder, onerror=unreadable):
        for path in [Path(place, name) for name in folders]:
            if reason := _why_not_entered(path):
                folders.remove(path.name)
                found.append(_passed_over(folder, path, "skipped", reason))
        found += (_entry(folder, Path(place, name), kinds) for name in files)
    return sorted(found, key=lambda entry: entry.name)


def _why_not_entered(path: Path) -> str:
    """Why a folder is passed over; empty where it is not."""
    if path.name.startswith("."):
        return "hidden; name it to have it read"
    if path.is_symlink():
        return "a link to a folder; name it to have it read"
    return "an index" if GENERATION.fullmatch(current(path)) else ""


def name_of(path: Path) -> str | None:
    """A relative path as text; None where its bytes are not UTF-8. In some locales Python hands them on undecoded."""
    try:
        return os.fsencode(path.as_posix()).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _entry(folder: Path, path: Path, kinds: Collection[str]) -> Entry:
    name = name_of(path.relative_to(folder))
    if name is None:
        return _passed_over(folder, path, "failed", "its name is not UTF-8; rename it")
    if not is_identifier(name):
        return _passed_over(folder, path, "failed", "its name holds a control character; rename it")
    if path.name.startswith("."):
        return _passed_over(folder, path, "skipped", "hidden; name it to have it read")
    kind = path.suffix.lower()
    if kind not in kinds:
        return _passed_over(folder, path, "skipped", f"of a kind that is not read ({kind or 'no ending'})")
    if path.exists() and not path.is_file():
        return _passed_over(folder, path, "skipped", "a pipe or a device")
    return Entry(name, path)


def _passed_over(folder: Path, path: Path, state: State, reason: str) -> Entry:
    name = os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "backslashreplace")
    name += "/" if path.is_dir() else ""
    return Entry(name, path, FileRecord(name, state, reason))
