"""Files of an index: immutable generations, checksums, and one name, CURRENT, that says which generation is in force.

A generation is written beside the old one, synced, and named in CURRENT by an atomic rename; a reader opens one
generation and never sees half of another. Tables are Parquet, arrays safetensors, everything else JSON; nothing on disk
is executable.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gfm.index.spliced import Spliced
from gfm.types import GfmError

FORMAT_VERSION = 1
CURRENT = "CURRENT"
MANIFEST = "manifest.json"
STAGING = "staging"
GENERATION = re.compile(r"generation-[0-9a-f]{16}")
# In the order in which arrays stand in a file: wide ones first, so that each is aligned.
_DTYPES = {"I64": "<i8", "F32": "<f4", "I32": "<i4", "F16": "<f2", "I8": "|i1"}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
# What a header that describes no arrays can raise; RecursionError is JSON nested without end.
_BAD_HEADER = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, OSError)

T = TypeVar("T")


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray | Spliced]) -> None:
    """Write arrays as safetensors, byte for byte as the library does, without its copy of each.

    A full disk is an OSError, where the library raises one of its own.

    Source: the format's own description, https://github.com/huggingface/safetensors#format.
    """
    dtypes = list(_NAMES)
    order = sorted(arrays, key=lambda name: (dtypes.index(arrays[name].dtype.str), name))
    ends = np.cumsum([arrays[name].nbytes for name in order]).tolist()
    header = {
        name: {"dtype": _NAMES[array.dtype.str], "shape": array.shape, "data_offsets": [end - array.nbytes, end]}
        for name, array, end in zip(order, map(arrays.__getitem__, order), ends, strict=True)
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays begin at a multiple of 8
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for array in map(arrays.__getitem__, order):
            for block in array.blocks() if isinstance(array, Spliced) else [array]:
                stream.write(np.ascontiguousarray(block).data)


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Memory-map every array of a safetensors file, read-only.

    Raises:
        GfmError: The header does not describe the file.
    """
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if not 0 < size <= path.stat().st_size - 8:
                raise ValueError("the header is longer than the file")
            header = json.loads(stream.read(size))
            # A plain view of the mapping: each indexing of a np.memmap itself would run Python code of its class.
            data = np.asarray(np.memmap(stream, np.uint8, "r"))[8 + size :]
        return {name: _view(name, row, data) for name, row in header.items() if name != "__metadata__"}
    except _BAD_HEADER as error:
        reason = str(error) or type(error).__name__
        raise GfmError(
            f"{path}: expected arrays in safetensors form, found: {reason}; build the index again"
        ) from error


def _view(name: str, row: dict[str, Any], data: np.ndarray) -> np.ndarray:
    """One array of a safetensors file whose bytes after the header are ``data``."""
    start, end = row["data_offsets"]
    dtype, shape = np.dtype(_DTYPES[row["dtype"]]), tuple(row["shape"])
    if not all(type(n) is int and n >= 0 for n in (start, end, *shape)):
        raise ValueError(f"{name} has the shape {shape} at bytes {start} to {end}")
    # math.prod does not wrap round, as a product of NumPy's integers would.
    if end - start != math.prod(shape) * dtype.itemsize or end > len(data):
        raise ValueError(f"{name} has the shape {shape} at bytes {start} to {end} of {len(data)}")
    return data[start:end].view(dtype).reshape(shape)


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as Parquet, uncompressed so that it maps, and without a writer's timestamp."""
    with path.open("wb") as stream:  # a path goes through UTF-8 in Arrow, which not every system's file names do
        pq.write_table(pa.table(dict(columns)), stream, compression="none", use_dictionary=False)


def open_table(path: Path) -> pq.ParquetFile:
    """Map a Parquet table; it reads as long as it is held, also after its file was deleted.

    Raises:
        GfmError: The file holds no such table.
    """
    try:
        return pq.ParquetFile(pa.py_buffer(np.memmap(path, np.uint8, "r")))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise GfmError(f"{path}: expected a Parquet table, found: {error}; build the index again") from error


def read_table(path: Path) -> pa.Table:
    """Read a Parquet table.

    Raises:
        GfmError: The file holds no such table.
    """
    table = open_table(path)
    try:
        return table.read(use_threads=False)  # threads of Arrow may outlive a short command and abort it
    except (pa.ArrowException, OSError) as error:
        raise GfmError(f"{path}: expected a Parquet table, found: {error}; build the index again") from error


def _sync(path: Path) -> None:
    if os.name == "nt":  # Windows syncs only files open for writing, and no folders
        if path.is_dir():
            return
        handle = os.open(path, os.O_RDWR)
    else:
        handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def commit(root: Path, staging: Path, manifest: dict[str, Any]) -> Path:
    """Seal what was written to ``staging`` as the generation in force.

    Whenever the process is killed, CURRENT names a whole generation: the old one or the new one.

    Args:
        root: Folder of the index.
        staging: Folder inside ``root`` that holds the generation's files.
        manifest: Written with the files' checksums added; its own hash names the generation.

    Returns:
        The generation's folder.
    """
    files = sorted(p.name for p in staging.iterdir())
    manifest = {
        "format_version": FORMAT_VERSION,
        **manifest,
        "files": {n: {"sha256": file_hash(staging / n), "bytes": (staging / n).stat().st_size} for n in files},
    }
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (staging / MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    for name in [*files, MANIFEST]:
        _sync(staging / name)
    _sync(staging)
    generation = root / _generation_name(text.encode())
    _install(staging, generation)
    _sync(root)
    pointer = root / f"{CURRENT}.new"
    pointer.write_text(generation.name + "\n", encoding="utf-8", newline="\n")
    _sync(pointer)
    pointer.replace(root / CURRENT)
    _sync(root)
    for old in root.glob("generation-*"):
        if old != generation and GENERATION.fullmatch(old.name):
            # What a reader holds open on Windows cannot go yet; the next commit tries again.
            shutil.rmtree(old, ignore_errors=True)
    return generation


def _install(staging: Path, generation: Path) -> None:
    """Give the staged folder its name; where the same generation stands whole already, that one is kept.

    It may be the one in force: deleting it first would leave no index behind if the process died just then.
    """
    if generation.exists():
        try:
            _verify(generation, "")
        except GfmError:
            shutil.rmtree(generation)
        else:
            shutil.rmtree(staging)
            return
    staging.rename(generation)


def _generation_name(manifest: bytes) -> str:
    return f"generation-{hashlib.sha256(manifest).hexdigest()[:16]}"


def current(root: Path) -> str:
    """What the one line of CURRENT says; the whole file where it is not one line, empty where there is none."""
    try:
        text = (root / CURRENT).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    line = text.removesuffix("\n")
    return line if text == f"{line}\n" else f"{text} without an end"


def steady(root: Path, read: Callable[[], T]) -> T:
    """What ``read`` gives; it is called again where it failed because a writer replaced the generation under it.

    Raises:
        GfmError: What ``read`` raised while CURRENT stayed the same; so does OSError.
    """
    while True:
        before = _stamp(root)
        try:
            return read()
        except (GfmError, OSError):
            if _stamp(root) == before:
                raise


def _stamp(root: Path) -> tuple[int, int] | None:
    """What every commit changes, also one that puts an earlier generation in force again."""
    try:
        found = (root / CURRENT).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def open_generation(root: Path) -> tuple[Path, dict[str, Any]]:
    """The generation in force and its manifest, every checksum verified before anything is parsed.

    Raises:
        GfmError: There is no index, or a file is missing, cut off or altered.
    """
    return steady(root, lambda: _open(root))


def _open(root: Path) -> tuple[Path, dict[str, Any]]:
    where = root.absolute()
    if not root.is_dir():
        raise GfmError(f"{where}: expected the folder of an index, found none; make one: gfm index PATH --out {root}")
    if not (root / CURRENT).is_file():
        raise GfmError(
            f"{where}: expected an index, found no file {CURRENT} in this folder; make one: gfm index PATH --out {root}"
        )
    rebuild = f"build the index again: gfm index PATH --out {root}"
    name = current(root)
    folder = root / name
    if not GENERATION.fullmatch(name):  # a name like ../x never becomes a path
        raise GfmError(f"{where / CURRENT}: it names {name[:80]!r}, which is no generation of this index; {rebuild}")
    if not (folder / MANIFEST).is_file():
        raise GfmError(
            f"{(folder / MANIFEST).absolute()}: {CURRENT} names this generation, found no manifest; {rebuild}"
        )
    return folder, _verify(folder, rebuild)


def _verify(folder: Path, rebuild: str) -> dict[str, Any]:
    """The manifest of a generation, once it and every file that it lists have their checksums.

    Args:
        folder: The generation.
        rebuild: What mends it, for messages.

    Raises:
        GfmError: A file is missing, cut off or altered, or the format is another.
    """
    path = folder / MANIFEST
    text = path.read_bytes() if path.is_file() else b""
    if folder.name != _generation_name(text):
        raise GfmError(f"{path}: its checksum is not the one that the folder is named by: it was altered; {rebuild}")
    try:
        manifest: dict[str, Any] = json.loads(text)
        version, files = (
            manifest["format_version"],
            {n: (r["bytes"], r["sha256"]) for n, r in manifest["files"].items()},
        )
    except _BAD_HEADER as error:
        raise GfmError(f"{path}: expected the manifest of an index, found: {error!r}; {rebuild}") from error
    if version != FORMAT_VERSION:
        raise GfmError(f"{path}: expected format {FORMAT_VERSION}, found {version!r}; {rebuild}")
    for name, (size, digest) in files.items():
        _check_file(folder / Path(name).name, size, digest, rebuild)
    return manifest


def _check_file(path: Path, size: int, digest: str, rebuild: str) -> None:
    found = path.stat().st_size if path.is_file() else None
    if found is None:
        raise GfmError(f"{path.absolute()}: expected this file of the index, found none; {rebuild}")
    if found != size:
        raise GfmError(f"{path}: expected {size} bytes, found {found}: cut off or altered; {rebuild}")
    if file_hash(path) != digest:
        raise GfmError(f"{path}: its checksum is not the manifest's: the file was altered; {rebuild}")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns a full disk or a missing permission into what a person can do about it."""
    try:
        yield
    except OSError as error:
        raise GfmError(
            f"{path}: expected a folder that can be written, found: {error}; see that it is writable and has space, "
            "then try again (an index that was there before still stands)"
        ) from error
