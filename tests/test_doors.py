"""Arguments that mean what was typed, and output that degrades."""

from __future__ import annotations

import io
import os
import sys

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from gfm.cli.train import train_door
from gfm.doors import arguments_as_text, as_typed, errors_as_one_line, quoted, tolerant_output
from gfm.types import GfmError


def read_back(argument: str) -> object:
    """What a script sees of one ``key=value``, after Hydra's parser and OmegaConf's interpolation."""
    override = OverridesParser.create().parse_override(argument)
    value = override.value()
    config = OmegaConf.create({"value": value, "x": 1})
    return OmegaConf.to_container(config, resolve=True)["value"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "typed",
    [
        "Who built Tarn Mill?",
        "a, b = c",
        'He said "no", didn\'t he?',
        "1984",
        "null and void",
        "[a,b]",
        "choice(a,b)",
        "Wo liegt Köln? 关系 🚀",
        "runs/epoch=3-step=40.ckpt",
        "C:\\data\\new index\\",
        "a#b%c",
        "${x} and \\${x}",
        "true",
        "",
    ],
)
def test_a_plain_setting_is_read_back_as_typed(typed: str) -> None:
    (argument,) = arguments_as_text([f"question={typed}"], texts=["question"])
    assert read_back(argument) == typed


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"))) | st.text("${}\\'\"x:. ") | st.just("\\\\${x}\\"))
def test_any_text_survives_quoting(text: str) -> None:
    assert read_back(f"question={quoted(text)}") == text


@pytest.mark.parametrize(
    "argument", ["question='a, b'", 'question="a, b"', "question=null", "top_k=3", "+x.y=[1,2]", "~x"]
)
def test_what_is_in_hydras_grammar_on_purpose_is_left_alone(argument: str) -> None:
    assert arguments_as_text([argument], texts=["question"]) == [argument]


def test_flags_and_their_values_are_no_overrides() -> None:
    arguments = ["--cfg", "job", "-cd", "my=folder", "--help"]
    assert arguments_as_text(arguments, texts=["question"]) == arguments


def test_a_multirun_keeps_the_meaning_of_commas() -> None:
    assert arguments_as_text(["-m", "index=a,b"], ["index"]) == ["-m", "index=a,b"]


def test_an_argument_out_of_grammar_shows_its_quoted_form() -> None:
    with pytest.raises(GfmError) as caught:
        arguments_as_text(["ckpt=runs/epoch=3.ckpt"])
    assert "'ckpt=\"runs/epoch=3.ckpt\"'" in str(caught.value)
    assert read_back('ckpt="runs/epoch=3.ckpt"') == "runs/epoch=3.ckpt"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["seed=1", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["--cfg"], "argument --cfg/-c: expected one argument"),
        (["--cfg", "everything"], "argument --cfg/-c: invalid choice: 'everything'"),
        (["-m", "--cfg", "job"], "only one of --run, --multirun, --cfg, --info"),
    ],
)
def test_a_flag_that_hydra_does_not_take_is_one_line_and_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        train_door(arguments)
    errors = capsys.readouterr().err
    assert (stop.value.code, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"error: {told}")
    assert "--cfg job, which shows the settings" in errors


def test_a_stray_word_is_told_from_an_override() -> None:
    with pytest.raises(GfmError, match=r"'built': expected NAME=VALUE"):
        arguments_as_text(["question=Who", "built", "it"], texts=["question"])


def test_output_degrades_to_look_alikes_and_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    tolerant_output()
    sys.stdout.write("Tarn Mill —fact→ Sölden 삼 🚀… “x”\udcff\n")
    sys.stdout.flush()
    assert raw.getvalue().decode("ascii") == 'Tarn Mill -fact-> S?lden ? ?... "x"?\n'.replace("\n", os.linesep)


def test_surrogates_of_the_command_line_become_the_text_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    typed = "Köln 关系".encode()
    assert as_typed(typed.decode("ascii", "surrogateescape")) == "Köln 关系"
    assert as_typed("Köln") == "Köln"


def test_what_a_person_can_mend_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught, errors_as_one_line():
        raise GfmError("expected this,\n  found that")
    assert caught.value.code == 1
    assert capsys.readouterr().err == "error: expected this, found that\n"


def test_a_path_without_permission_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), errors_as_one_line():
        raise PermissionError(13, "Permission denied", "/closed")
    assert capsys.readouterr().err.startswith("error: /closed: ")


def test_a_defect_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), errors_as_one_line():
        raise ZeroDivisionError


def test_an_interrupt_is_told_once_also_where_a_library_made_an_exit_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted_library() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.exit(1)

    with pytest.raises(SystemExit) as stop, errors_as_one_line(), errors_as_one_line():
        interrupted_library()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_another_exit_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, errors_as_one_line():
        sys.exit(3)
    assert (stop.value.code, capsys.readouterr().err) == (3, "")
