"""Bytes to text: the encoding that was asked for, or a byte-order mark, or UTF-8, or else what the bytes look like."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import regex as re  # knows the categories of characters

from gfm.types import GfmError

UTF8_BOM = codecs.BOM_UTF8
# UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (UTF8_BOM, "utf-8-sig", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_BINARY_SAMPLE = 8192
_DETECTION_SAMPLE = 20_000
_NO_TEXT = re.compile(r"(?V1)[[\p{Cc}\p{Cn}\p{Co}\p{Cs}]--[\t\n\v\f\r\x1a]]")


def check_encoding(name: str) -> None:
    """Refuse a name that is no text encoding of Python's.

    Raises:
        GfmError: It is not.
    """
    try:
        "x".encode(name)
    except (LookupError, ValueError) as error:
        raise GfmError(
            f"encoding {name!r}: expected the name of a text encoding, as in --encoding windows-1252; {error}"
        ) from error


def read_bytes(path: Path) -> bytes:
    """A whole file.

    Raises:
        GfmError: It cannot be opened; the message leaves its name to the caller.
    """
    with _opening():
        return path.read_bytes()


@contextmanager
def _opening() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GfmError(f"expected a readable file; {error.strerror}") from error


def declared(path: Path) -> str:
    """What the byte-order mark at the head of a file says: UTF-8 (also where there is none), UTF-16 or UTF-32.

    Raises:
        GfmError: The file cannot be opened; the message leaves its name to the caller.
    """
    with _opening(), path.open("rb") as file:
        head = file.read(4)
    return next((name for mark, _, name in _MARKS if head.startswith(mark)), "UTF-8")


def decode(data: bytes, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file, and the encoding that it was read in, in words.

    Where no encoding is given, a byte-order mark tells it; bytes that are valid UTF-8 are UTF-8; others are read in the
    encoding that an HTML or XML header declares or that the ``chardet`` library finds the likeliest, and the words then
    end in ``(detected)``.

    Args:
        data: The bytes.
        encoding: What to read them in, whatever they look like.

    Raises:
        GfmError: The bytes are not in the given encoding, or they are no text; the message leaves the file's name to
            the caller.
    """
    if encoding is not None:
        text = _strictly(data, encoding, encoding).removeprefix("\ufeff")
        if "\0" in text[:_BINARY_SAMPLE]:
            raise GfmError(f"not text: read as {encoding}, it holds zero bytes, as binary files do")
        return text, encoding
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            return _strictly(data, codec, name), name
    if b"\0" in data[:_BINARY_SAMPLE]:
        raise GfmError(
            "not text: it holds zero bytes, as binary files do, and UTF-16 without a byte-order mark; if it is that, "
            "give --encoding utf-16-le"
        )
    try:
        return data.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError as error:
        return _detected(data, not_utf8(data, error))


def not_utf8(data: bytes, error: UnicodeDecodeError, offset: int = 0) -> str:
    """Which byte is not UTF-8, counted from 0 in a file in which ``data`` begins at ``offset``."""
    return f"byte {offset + error.start} is not UTF-8 (found 0x{data[error.start]:02x})"


def _strictly(data: bytes, codec: str, name: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeError as error:  # UTF-16 and others raise its plain form where the bytes end too soon
        where = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else "a byte"
        raise GfmError(f"{where} is not {name} ({getattr(error, 'reason', error)}); give another --encoding") from error


def _detected(data: bytes, problem: str) -> tuple[str, str]:
    import chardet  # only for those who need it: it loads a model

    # Lines of ASCII tell nothing of an encoding, but for a declaration in the head of the file.
    telling = b"\n".join([data[:1024], *(line for line in data.split(b"\n") if not line.isascii())])
    era = chardet.EncodingEra.ALL & ~chardet.EncodingEra.MAINFRAME  # to EBCDIC, everything is text
    name = chardet.detect(telling, encoding_era=era, max_bytes=_DETECTION_SAMPLE)["encoding"] or "ascii"
    # The web reads Latin-1 as the code page that fills its gaps (https://encoding.spec.whatwg.org/#names-and-labels).
    name = "windows-1252" if name.lower() == "iso-8859-1" else name.lower()
    try:
        text = data.decode(name)
    except (UnicodeError, LookupError) as error:
        raise GfmError(f"{problem}, nor any other encoding that can be told; give --encoding if it is text") from error
    if _NO_TEXT.search(text):
        raise GfmError(f"not text: {problem}, and it has control characters; give --encoding if it is text")
    return text, f"{name} (detected)"
