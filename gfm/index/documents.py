"""Documents from a JSONL corpus in BEIR layout or from a folder of text files; everything passed over is listed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gfm.text.reading import Row, is_blank, is_identifier, one_line, printable, read_rows, read_text
from gfm.types import Document, GfmError

CORPUS_FILE = "corpus.jsonl"
_TEXT_SUFFIXES = (".txt", ".md")
_HEADING = re.compile(r"#[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was read.

    Attributes:
        documents: In the order of the lines, or of the files' relative paths.
        skipped: (file name, reason) of every text file of a folder that gave no document.
    """

    documents: list[Document]
    skipped: list[tuple[str, str]]


def read_documents(path: str | Path) -> Corpus:
    """Read the documents at ``path``.

    Args:
        path: A JSONL file, one object a line with ``text`` and, if it likes, ``_id`` (or ``id``), ``title`` and free
            fields; or a folder that holds such a file as ``corpus.jsonl``; or a folder of .txt and .md files, searched
            through all levels, where a file's relative path is its id.

    Raises:
        GfmError: The path does not exist, a line is not what it should be (by file and line), two documents share an
            id, or no document is left.
    """
    path = Path(path)
    if path.is_dir():
        corpus = path / CORPUS_FILE
        return Corpus(_from_jsonl(corpus), []) if corpus.is_file() else _from_folder(path)
    if not path.is_file():
        raise GfmError(
            f"{path}: does not exist; expected a corpus.jsonl, or a folder with one or with .txt and .md files"
        )
    if path.suffix.lower() in _TEXT_SUFFIXES:
        raise GfmError(f"{path}: expected a JSONL file or a folder, found one text file; name the folder that holds it")
    return Corpus(_from_jsonl(path), [])


def _from_jsonl(path: Path) -> list[Document]:
    documents: list[Document] = []
    line_of: dict[str, int] = {}
    for row in read_rows(path):
        document = _document(row)
        first = line_of.setdefault(document.id, row.line)
        if first != row.line:
            row.fail(f"the id {document.id!r} stands on line {first} too; ids are unique: rename or delete one of them")
        documents.append(document)
    if not documents:
        raise GfmError(f'{path}: expected at least one line such as {{"text": "…"}}, found none')
    return documents


def _document(row: Row) -> Document:
    text = printable(row.required("text"))
    title = one_line(row.optional("title"))
    identifier = row.identifier("_id", "id")
    if identifier is None:
        digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
        identifier = f"doc-{digest[:12]}"
    return Document(identifier, title, text, row.metadata(("_id", "id"), ("title",), ("text",)))


def _from_folder(folder: Path) -> Corpus:
    documents: list[Document] = []
    skipped: list[tuple[str, str]] = []
    for name, path in _text_files(folder):
        try:
            documents.append(_from_file(name, path))
        except GfmError as error:
            # One bad file among good ones is reported, not fatal: the caller lists what was skipped.
            skipped.append((name.encode("utf-8", "backslashreplace").decode(), str(error).removeprefix(f"{path}: ")))
    if not documents:
        found = "; ".join(f"{name}: {reason}" for name, reason in skipped) or "no such file"
        raise GfmError(f"{folder}: expected {CORPUS_FILE} or a .txt or .md file with text in it; found {found}")
    return Corpus(documents, skipped)


def _text_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Text files below ``folder`` as (relative POSIX path, path), sorted by the former."""
    found = (p for p in folder.rglob("*") if p.suffix.lower() in _TEXT_SUFFIXES and not p.is_dir())
    yield from sorted((path.relative_to(folder).as_posix(), path) for path in found)


def _from_file(name: str, path: Path) -> Document:
    if not is_identifier(name):
        raise GfmError("its name is not UTF-8 or holds a control character; rename it")
    text = printable(read_text(path))
    if is_blank(text):
        raise GfmError("no text")
    heading = _first_heading(text) if path.suffix.lower() == ".md" else ""
    return Document(name, one_line(heading or path.stem), text)


def _first_heading(text: str) -> str:
    """The first Markdown heading of level one outside code fences; empty where there is none."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)) and heading[1]:
            return heading[1]
    return ""
