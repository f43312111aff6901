"""The append-only cache: extractions by text and extractor, vectors by text and encoder. Only new text costs work."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gfm.extract.extraction import CostlyExtractor, Extraction, Extractor
from gfm.progress import track
from gfm.text.encoder import Encoder, check_norms
from gfm.types import GfmError, Passage

_BATCH = 2048  # texts between two writes: what a crash can cost
_BUSY_SECONDS = 60.0  # how long a write waits for that of another process


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _stored(extraction: Extraction) -> bytes:
    return extraction.to_json().encode("utf-8", "surrogatepass")


def _made(extractor: Extractor, new: Sequence[Passage]) -> Iterator[tuple[int, Sequence[Extraction]]]:
    """Extractions of some passages in a row and the number of the first, in the portions in which they are stored."""
    if isinstance(extractor, CostlyExtractor):
        yield from ((i, [made]) for i, made in extractor.extract_each(new, progress="facts"))
        return
    for i in range(0, len(new), _BATCH):
        yield i, extractor.extract(new[i : i + _BATCH], progress=f"facts {i}/{len(new)}")


class Cache:
    """A SQLite file with two tables; safe to delete (everything in it can be made again).

    Args:
        path: The file; made where there is none, in a folder that exists.

    Attributes:
        extracted: Texts that an extractor had to read since the cache was opened.
        encoded: Texts that an encoder had to.

    Raises:
        GfmError: The file is not such a cache or cannot be used; so do all methods.
    """

    def __init__(self, path: Path):
        self._path = path
        self.extracted = self.encoded = 0
        with self._errors():
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS)
        try:
            with self._errors():
                self._open()
        except GfmError:
            self._db.close()
            raise

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        for table in ("extraction", "vector"):
            self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {table} "
                "(maker TEXT, text BLOB, value BLOB, PRIMARY KEY (maker, text)) WITHOUT ROWID"
            )
            self._db.execute(f"SELECT maker, text, value FROM {table} LIMIT 1")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns what SQLite raises into what a person can do about it."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise GfmError(
                f"{self._path}: expected the index's cache (SQLite), open for writing, found: {error}; see that its "
                "folder exists, is writable and has space, and that no other build is running on it"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, found: str) -> GfmError:
        return GfmError(
            f"{self._path}: expected the index's cache (SQLite), found: {found}; delete that file and build again "
            "(everything in it can be made again)"
        )

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _known(self, table: str, maker: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for i in range(0, len(keys), 500):
            part = keys[i : i + 500]
            query = f"SELECT text, value FROM {table} WHERE maker=? AND text IN ({','.join('?' * len(part))})"
            with self._errors():
                found.update(self._db.execute(query, [maker, *part]).fetchall())
        return found

    def _store(self, table: str, maker: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        with self._errors(), self._db:
            self._db.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", [(maker, key, value) for key, value in rows]
            )

    def extractions(self, passages: Sequence[Passage], extractor: Extractor) -> list[Extraction]:
        """One extraction a passage; the extractor sees only texts that the cache lacks.

        An extractor that says more than the text and its settings tell (``cached`` is false) sees every passage.
        """
        if not extractor.cached:
            return extractor.extract(passages)
        keys = [_hash(p.text) for p in passages]
        known, new_keys, new = self._split(keys, passages, extractor)
        failed: dict[bytes, Extraction] = {}
        for i, made in _made(extractor, new):
            rows = [(k, _stored(x)) for k, x in zip(new_keys[i:], made, strict=False) if not x.failure]
            failed.update((k, x) for k, x in zip(new_keys[i:], made, strict=False) if x.failure)
            self._store("extraction", extractor.settings, rows)
            self.extracted += len(made)
            known.update(rows)
        try:
            return [
                failed[k] if k in failed else Extraction.from_json(known[k].decode("utf-8", "surrogatepass"))
                for k in track(keys, len(keys), "facts")
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"an extraction that does not read ({error})") from error

    def unread(self, passages: Sequence[Passage], extractor: Extractor) -> list[Passage]:
        """The passages whose texts ``extractor`` would have to read, one of each text."""
        return self._split([_hash(p.text) for p in passages], passages, extractor)[2]

    def _split(
        self, keys: Sequence[bytes], passages: Sequence[Passage], extractor: Extractor
    ) -> tuple[dict[bytes, bytes], list[bytes], list[Passage]]:
        """What is known by key, and the keys and passages of everything else, one of each text."""
        known = self._known("extraction", extractor.settings, list(dict.fromkeys(keys)))
        fresh: dict[bytes, Passage] = {}
        for key, passage in zip(keys, passages, strict=True):
            if key not in known:
                fresh.setdefault(key, passage)
        return known, list(fresh), list(fresh.values())

    def vectors(self, texts: Sequence[str], encoder: Encoder, title: str) -> np.ndarray:
        """Unit vectors of ``texts``, float32 (len(texts), dim); the encoder sees only texts that the cache lacks.

        New texts go to the encoder sorted by length and then alphabet, in batches that do not depend on which texts
        were known before more than rounding can tell.

        Args:
            texts: What to encode; the same text is encoded once.
            encoder: Vectors of another encoder are never given back for it.
            title: Of the progress bar; empty for none.

        Raises:
            GfmError: A vector is zero or not finite; the message names its text. Nothing of its batch is stored.
        """
        maker, dim = encoder.fingerprint.cache_key(), encoder.fingerprint.dim
        keys = [_hash(t) for t in texts]
        known = self._known("vector", maker, list(dict.fromkeys(keys)))
        fresh = {k: t for k, t in zip(keys, texts, strict=True) if k not in known}
        order = sorted(fresh, key=lambda k: (len(fresh[k]), fresh[k]))
        for i in range(0, len(order), _BATCH):
            part = order[i : i + _BATCH]
            new = [fresh[k] for k in part]
            made = encoder.encode(new, progress=title and f"{title} {i}/{len(order)}")  # (len(part), dim)
            check_norms(np.linalg.norm(made, axis=1), new)
            rows = [(k, v.astype("<f4").tobytes()) for k, v in zip(part, made, strict=True)]
            self._store("vector", maker, rows)
            self.encoded += len(rows)
            known.update(rows)
        out = np.empty((len(texts), dim), dtype=np.float32)
        for row, key in zip(out, keys, strict=True):
            if len(known[key]) != 4 * dim:
                raise self._damaged(f"a vector of {len(known[key])} bytes where {4 * dim} are due")
            row[:] = np.frombuffer(known[key], dtype="<f4")
        return out
