"""Where the demo data and the configurations are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from gfm import resources
from gfm.types import GfmError


def test_a_checkout_has_them_at_its_top(repository: Path) -> None:
    assert resources.demo_folder() == repository / "data" / "demo"
    assert resources.config_folder() == repository / "configs"


def test_a_wheel_has_them_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, file in (
        ("gfm/demo_data", "corpus.jsonl"),
        ("gfm/configs", "infer.yaml"),
        ("data/demo", "corpus.jsonl"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / file).touch()
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "gfm")
    assert resources.demo_folder() == tmp_path / "gfm" / "demo_data"
    assert resources.config_folder() == tmp_path / "gfm" / "configs"


def test_a_broken_install_names_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "gfm")
    with pytest.raises(GfmError) as caught:
        resources.demo_folder()
    assert str(tmp_path / "gfm" / "demo_data") in str(caught.value)
    assert str(tmp_path / "data" / "demo") in str(caught.value)
