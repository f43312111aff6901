"""The package from outside: what the wheel holds, and what ``import gfm`` costs and exports."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from gfm import __version__

INFO = f"gfm_retriever-{__version__}.dist-info"
EXECUTABLE_DATA = {".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".npy", ".npz"}


def files_of_the_repository(root: Path) -> list[str]:
    """Paths of what is tracked, or new and not ignored, and still there."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("needs git and a checkout to tell the project's files from ignored ones")
    listing = subprocess.run(
        [git, "-c", f"safe.directory={root}", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    names = listing.stdout.decode("utf-8").split("\0")
    return sorted({name for name in names if name and (root / name).is_file()})


@pytest.fixture(scope="module")
def clean_copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a fresh clone would have it."""
    copy = tmp_path_factory.mktemp("clean") / "copy"
    for name in files_of_the_repository(repository):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository / name, target)
    return copy


@pytest.fixture(scope="module")
def wheel(clean_copy: Path) -> dict[str, bytes]:
    """The files of the wheel that the clean copy makes: path → bytes."""
    dist = clean_copy.parent / "dist"
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(clean_copy)]
    built = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = dist.glob("*.whl")
    assert path.name == f"gfm_retriever-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def shipped_from(copy: Path, folder: str, inside: str) -> dict[str, bytes]:
    """What the wheel must hold for ``folder`` of the repository: its files, under ``inside``."""
    files = (path for path in (copy / folder).rglob("*") if path.is_file())
    return {f"{inside}/{path.relative_to(copy / folder).as_posix()}": path.read_bytes() for path in files}


def may_be_a_pickle(name: str, data: bytes) -> bool:
    """Whether the bytes begin as a binary pickle (0x80) or as a zip (in which torch hides one) does."""
    # A safetensors file begins with the length of its header, which may be any number; then comes the header, JSON.
    if name.endswith(".safetensors") and data[8:9] == b"{":
        return False
    return data[:1] == b"\x80" or data[:2] == b"PK"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "inside"), [("gfm", "gfm"), ("configs", "gfm/configs"), ("data/demo", "gfm/demo_data")]
)
def test_wheel_holds_every_file_of_the_package(
    wheel: dict[str, bytes], clean_copy: Path, folder: str, inside: str
) -> None:
    expected = shipped_from(clean_copy, folder, inside)
    if folder != "configs":
        assert expected
    assert {name: wheel.get(name) for name in expected} == expected


@pytest.mark.slow
def test_wheel_holds_nothing_else(wheel: dict[str, bytes], clean_copy: Path) -> None:
    expected: set[str] = set()
    for folder, inside in [("gfm", "gfm"), ("configs", "gfm/configs"), ("data/demo", "gfm/demo_data")]:
        expected |= set(shipped_from(clean_copy, folder, inside))
    rest = {PurePosixPath(name) for name in wheel if name not in expected}
    assert {path.parts[0] for path in rest} == {INFO}
    assert {"gfm/types.py", "gfm/demo_data/corpus.jsonl"} <= expected


@pytest.mark.slow
def test_wheel_holds_no_executable_data(wheel: dict[str, bytes]) -> None:
    assert [name for name in wheel if PurePosixPath(name).suffix in EXECUTABLE_DATA] == []
    assert [name for name, data in wheel.items() if may_be_a_pickle(name, data)] == []


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("a.bin", pickle.dumps([1]), True),
        ("a.bin", b"PK\x03\x04", True),
        ("a.safetensors", pickle.dumps([1]), True),
        ("a.safetensors", b"\x80\x02\0\0\0\0\0\0{", False),
        ("a.json", b"{}", False),
    ],
)
def test_a_pickle_is_known_by_its_first_bytes(name: str, data: bytes, found: bool) -> None:
    assert may_be_a_pickle(name, data) is found


@pytest.mark.slow
def test_wheel_names_no_folder_of_the_machine_that_built_it(
    wheel: dict[str, bytes], clean_copy: Path, repository: Path
) -> None:
    places = {str(place).encode() for place in (repository, clean_copy, Path.home()) if len(place.parts) > 1}
    assert [(name, place) for name, data in wheel.items() for place in places if place + b"/" in data] == []


@pytest.mark.slow
def test_wheel_has_the_console_script_and_the_licence(wheel: dict[str, bytes]) -> None:
    assert "gfm = gfm.cli:main" in wheel[f"{INFO}/entry_points.txt"].decode("utf-8").splitlines()
    assert b"Apache License" in wheel[f"{INFO}/licenses/LICENSE"]
    assert b"Requires-Python: <3.14,>=3.11" in wheel[f"{INFO}/METADATA"]


def in_fresh_python(code: str, **environment: str) -> object:
    """Run ``code`` in a new interpreter and return the JSON that it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | environment,
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return json.loads(done.stdout)


def test_import_loads_no_heavy_library() -> None:
    code = "import gfm, json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = in_fresh_python(code)
    assert isinstance(loaded, list)
    assert "gfm" in loaded
    heavy = {"torch", "torch_geometric", "faiss", "numpy", "transformers", "spacy", "lightning", "pyarrow", "hydra"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_import_lets_idle_threads_sleep_unless_told_otherwise(before: str | None, after: str) -> None:
    environment = {} if before is None else {"OMP_WAIT_POLICY": before}
    code = "import gfm, json, os; print(json.dumps(os.environ['OMP_WAIT_POLICY']))"
    assert in_fresh_python(code, **environment) == after


def test_root_exports_at_most_ten_names() -> None:
    import gfm

    assert len(gfm.__all__) == len(set(gfm.__all__)) <= 10
    assert "__version__" in gfm.__all__


def test_every_exported_name_loads() -> None:
    import gfm

    assert {name: getattr(gfm, name, None) is not None for name in gfm.__all__} == dict.fromkeys(gfm.__all__, True)


def test_an_unknown_name_is_an_attribute_error_that_lists_the_known_ones() -> None:
    import gfm

    with pytest.raises(AttributeError, match=r"no attribute 'Retriver'; it exports .*GraphIndex"):
        _ = gfm.Retriver
