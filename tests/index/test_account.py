from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gfm.index.account import STATES, Account, FileRecord

FILES = (
    FileRecord("a.txt", "indexed", "", "UTF-8", ("a.txt",)),
    FileRecord("b.txt", "indexed", "same text as a.txt", "windows-1252 (detected)", ("a.txt",)),
    FileRecord("c.csv", "indexed", "", "UTF-8", ("1", "2")),
    FileRecord("d.txt", "skipped", "no text"),
    FileRecord("e.pdf", "failed", "encrypted"),
    FileRecord("f.txt", "skipped", "no text"),
)


def test_the_account_for_people() -> None:
    assert list(Account(FILES).lines()) == [
        "files: 6 in = 3 indexed + 0 unchanged + 2 skipped + 1 failed",
        "  indexed b.txt: same text as a.txt",
        "  indexed b.txt: read as windows-1252 (detected)",
        "  skipped d.txt, f.txt: no text",
        "  failed e.pdf: encrypted",
    ]


def test_the_account_for_programs_has_every_file() -> None:
    row = json.loads(json.dumps(Account(FILES).as_json()))
    assert row["counts"] == {"in": 6, "indexed": 3, "unchanged": 0, "skipped": 2, "failed": 1}
    assert row["files"][2] == {
        "name": "c.csv",
        "state": "indexed",
        "reason": "",
        "encoding": "UTF-8",
        "documents": ["1", "2"],
    }
    assert len(row["files"]) == 6


def test_a_file_is_unchanged_if_all_its_documents_are() -> None:
    account = Account(FILES).with_unchanged({"a.txt", "1", "x"})
    assert [file.state for file in account.files] == [
        "unchanged",
        "unchanged",
        "indexed",
        "skipped",
        "failed",
        "skipped",
    ]


def test_people_are_spared_long_lists() -> None:
    same = tuple(FileRecord(f"{n}.png", "skipped", "a picture") for n in range(1007))
    other = tuple(FileRecord(f"{n}.csv", "failed", f"line {n}: wrong") for n in range(30))
    _, first, *rest = Account(same + other).lines()
    assert first == "  skipped 0.png, 1.png, 2.png, 3.png, 4.png and 1,002 more: a picture"
    assert len(rest) == 20
    assert rest[-1] == "  and 11 more such lines; --json has them all"


@given(st.lists(st.sampled_from(STATES)))
def test_the_counts_add_up(states: list[str]) -> None:
    counts = Account(tuple(FileRecord(str(n), state) for n, state in enumerate(states))).counts()  # type: ignore[arg-type]
    assert counts["in"] == sum(counts[state] for state in STATES) == len(states)
