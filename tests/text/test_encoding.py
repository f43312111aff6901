from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.encoding import check_encoding, declared, decode, read_bytes
from gfm.types import GfmError

GERMAN = "Die Mühle wurde 1911 von Orla Venn gebaut. Sölden liegt im Ötztal. Straße und Brücke führen über den Fluß."


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff")))
def test_utf8_is_read_as_utf8(text: str) -> None:
    assert decode(text.encode()) == (text, "UTF-8")
    assert decode(b"\xef\xbb\xbf" + text.encode()) == (text, "UTF-8")


@pytest.mark.parametrize(
    ("codec", "mark", "name"),
    [
        ("utf-16-le", b"\xff\xfe", "UTF-16"),
        ("utf-16-be", b"\xfe\xff", "UTF-16"),
        ("utf-32-le", b"\xff\xfe\0\0", "UTF-32"),
        ("utf-32-be", b"\0\0\xfe\xff", "UTF-32"),
    ],
)
def test_a_byte_order_mark_tells_the_encoding(codec: str, mark: bytes, name: str, tmp_path: Path) -> None:
    data = mark + "Łódź 삼 🚀".encode(codec)
    assert decode(data) == ("Łódź 삼 🚀", name)
    (tmp_path / "x").write_bytes(data)
    assert declared(tmp_path / "x") == name
    assert read_bytes(tmp_path / "x") == data


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1252", GERMAN),
        ("cp1252", "“Tarn Mill” — it’s the mill’s name – was built in 1911, for £400."),
        ("cp1252", "café"),
        ("latin-1", "El niño español comió piñas mañana en Málaga. ¿Dónde está la señora Muñoz?"),
        ("cp1250", "Zażółć gęślą jaźń. Młyn został zbudowany w Łodzi przez Świętosława w roku 1911."),
        ("cp1251", "Мельница была построена Орлой Венн в 1911 году. Она стоит в Порт-Иске."),
        ("koi8-r", "Мельница была построена Орлой Венн в 1911 году. Она стоит в Порт-Иске."),
        ("cp932", "李明は海港書店を設立した。海港書店は臨川にあります。"),
        ("gb18030", "李明创办了海港书店。海港书店位于临川。"),
        ("cp949", "물레방아는 1911년에 오를라 벤이 지었다. 항구에 서 있다."),
    ],
)
def test_other_encodings_are_found_and_stated(codec: str, text: str) -> None:
    found, stated = decode(text.encode(codec))
    assert found == text
    assert stated.endswith(" (detected)")


def test_letters_far_down_a_long_file_count() -> None:
    assert decode(("All of it is plain.\n" * 20_000 + GERMAN).encode("cp1252"))[1] == "windows-1252 (detected)"


def test_a_page_may_declare_its_encoding() -> None:
    page = '<meta charset="iso-8859-2"><p>Łódź'
    assert decode(page.encode("iso-8859-2")) == (page, "iso-8859-2 (detected)")
    assert decode(b'<meta charset="iso-8859-1">it\x92s')[0].endswith("it’s")


def test_a_given_encoding_is_the_last_word() -> None:
    assert decode("é".encode(), "latin-1") == ("Ã©", "latin-1")
    assert decode(b"\xef\xbb\xbfx", "utf-8") == ("x", "utf-8")
    assert decode("x".encode("utf-16"), "utf-16-le") == ("x", "utf-16-le")
    with pytest.raises(GfmError, match=r"^not text: read as latin-1, it holds zero bytes"):
        decode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin-1")
    with pytest.raises(GfmError, match=r"^byte 3 is not ascii .*another --encoding"):
        decode(b"caf\xe9", "ascii")
    with pytest.raises(GfmError, match=r"^byte 2 is not UTF-16 \(truncated data\)"):
        decode(b"\xff\xfex")


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"abc\0def",
        b"\xff\xd8\xff\xe0\x10JFIF\x01" + bytes(range(1, 256)),
        b"\x1f\x8b\x08" + bytes(range(255, 0, -1)) * 3,
        "Tarn Mill".encode("utf-16-le"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(GfmError, match="give --encoding"):
        decode(data)


@pytest.mark.parametrize("name", ["utf-99", "base64", "", "a\0b"])
def test_an_unknown_encoding_is_refused(name: str) -> None:
    with pytest.raises(GfmError, match=r"expected the name of a text encoding, as in --encoding windows-1252"):
        check_encoding(name)


def test_a_known_encoding_is_fine() -> None:
    check_encoding("Windows-1252")


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    for read in (read_bytes, declared):
        with pytest.raises(GfmError, match=r"^expected a readable file; No such file"):
            read(tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "x").chmod(0)
    with pytest.raises(GfmError, match="Permission denied"):
        read_bytes(tmp_path / "x")
