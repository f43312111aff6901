from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gfm.deferred import deferred


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library that imports two parts of its own; each part leaves a file when it loads."""
    folder = tmp_path / "lib_of_two"
    folder.mkdir()
    (folder / "__init__.py").write_text("import lib_of_two.used\nimport lib_of_two.other\n", encoding="utf-8")
    for name in ("used", "other"):
        text = f"from pathlib import Path\nPath({str(tmp_path / name)!r}).touch()\nVALUE = {name!r}\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("lib_of_two")]:
        del sys.modules[name]


def test_a_part_loads_when_it_is_used(library: Path) -> None:
    with deferred("lib_of_two.other", "lib_of_two.no_such_part"):
        found = import_module("lib_of_two")
    assert (library / "used").exists()
    assert not (library / "other").exists()
    assert found.other.VALUE == "other"
    assert (library / "other").exists()
    assert sys.modules["lib_of_two.other"] is found.other


def test_a_name_of_a_part_is_a_use(library: Path) -> None:
    with deferred("lib_of_two.other"):
        import_module("lib_of_two")
        exec("from lib_of_two.other import VALUE")
    assert (library / "other").exists()


def test_nothing_waits_afterwards(library: Path) -> None:
    finders = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), deferred("lib_of_two.other"):
        raise ZeroDivisionError
    assert sys.meta_path == finders
    import_module("lib_of_two")
    assert (library / "other").exists()


def test_a_part_that_is_there_already_is_left_alone(library: Path) -> None:
    before = import_module("lib_of_two").other
    with deferred("lib_of_two.other"):
        assert import_module("lib_of_two.other") is before
