"""What a comparison is made of, from the command line and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gfm.eval.settings import BenchSettings, Entry, bench_settings, entries, file_name
from gfm.resources import demo_folder
from gfm.retrievers import NAMES
from gfm.types import GfmError


def test_a_name_brings_the_settings_of_its_file() -> None:
    found = entries("hybrid, bm25")
    assert [e.label for e in found] == ["hybrid", "bm25"]
    assert found[0].settings["k"] == 60
    assert found[1].settings == {"name": "bm25"}
    assert [e.label for e in entries("all")] == list(NAMES)


def test_a_mapping_changes_settings_and_takes_a_label() -> None:
    found = entries([{"label": "keep 1.0", "name": "gfm", "keep": 1.0}, "gfm"])
    assert found[0].label == "keep 1.0"
    assert found[0].settings == {**found[1].settings, "keep": 1.0}
    assert "label" not in found[0].settings


def test_a_file_and_a_trained_network_are_named_by_their_places(tmp_path: Path, untrained: Path) -> None:
    path = tmp_path / "flat.yaml"
    path.write_text("name: hybrid\nk: 5\n", encoding="utf-8")
    run = tmp_path / "rounds-2"
    run.mkdir()
    (run / "checkpoint").symlink_to(untrained)
    found = entries([str(path), str(run / "checkpoint"), str(untrained)])
    assert found[0] == Entry("flat", {"name": "hybrid", "k": 5})
    assert [e.label for e in found[1:]] == ["rounds-2", untrained.name]
    assert found[1].settings["path"] == str(run / "checkpoint")
    assert found[1].settings["name"] == "gfm"


def test_a_checkpoint_is_for_gfm_alone() -> None:
    found = entries(["gfm", {"label": "shipped", "name": "gfm"}], "folder")
    assert [e.settings.get("path") for e in found] == ["folder", None]
    with pytest.raises(GfmError, match="expected gfm among the retrievers"):
        entries("dense", "folder")


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("", "expected some of gfm, .* found none"),
        ("dense,magic", "retriever 'magic': expected one of"),
        ("nowhere.yaml", r"nowhere\.yaml: expected a YAML file"),
        ([{"k": 3}], "expected one of"),
        ("dense,dense", "two retrievers are called 'dense'"),
        ([{"name": "dense", "label": "a b"}, {"name": "dense", "label": "A_B"}], "are called 'A_B'"),
        ([{"name": "dense", "label": "../x"}], r"label '\.\./x': expected"),
        ([{"name": "dense", "label": 3}], "label 3: expected"),
    ],
)
def test_what_no_retriever_is(chosen: object, words: str) -> None:
    with pytest.raises(GfmError, match=words):
        entries(chosen)  # type: ignore[arg-type]


def test_what_is_given_goes_before_the_file_and_that_before_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("data: [a, b]\nretrievers: [dense]\nseed: 3\nlimit: 5\n", encoding="utf-8")
    found = bench_settings({"seed": 4, "root": "far", "limit": None}, path)
    assert found == BenchSettings((str(Path("far/a")), str(Path("far/b"))), found.retrievers, seed=4, limit=5)
    assert [e.label for e in found.retrievers] == ["dense"]
    assert bench_settings({"data": ["demo"], "retrievers": "bm25"}).data == (str(demo_folder()),)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "expected folders with question sets"),
        ({"data": "a"}, "data: expected a list"),
        ({"data": ["a"], "limits": 3}, "limits: no such setting; expected some of .*limit"),
        ({"data": ["a"], "limit": 0}, "limit: expected a whole number of 1 or more"),
        ({"data": ["a"], "seed": True}, "seed: expected a whole number of 0 or more"),
        ({"data": ["a"], "max_tokens": "2"}, "max_tokens: expected a whole number"),
        ({"data": ["a"], "out": 3}, "out: expected text"),
        ({"data": ["a"], "pictures": "no"}, "pictures: expected true or false"),
    ],
)
def test_settings_that_cannot_be_meant(given: dict[str, object], words: str) -> None:
    with pytest.raises(GfmError, match=words):
        bench_settings({"retrievers": "dense", **given})


@pytest.mark.parametrize(
    ("text", "words"), [("a: [", "names and values, found: "), ("- a\n", "found a list"), ("x: ${y}\n", "found: ")]
)
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GfmError, match=words):
        bench_settings({}, path)
    with pytest.raises(GfmError, match=r"known to --config: .*baselines"):
        bench_settings({}, "nosuch")


def test_every_published_table_has_settings_that_load(repository: Path) -> None:
    names = sorted(path.stem for path in (repository / "configs" / "experiment" / "bench").glob("*.yaml"))
    assert {"baselines", "ablations", "keep", "demo"} <= set(names)
    for name in names:
        assert bench_settings({}, name).out == f"bench/{name}"


def test_a_label_as_a_file() -> None:
    assert file_name("Keep 0.1") == "keep_0.1"
