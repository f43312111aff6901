"""Documents from a folder of files or from one file, and what became of every file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gfm.index.account import Account, FileRecord, State
from gfm.index.files import entries, name_of
from gfm.progress import track
from gfm.text.content import KINDS, Content, NoTextError, read_content
from gfm.text.encoding import check_encoding, declared, decode, read_bytes
from gfm.text.reading import Row, one_line, printable, read_rows, read_table
from gfm.types import Document, GfmError

CORPUS_FILE = "corpus.jsonl"
SOURCES = "sources"
_KINDS = KINDS | {".jsonl", ".csv"}
_LISTED = ", ".join(sorted(_KINDS))


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was read.

    Attributes:
        documents: In the order of the files' names, and of their lines.
        account: What became of every file.
    """

    documents: list[Document]
    account: Account


class NothingToIndexError(GfmError):
    """No file gave a document.

    Attributes:
        account: Why.
    """

    def __init__(self, message: str, account: Account):
        super().__init__(message)
        self.account = account


def read_documents(path: str | Path, encoding: str | None = None) -> Corpus:
    """Read the documents at ``path``.

    A text, Markdown, HTML or PDF file is one document, whose id is its path relative to the folder. Of a JSONL or CSV
    file each row is one, with ``text`` and, if it likes, ``_id`` (or ``id``), ``title`` and free fields; a row without
    an id is named by a hash of its title and text. Files of one text, and rows without an id of one title and text, are
    one document; a file's is named by the name that sorts first, so the order of the files plays no part.

    Args:
        path: A file, or a folder, searched through all levels; a folder's own ``corpus.jsonl`` is read alone.
        encoding: Of all text files; found for each by itself unless given.

    Raises:
        GfmError: The path does not exist, the encoding is unknown, or the one file that was named cannot be read (by
            file and line); within a folder the account tells of such files.
        NothingToIndexError: No file of a folder gave a document.
    """
    path = Path(path)
    if encoding is not None:
        check_encoding(encoding)
    if not path.is_dir():
        return _from_file(path, encoding)
    if not (path / CORPUS_FILE).is_file():
        return _from_folder(path, encoding)
    corpus = _from_file(path / CORPUS_FILE, encoding)
    reason = f"beside a {CORPUS_FILE}, which is read alone"
    others = (FileRecord(e.name, "skipped", reason) for e in entries(path, _KINDS) if e.name != CORPUS_FILE)
    return Corpus(corpus.documents, Account((*corpus.account.files, *others)))


def sources(document: Document) -> list[str]:
    """Names of the files that hold a document; its id where it was not read from a file of a folder."""
    names = document.metadata.get(SOURCES)
    return list(names) if isinstance(names, list) and all(isinstance(n, str) for n in names) else [document.id]


def _from_file(path: Path, encoding: str | None) -> Corpus:
    if not path.is_file():
        raise GfmError(f"{path}: does not exist; expected a folder or a file ({_LISTED})")
    collected = _Collected(encoding, in_folder=False)
    try:
        record = collected.take(name_of(Path(path.name)) or path.name, path)
    except GfmError as error:
        if str(error).startswith(f"{path}:"):
            raise
        raise GfmError(f"{path}: {error}") from error
    return Corpus(list(collected.documents.values()), Account((record,)))


def _from_folder(folder: Path, encoding: str | None) -> Corpus:
    collected = _Collected(encoding, in_folder=True)
    found = entries(folder, _KINDS)
    records = []
    for entry in track(found, len(found), "read"):
        try:
            records.append(entry.record or collected.take(entry.name, entry.path))
        except GfmError as error:  # one bad file among good ones is told of, not fatal
            state: State = "skipped" if isinstance(error, NoTextError) else "failed"
            records.append(FileRecord(entry.name, state, _reason(error, entry.path)))
    account = Account(tuple(records))
    if not collected.documents:
        reasons = [f"{file.name}: {file.reason}" for file in records]
        more = f"; and {len(reasons) - 3:,} more" if len(reasons) > 3 else ""
        raise NothingToIndexError(
            f"{folder}: expected a file with text in it ({_LISTED}); found {'; '.join(reasons[:3]) or 'none'}{more}",
            account,
        )
    return Corpus(list(collected.documents.values()), account)


def _reason(error: GfmError, path: Path) -> str:
    """A message without the file's path, which the account has already."""
    return re.sub(r"^:(\d+): ", r"line \1: ", str(error).removeprefix(str(path))).removeprefix(": ")


class _Collected:
    """Documents by id; files and rows of one content are one document.

    Args:
        encoding: Of all text files, where it was given.
        in_folder: Whether rows, too, note the file that they come from.
    """

    def __init__(self, encoding: str | None, in_folder: bool):
        self.documents: dict[str, Document] = {}
        self._encoding = encoding
        self._in_folder = in_folder
        self._place: dict[str, str] = {}
        self._of_text: dict[bytes, Document] = {}

    def take(self, name: str, path: Path) -> FileRecord:
        """Read one file and keep its documents, or none of them.

        Raises:
            NoTextError: It holds nothing to index.
            GfmError: It cannot be read.
        """
        kind = path.suffix.lower()
        if kind in KINDS:
            return self._keep_file(name, read_content(path, PurePosixPath(name).stem, self._encoding))
        if kind == ".csv":
            text, stated = decode(read_bytes(path), self._encoding)
            if not text.strip():
                raise NoTextError("no text")
            return self._keep_rows(name, path, read_table(path, text), stated)
        stated = self._encoding or declared(path)
        return self._keep_rows(name, path, read_rows(path, None if stated == "UTF-8" else stated), stated)

    def _keep_file(self, name: str, content: Content) -> FileRecord:
        if name in self._place:
            raise GfmError(f"its name is the id of a document in {self._place[name]}; rename one of them")
        digest = hashlib.sha256(content.text.strip().encode()).digest()
        document = self._of_text.get(digest)
        if document is not None:
            document.metadata[SOURCES].append(name)
            return FileRecord(name, "indexed", f"same text as {document.id}", content.encoding, (document.id,))
        metadata = {**content.metadata, SOURCES: [name]}
        document = Document(name, content.title, content.text, metadata, content.sections)
        self.documents[name] = self._of_text[digest] = document
        self._place[name] = "a file of that name"
        return FileRecord(name, "indexed", "", content.encoding, (name,))

    def _keep_rows(self, name: str, path: Path, rows: Iterator[Row], stated: str) -> FileRecord:
        new: dict[str, tuple[Document, int]] = {}
        repeated: dict[str, int] = {}
        for row in rows:
            document, is_named = self._document(row, name)
            known = new[document.id][0] if document.id in new else self.documents.get(document.id)
            if known is None:
                new[document.id] = document, row.line
            elif is_named or (known.title, known.text) != (document.title, document.text):
                place = f"on line {new[known.id][1]}" if known.id in new else f"in {self._place[known.id]}"
                row.fail(f"the id {known.id!r} stands {place} too; ids are unique: rename or delete one of them")
            else:
                repeated[known.id] = repeated.get(known.id, 0) + 1
        if not new and not repeated:
            example = "" if self._in_folder else ': expected at least one line such as {"text": "…"}, found none'
            raise NoTextError(f"{path}: no text{example}")
        for document, line in new.values():
            self.documents[document.id] = document
            self._place[document.id] = f"{name}, line {line},"
        for identifier in repeated.keys() - new.keys():
            self.documents[identifier].metadata[SOURCES].append(name)
        told = f"{sum(repeated.values()):,} of its rows repeat the text of others" if repeated else ""
        return FileRecord(name, "indexed", told, stated, (*new, *sorted(repeated.keys() - new.keys())))

    def _document(self, row: Row, name: str) -> tuple[Document, bool]:
        """The document of a row, and whether the row names it."""
        text = printable(row.required("text"))
        title = one_line(row.optional("title"))
        metadata = row.metadata(("_id", "id"), ("title",), ("text",))
        if self._in_folder:
            if SOURCES in metadata:
                row.fail(f"{SOURCES!r}: expected another name for this field: the names of the files stand under it")
            metadata[SOURCES] = [name]
        identifier = row.identifier("_id", "id")
        if identifier is not None:
            return Document(identifier, title, text, metadata), True
        digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
        return Document(f"doc-{digest[:12]}", title, text, metadata), False
