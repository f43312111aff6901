"""What became of every file that was handed in: in = indexed + unchanged + skipped + failed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

State = Literal["indexed", "unchanged", "skipped", "failed"]
STATES: tuple[State, ...] = ("indexed", "unchanged", "skipped", "failed")
_NAMES_SHOWN = 5
_LINES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What became of one file.

    Attributes:
        name: Its path relative to the folder that was handed in, or its name; a folder that was not entered ends in /.
        state: ``indexed``: its text is in the index. ``unchanged``: it was there before. ``skipped``: it holds nothing
            to index. ``failed``: it may, but could not be read.
        reason: Why it was skipped or failed; of an indexed file, whose text it repeats.
        encoding: What its bytes were read in, in words; empty where they were not text.
        documents: Ids of the documents that it holds.
    """

    name: str
    state: State
    reason: str = ""
    encoding: str = ""
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """The records of all files, by name."""

    files: tuple[FileRecord, ...]

    def counts(self) -> dict[str, int]:
        """Number of files: ``in``, and of these in each state."""
        found = Counter[str](file.state for file in self.files)
        return {"in": len(self.files), **{state: found[state] for state in STATES}}

    def with_unchanged(self, document_ids: Collection[str]) -> Account:
        """The account where these documents were in the index before, as they are."""
        known = set(document_ids)

        def seen(file: FileRecord) -> bool:
            return file.state == "indexed" and known.issuperset(file.documents)

        return Account(tuple(replace(file, state="unchanged") if seen(file) else file for file in self.files))

    def as_json(self) -> dict[str, Any]:
        """Counts and records, ready for `json.dumps`."""
        records = [{name: getattr(file, name) for name in FileRecord.__slots__} for file in self.files]
        return {"counts": self.counts(), "files": records}

    def lines(self) -> Iterator[str]:
        """For people: the counts, then what is worth telling, files of one kind on one line."""
        counts = self.counts()
        yield f"files: {counts['in']:,} in = " + " + ".join(f"{counts[state]:,} {state}" for state in STATES)
        told: dict[tuple[str, str], list[str]] = defaultdict(list)
        for file in self.files:
            for remark in _remarks(file):
                told[file.state, remark].append(file.name)
        for (state, remark), names in list(told.items())[:_LINES_SHOWN]:
            more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
            yield f"  {state} {', '.join(names[:_NAMES_SHOWN])}{more}: {remark}"
        if len(told) > _LINES_SHOWN:
            yield f"  and {len(told) - _LINES_SHOWN:,} more such lines; --json has them all"


def _remarks(file: FileRecord) -> Iterator[str]:
    if file.reason:
        yield file.reason
    if file.encoding not in ("", "UTF-8"):
        yield f"read as {file.encoding}"
