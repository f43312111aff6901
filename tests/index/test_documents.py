import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.index.documents import read_documents
from gfm.text.reading import printable
from gfm.types import Document, GfmError


def corpus(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "corpus.jsonl"
    path.write_bytes(b"".join((x if isinstance(x, bytes) else x.encode()) + b"\n" for x in lines))
    return path


def test_beir_rows_keep_order_and_free_fields(tmp_path: Path) -> None:
    path = corpus(
        tmp_path,
        '{"_id": "b", "title": "Tarn Mill", "text": "Built in 1911.", "year": 1911}',
        "",
        '{"id": "a", "text": "Orla Venn.", "metadata": {"lang": "en", "year": 1}, "year": 2}',
        '{"_id": 7, "id": "kept", "text": "x", "title": null}',
    )
    expected = [
        Document("b", "Tarn Mill", "Built in 1911.", {"year": 1911}),
        Document("a", "", "Orla Venn.", {"lang": "en", "year": 2}),
        Document("7", "", "x", {"id": "kept"}),
    ]
    assert read_documents(path).documents == expected
    assert read_documents(tmp_path).documents == expected
    assert read_documents(str(tmp_path)).skipped == []


def test_only_text_is_required_and_the_id_comes_from_the_content(tmp_path: Path) -> None:
    lines = ['{"text": "Tarn Mill was built.\\r\\nIt stands."}', '{"title": "T", "text": "x"}']
    first, second = read_documents(corpus(tmp_path, *lines)).documents
    assert first.text == "Tarn Mill was built.\nIt stands."
    assert first.id == "doc-" + hashlib.sha256(b"\nTarn Mill was built.\nIt stands.").hexdigest()[:12]
    assert second.id == "doc-" + hashlib.sha256(b"T\nx").hexdigest()[:12]


def test_byte_order_mark_crlf_and_line_separator_inside_a_text(tmp_path: Path) -> None:
    path = corpus(tmp_path, b"\xef\xbb\xbf" + '{"_id":"a","text":"x\u2028y"}\r'.encode(), '{"_id":"b","text":"z"}\r')
    assert [(d.id, d.text) for d in read_documents(path).documents] == [("a", "x\u2028y"), ("b", "z")]


def test_control_characters_go_and_joiners_stay(tmp_path: Path) -> None:
    text = "a\x00b\x07c\n\td\x0ce\ud800f\r\ng\rh می\u200cخواهم"
    path = corpus(tmp_path, json.dumps({"_id": "a", "title": "Bell\x07  Tower\n", "text": text}))
    (document,) = read_documents(path).documents
    assert document.text == "abc\n\td ef\ng\nh می\u200cخواهم"
    assert document.title == "Bell Tower"


@given(st.text())
def test_printable_is_storable_and_stable(text: str) -> None:
    once = printable(text)
    once.encode("utf-8")
    assert printable(once) == once
    assert not any(c < " " and c not in "\n\t" for c in once)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "x"', "one JSON object"),
        ('["x"]', "expected a JSON object, found an array"),
        ('{"_id": "q", "title": "t"}', "'text'; found '_id', 'title'"),
        ("{}", "'text'; found no field"),
        ('{"text": 5}', "expected a string, found a number"),
        ('{"text": " \\n\\t\\u200b"}', "'text' is blank"),
        ('{"text": "x", "title": ["t"]}', "'title': expected a string, found an array"),
        ('{"text": "x", "_id": true}', "found true or false"),
        ('{"text": "x", "_id": " "}', "not blank"),
        ('{"text": "x", "_id": "a\\tb"}', "no control characters"),
        ('{"text": "x", "score": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "one JSON object"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, line: str, words: str) -> None:
    path = corpus(tmp_path, '{"text": "fine"}', "", line)
    with pytest.raises(GfmError) as error:
        read_documents(path)
    assert str(error.value).startswith(f"{path}:3: ")
    assert words in str(error.value)


@pytest.mark.parametrize("second", ['{"_id": "a", "text": "y"}', '{"_id": "a", "text": "x"}'])
def test_duplicate_ids_name_both_lines(tmp_path: Path, second: str) -> None:
    path = corpus(tmp_path, '{"_id": "a", "text": "x"}', '{"_id": "b", "text": "x"}', second)
    with pytest.raises(GfmError, match=r":3: the id 'a' stands on line 1 too"):
        read_documents(path)


def test_equal_texts_without_ids_are_duplicates(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r":2: the id 'doc-[0-9a-f]{12}' stands on line 1 too"):
        read_documents(corpus(tmp_path, '{"text": "x"}', '{"text": "x"}'))


def test_bytes_that_are_not_utf8_are_named_by_offset_in_the_file(tmp_path: Path) -> None:
    path = corpus(tmp_path, b'\xef\xbb\xbf{"text":"x"}', b'{"text":"caf\xe9"}')
    offset = path.read_bytes().index(b"\xe9")
    with pytest.raises(GfmError, match=rf":2: byte {offset} is not UTF-8 \(found 0xe9\).*again as UTF-8"):
        read_documents(path)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_corpus_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(data)
    with pytest.raises(GfmError, match="expected at least one line"):
        read_documents(path)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="does not exist"):
        read_documents(tmp_path / "nowhere")
    (tmp_path / "one.txt").write_text("x", encoding="utf-8")
    with pytest.raises(GfmError, match="name the folder"):
        read_documents(tmp_path / "one.txt")


def test_folder_of_texts_in_order_of_their_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "dir.txt").mkdir()
    files = {
        "b.txt": "\ufeffBeta\r\ntext",
        "a.MD": "intro\n```\n# no heading\n```\n## Two\n# Alpha *one* ##\nbody",
        "sub/c.md": "#hashtag\nno heading",
        "Z.txt": "Zed",
        "picture.png": "not a text",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    found = read_documents(tmp_path)
    assert [(d.id, d.title) for d in found.documents] == [
        ("Z.txt", "Z"),
        ("a.MD", "Alpha *one*"),
        ("b.txt", "b"),
        ("sub/c.md", "c"),
    ]
    assert found.documents[2].text == "Beta\ntext"
    assert found.skipped == []


def test_files_passed_over_are_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    (tmp_path / "b.txt").write_bytes(b"fine")
    (tmp_path / "blank.txt").write_bytes(b"\n\t ")
    (tmp_path / "empty.md").write_bytes(b"")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    found = read_documents(tmp_path)
    assert [d.id for d in found.documents] == ["b.txt"]
    assert [name for name, _ in found.skipped] == ["a.txt", "blank.txt", "empty.md", "gone.txt"]
    reasons = dict(found.skipped)
    assert reasons["a.txt"].startswith("byte 3 is not UTF-8")
    assert reasons["blank.txt"] == reasons["empty.md"] == "no text"
    assert reasons["gone.txt"].startswith("expected a readable file")


def test_a_folder_without_any_document_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="no such file"):
        read_documents(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(GfmError, match=r"a\.txt: byte 3 is not UTF-8"):
        read_documents(tmp_path)
