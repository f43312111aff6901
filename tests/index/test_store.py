from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from gfm.index import store
from gfm.types import GfmError

ARRAYS = {
    "rows": np.arange(12, dtype=np.float32).reshape(3, 4),
    "none": np.zeros((0, 4), dtype=np.float32),
    "half": np.array([0.5], dtype=np.float16),
    "long": np.array([[1, 2], [3, 4]], dtype=np.int64),
    "int": np.array([7, -7], dtype=np.int32),
    "byte": np.array([1, -1, 2], dtype=np.int8),
}
FILES = ["a.safetensors", "b.parquet", "manifest.json"]


def write(root: Path, word: str = "one") -> Path:
    """A generation of two files."""
    staging = root / store.STAGING
    staging.mkdir(parents=True)
    store.write_arrays(staging / "a.safetensors", ARRAYS)
    store.write_table(staging / "b.parquet", {"word": [word, "名前"], "n": [1, 2]})
    return store.commit(root, staging, {"word": word})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "index")
    return tmp_path / "index"


def parsing_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("parsed before its checksum was verified")

    for name in ("map_arrays", "open_table", "read_table"):
        monkeypatch.setattr(store, name, parse)
    monkeypatch.setattr(store.json, "loads", parse)


def test_written_and_read(root: Path) -> None:
    folder, manifest = store.open_generation(root)
    assert (root / "CURRENT").read_text(encoding="utf-8") == folder.name + "\n"
    assert manifest["word"] == "one"
    assert sorted(manifest["files"]) == FILES[:2]
    found = store.map_arrays(folder / "a.safetensors")
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()
        assert found[name].shape == array.shape
        assert type(found[name]) is np.ndarray  # np.memmap would run Python code at each indexing
        assert not found[name].flags.writeable
    table = store.read_table(folder / "b.parquet")
    assert table.to_pydict() == {"word": ["one", "名前"], "n": [1, 2]}


def test_the_library_reads_our_arrays(root: Path) -> None:
    """Each begins at a multiple of its own size."""
    path = store.open_generation(root)[0] / "a.safetensors"
    found = load_file(path)
    assert {name: (a.dtype, a.tolist()) for name, a in found.items()} == {
        name: (a.dtype, a.tolist()) for name, a in ARRAYS.items()
    }
    assert path.read_bytes() == save(ARRAYS)
    for array in store.map_arrays(path).values():
        assert array.flags.aligned
    store.write_arrays(root / "turned", {"a": np.arange(6).reshape(2, 3).T})
    assert store.map_arrays(root / "turned")["a"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_empty_columns(tmp_path: Path) -> None:
    store.write_table(tmp_path / "t.parquet", {"text": []})
    assert store.read_table(tmp_path / "t.parquet")["text"].to_pylist() == []


def test_all_files_may_be_read_by_the_same_people(root: Path) -> None:
    folder, _ = store.open_generation(root)
    assert len({p.stat().st_mode for p in folder.iterdir()}) == 1


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [lambda n: 0, lambda n: 8, lambda n: n // 2, lambda n: n - 1])
def test_cut_off(root: Path, monkeypatch: pytest.MonkeyPatch, name: str, keep: Callable[[int], int]) -> None:
    """D09."""
    path = store.open_generation(root)[0] / name
    data = path.read_bytes()
    path.write_bytes(data[: keep(len(data))])
    if name == "manifest.json":
        parsing_forbidden(monkeypatch)
    with pytest.raises(GfmError, match=rf"{name}: .*altered; build the index again: gfm index PATH --out"):
        store.open_generation(root)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_one_byte_flipped(root: Path, name: str, share: float) -> None:
    """D09: the size stays, so only the checksum can tell."""
    path = store.open_generation(root)[0] / name
    data = bytearray(path.read_bytes())
    data[int(share * (len(data) - 1))] ^= 1
    path.write_bytes(data)
    with pytest.raises(GfmError, match=rf"{name}: its checksum is not"):
        store.open_generation(root)


@pytest.mark.parametrize("name", FILES[:2])
def test_a_file_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """D10: the message says where it looked, in full, also where the path to the index was relative."""
    folder, _ = store.open_generation(root)
    (folder / name).unlink()
    monkeypatch.chdir(root.parent)
    with pytest.raises(GfmError) as error:
        store.open_generation(Path("index"))
    assert str(error.value).startswith(f"{folder / name}: expected this file of the index, found none")
    assert str(error.value).endswith("gfm index PATH --out index")


def test_the_manifest_is_missing(root: Path) -> None:
    folder, _ = store.open_generation(root)
    (folder / "manifest.json").unlink()
    with pytest.raises(GfmError, match=rf"{folder.name}/manifest\.json: CURRENT names this generation, found no"):
        store.open_generation(root)


def test_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GfmError) as error:
        store.open_generation(Path("nowhere"))
    assert str(error.value) == (
        f"{tmp_path / 'nowhere'}: expected the folder of an index, found none; make one: gfm index PATH --out nowhere"
    )
    with pytest.raises(GfmError, match=r"found no file CURRENT in this folder; make one: gfm index PATH --out \."):
        store.open_generation(Path())


@pytest.mark.parametrize(
    "name", ["../x", "..", ".", "", "/etc", "generation-zz", "generation-0123456789abcdef/../x", "é"]
)
def test_current_names_something_else(root: Path, name: str) -> None:
    """F05: also where the folder that it names would pass."""
    shutil.copytree(store.open_generation(root)[0], root.parent / "x")
    (root / "CURRENT").write_text(f"{name}\n", encoding="utf-8")
    with pytest.raises(GfmError, match=r"CURRENT: it names .* no generation of this index"):
        store.open_generation(root)


def test_current_is_not_text(root: Path) -> None:
    (root / "CURRENT").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GfmError, match="no generation of this index"):
        store.open_generation(root)


def sealed(root: Path, manifest: bytes) -> None:
    """A generation of nothing but a manifest, under the name that fits it."""
    folder = root / f"generation-{hashlib.sha256(manifest).hexdigest()[:16]}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(manifest)
    (root / "CURRENT").write_text(f"{folder.name}\n", encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"format_version": 1, "files": [1]}', '{"format_version": 1', "[" * 9999]
)
def test_a_manifest_that_is_none(tmp_path: Path, text: str) -> None:
    sealed(tmp_path, text.encode())
    with pytest.raises(GfmError, match=r"manifest\.json: expected the manifest of an index"):
        store.open_generation(tmp_path)


def test_another_format(tmp_path: Path) -> None:
    sealed(tmp_path, b'{"format_version": 2, "files": {}}')
    with pytest.raises(GfmError, match=r"expected format 1, found 2; build the index again"):
        store.open_generation(tmp_path)


def test_a_manifest_looks_at_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    row = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    sealed(tmp_path / "index", json.dumps({"format_version": 1, "files": {"../../secret": row}}).encode())
    with pytest.raises(GfmError, match="secret: expected this file of the index, found none"):
        store.open_generation(tmp_path / "index")


def safetensors(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def row(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        (10**12).to_bytes(8, "little") + b"{}",
        safetensors(row(shape=[10**12, 384], offsets=[0, 10**12 * 384 * 4]), b"1234"),
        safetensors(row(shape=[2**32, 2**32], offsets=[0, 0])),  # the product is 0 in 64 bits
        safetensors(row(shape=[-1, -1]), b"1234"),
        safetensors(row(shape=[1.0]), b"1234"),
        safetensors(row(shape=[2]), b"1234"),
        safetensors(row(offsets=[4, 8]), b"1234"),
        safetensors(row(offsets=[-4, 0]), b"1234"),
        safetensors(row(offsets=[0]), b"1234"),
        safetensors(row(dtype="O"), b"1234"),
        safetensors({"a": {}}),
        safetensors([1, 2]),
        safetensors(b"\xff\xfe"),
        safetensors(b"[" * 100_000),
    ],
)
def test_headers_that_lie(tmp_path: Path, content: bytes) -> None:
    """D09: nothing is allocated on the word of a header."""
    path = tmp_path / "vectors.safetensors"
    path.write_bytes(content)
    with pytest.raises(GfmError, match=r"vectors\.safetensors: expected arrays in safetensors form, found: .+; build"):
        store.map_arrays(path)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("honest", [False, True])
def test_a_pickle_is_refused_and_never_run(root: Path, tmp_path: Path, name: str, honest: bool) -> None:
    """D11: also where somebody gave the pickle its proper checksum."""
    marker = tmp_path / "boom"
    bomb = pickle.dumps(Bomb(marker))
    folder, manifest = store.open_generation(root)
    if honest and name == "manifest.json":
        sealed(tmp_path / "other", bomb)
        root = tmp_path / "other"
    else:
        (folder / name).write_bytes(bomb)
    if honest and name != "manifest.json":
        staging = tmp_path / "other" / store.STAGING
        shutil.copytree(folder, staging)
        (staging / "manifest.json").unlink()
        root = tmp_path / "other"
        folder = store.commit(root, staging, {"word": manifest["word"]})
        assert store.open_generation(root)[0] == folder
        read = store.map_arrays if name.endswith("safetensors") else store.read_table
        with pytest.raises(GfmError, match=f"{name}: expected"):
            read(folder / name)
    else:
        with pytest.raises(GfmError, match=r"manifest\.json|" + name):
            store.open_generation(root)
    assert not marker.exists()
    pickle.loads(bomb)
    assert marker.exists()  # the bomb was live


def test_a_new_generation_replaces_the_old(root: Path) -> None:
    old, _ = store.open_generation(root)
    new = write(root, "two")
    assert old != new
    assert store.open_generation(root)[0] == new
    assert sorted(p.name for p in root.iterdir()) == ["CURRENT", new.name]


def test_only_generations_are_cleared_away(root: Path) -> None:
    (root / "generation-notes").mkdir()
    write(root, "two")
    assert (root / "generation-notes").is_dir()


def test_the_same_content_is_the_same_generation(root: Path) -> None:
    old, _ = store.open_generation(root)
    data = {p.name: p.read_bytes() for p in old.iterdir()}
    inode = (old / "a.safetensors").stat().st_ino
    assert write(root) == old
    assert {p.name: p.read_bytes() for p in old.iterdir()} == data
    assert (old / "a.safetensors").stat().st_ino == inode  # the files in force were never away
    assert not (root / store.STAGING).exists()


def test_a_damaged_generation_is_mended_by_the_same_content(root: Path) -> None:
    old, _ = store.open_generation(root)
    (old / "a.safetensors").write_bytes(b"junk")
    assert write(root) == old
    assert store.open_generation(root)[0] == old


STEPS = ["_sync", "_install", "replace", "rmtree"]


@pytest.mark.parametrize("word", ["one", "two"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("call", range(4))
def test_killed_at_any_moment(root: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int, word: str) -> None:
    """D08: whatever is interrupted, before or after, the index opens as the old or the new one, and builds again."""
    owner = {"replace": Path, "rmtree": shutil}.get(step, store)
    real, calls = getattr(owner, step), []

    def killed(*args: Any, **kwargs: Any) -> Any:
        calls.append(step)
        if len(calls) == call // 2 + 1:
            if call % 2:  # killed just after
                real(*args, **kwargs)
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        try:
            write(root, word)
        except KeyboardInterrupt:
            assert calls
    assert store.open_generation(root)[1]["word"] in {"one", word}
    shutil.rmtree(root / store.STAGING, ignore_errors=True)
    write(root, "three")
    assert store.open_generation(root)[1]["word"] == "three"


def test_a_reader_between_current_and_the_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer replaces the generation just after a reader learnt its name: the reader takes the new one."""
    real, raced = store._verify, []

    def verify(folder: Path, rebuild: str) -> dict[str, Any]:
        if not raced:
            raced.append(folder)
            write(root, "two")
            assert not folder.exists()
        return real(folder, rebuild)

    monkeypatch.setattr(store, "_verify", verify)
    assert store.open_generation(root)[1]["word"] == "two"
    assert raced


def test_a_reader_tries_as_often_as_a_writer_is_faster(root: Path) -> None:
    """Also where the writer puts the generation that the reader looked for in force again."""
    raced: list[int] = []

    def read() -> str:
        if len(raced) < 4:
            raced.append(1)
            write(root, "two" if len(raced) % 2 else "one")
            raise GfmError("gone")
        return store.current(root)

    assert store.steady(root, read) == store.current(root)
    assert len(raced) == 4


def test_damage_is_no_race(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def read() -> None:
        calls.append(1)
        raise GfmError("damaged")

    with pytest.raises(GfmError, match="damaged"):
        store.steady(root, read)
    assert len(calls) == 1


def test_a_table_reads_after_its_file_is_gone(root: Path) -> None:
    path = store.open_generation(root)[0] / "b.parquet"
    table = store.open_table(path)
    path.unlink()
    assert table.read()["word"].to_pylist() == ["one", "名前"]
