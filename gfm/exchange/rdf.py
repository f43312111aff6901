"""N-Triples (RDF 1.1) line by line: terms, statements, and their text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from gfm.text.reading import read_lines
from gfm.types import GfmError

_LINE = re.compile(
    r"""\s*(?:<(?P<s>[^\s<>"{}|^`]*)>|(?P<sb>_:[^\s<>"]+))
        \s*<(?P<p>[^\s<>"{}|^`]*)>
        \s*(?:<(?P<o>[^\s<>"{}|^`]*)>|(?P<ob>_:[^\s<>"]*[^\s<>".])
             |"(?P<l>(?:[^"\\]|\\.)*)"(?:\^\^<[^\s<>"{}|^`]*>|@(?P<lang>[A-Za-z]+(?:-[A-Za-z0-9]+)*))?)
        \s*\.\s*(?:\#.*)?""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\])|(.?))")
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Term(NamedTuple):
    """A resource (IRI, or a blank node that begins with ``_:``) or a literal with its language."""

    text: str
    literal: bool = False
    language: str = ""


class Statement(NamedTuple):
    """One line: subject and predicate are resources; ``place`` is its file and line."""

    subject: str
    predicate: str
    object: Term
    place: str


def read_statements(path: Path) -> Iterator[Statement]:
    """The statements of a file; lines of a comment alone are passed over.

    Raises:
        GfmError: A line is no statement, by file and line.
    """
    for number, line in read_lines(path):
        if line.lstrip().startswith("#"):
            continue
        place = f"{path}:{number}"
        found = _LINE.fullmatch(line)
        if found is None:
            raise GfmError(
                f"{place}: expected one statement of N-Triples, such as <urn:a> <urn:b> <urn:c> . found {line[:60]!r}"
            )
        subject = found["sb"] or _plain(found["s"], place)
        if found["l"] is not None:
            term = Term(_plain(found["l"], place), True, (found["lang"] or "").lower())
        else:
            term = Term(found["ob"] or _plain(found["o"], place))
        yield Statement(subject, _plain(found["p"], place), term, place)


def _plain(text: str, place: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            number = int(code, 16)
            if number > 0x10FFFF:
                raise GfmError(f"{place}: expected the number of a character, found \\U{code}")
            return chr(number)
        if found[3] is None:
            raise GfmError(f"{place}: expected an escape of N-Triples such as \\n or \\u00e9, found \\{found[4]}")
        return _SHORT.get(found[3], found[3])

    return _ESCAPE.sub(character, text) if "\\" in text else text


def local_name(iri: str) -> str:
    """What a person reads in an IRI: its last part, decoded; words of ``camelCase`` apart."""
    name = unquote(re.split(r"[#/:]", iri.rstrip("#/:"))[-1]).replace("_", " ")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def literal(text: str, datatype: str = "") -> str:
    """A literal as it is written."""
    escaped = "".join(_WRITTEN.get(c, c) for c in text)
    return f'"{escaped}"^^<{datatype}>' if datatype else f'"{escaped}"'


def line(subject: str, predicate: str, term: str) -> str:
    """One statement as it is written; ``subject`` is a resource, ``term`` written already."""
    return f"{resource(subject)} <{predicate}> {term} .\n"


def resource(name: str) -> str:
    """An IRI or blank node as it is written."""
    return name if name.startswith("_:") else f"<{name}>"
