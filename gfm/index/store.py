"""Files of an index: immutable generations, checksums, and one name, CURRENT, that says which generation is in force.

A generation is written beside the old one, synced, and named in CURRENT by an atomic rename; a reader opens one generation
and never sees half of another. Tables are Parquet, arrays safetensors, everything else JSON; nothing on disk is executable.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from gfm.types import GfmError

FORMAT_VERSION = 1
CURRENT = "CURRENT"
MANIFEST = "manifest.json"
_DTYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1"}


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors."""
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path)


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Memory-map every array of a safetensors file, read-only.

    Raises:
        GfmError: The header does not describe the file.
    """
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if not 0 < size < path.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(stream.read(size))
        out = {}
        for name, row in header.items():
            if name == "__metadata__":
                continue
            start, end = row["data_offsets"]
            dtype, shape = np.dtype(_DTYPES[row["dtype"]]), tuple(row["shape"])
            if end - start != int(np.prod(shape)) * dtype.itemsize:
                raise ValueError(f"{name} has {end - start} bytes, its shape {shape} needs another number")
            empty = end == start
            out[name] = np.zeros(shape, dtype) if empty else np.memmap(path, dtype, "r", 8 + size + start, shape)
        return out
    except (ValueError, KeyError, OSError) as error:
        raise GfmError(f"{path}: expected arrays in safetensors form, found: {error}; build the index again") from error


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as Parquet, uncompressed so that it maps, and without a writer's timestamp."""
    pq.write_table(pa.table(dict(columns)), path, compression="none", use_dictionary=False)


def read_table(path: Path) -> pa.Table:
    """Read a Parquet table."""
    try:
        return pq.read_table(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise GfmError(f"{path}: expected a Parquet table, found: {error}; build the index again") from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def commit(root: Path, staging: Path, manifest: dict[str, Any]) -> Path:
    """Seal what was written to ``staging`` as the generation in force.

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
    generation = root / f"generation-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if generation.exists():  # the same content under the same name: take the fresh copy, the old may be damaged
        shutil.rmtree(generation)
    staging.rename(generation)
    pointer = root / f"{CURRENT}.new"
    pointer.write_text(generation.name + "\n", encoding="utf-8")
    _sync(pointer)
    pointer.replace(root / CURRENT)
    _sync(root)
    for old in root.glob("generation-*"):
        if old != generation:
            shutil.rmtree(old)
    return generation


def open_generation(root: Path) -> tuple[Path, dict[str, Any]]:
    """The generation in force and its manifest, every checksum verified before anything is parsed.

    Raises:
        GfmError: There is no index, or a file is missing, cut off or altered.
    """
    pointer = root / CURRENT
    if not pointer.is_file():
        raise GfmError(f"{root}: expected an index here, found no file {CURRENT}; make one: gfm index PATH --out {root}")
    folder = root / pointer.read_text(encoding="utf-8").strip()
    rebuild = f"build it again: gfm index PATH --out {root}"
    if folder.parent != root or not (folder / MANIFEST).is_file():
        raise GfmError(f"{pointer}: it names {folder.name!r}, which is no generation of this index; {rebuild}")
    text = (folder / MANIFEST).read_bytes()
    if folder.name != f"generation-{hashlib.sha256(text).hexdigest()[:16]}":
        raise GfmError(f"{folder / MANIFEST}: expected the manifest that the folder is named by, found altered; {rebuild}")
    manifest: dict[str, Any] = json.loads(text)
    if manifest["format_version"] != FORMAT_VERSION:
        raise GfmError(f"{root}: expected format {FORMAT_VERSION}, found {manifest['format_version']}; {rebuild}")
    for name, row in manifest["files"].items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found is None:
            raise GfmError(f"{path}: expected this file of the index, found none; {rebuild}")
        if found != row["bytes"]:
            raise GfmError(f"{path}: expected {row['bytes']} bytes, found {found}: cut off or altered; {rebuild}")
        if file_hash(path) != row["sha256"]:
            raise GfmError(f"{path}: its checksum is not the manifest's: the file was altered; {rebuild}")
    return folder, manifest
