"""`gfm doctor`, as people and scripts meet it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gfm.cli import main
from gfm.doctor import NOTE, OK, WRONG, Examination, Finding
from tests.conftest import Gfm

WELL = (Finding("versions", OK, "gfm 1"), Finding("versions", NOTE, "the extra is not there", "pip install it"))
ILL = Finding("index", WRONG, "its graph is empty", "gfm index PATH --out i")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def doctor(gfm: Gfm, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command with what the examination finds: exit status, standard output, standard error."""
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def run(found: Examination, *arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("gfm.doctor.examine", lambda index: found)
        return gfm("doctor", *arguments)

    return run


def test_notes_are_no_troubles(doctor: Run) -> None:
    status, output, errors = doctor(Examination(WELL, {}))
    assert (status, errors) == (0, "")
    assert output.split("\n") == [
        "versions",
        "  ok    gfm 1",
        "  note  the extra is not there",
        "        pip install it",
        "",
        "nothing is wrong",
        "",
    ]


def test_a_trouble_is_told_with_what_mends_it_and_status_1(doctor: Run) -> None:
    card: dict[str, Any] = {"passages": 1234, "extractors": [], "largest_component": 3}
    status, output, _ = doctor(Examination((*WELL, ILL), card), "my_index")
    assert status == 1
    assert "index\n  wrong its graph is empty\n        gfm index PATH --out i\n" in output
    assert "card\n  passages: 1,234\n  extractors: none\n  largest component: 3\n" in output
    assert output.endswith("\nwrong: 1\n")


def test_json(doctor: Run) -> None:
    status, output, _ = doctor(Examination((ILL,), {"passages": 5}), "--json")
    assert status == 1
    assert json.loads(output) == {
        "well": False,
        "findings": [
            {"about": "index", "state": "wrong", "text": "its graph is empty", "mend": "gfm index PATH --out i"}
        ],
        "card": {"passages": 5},
    }


@pytest.mark.slow
def test_the_real_one_on_an_index(
    z_index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("_encoders", "_extractors"):  # tests/test_doctor.py loads them
        monkeypatch.setattr(f"gfm.doctor.{part}", lambda: iter(()))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "argv", ["gfm", "doctor", str(z_index)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    output = capsys.readouterr().out
    assert "  components: 2\n" in output
    assert output.endswith("\nnothing is wrong\n")
