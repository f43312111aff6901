from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.index.builder import split_all
from gfm.index.documents import NothingToIndexError, read_documents, sources
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
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
    found = read_documents(str(tmp_path))
    assert [(file.name, file.state, file.documents) for file in found.account.files] == [
        ("corpus.jsonl", "indexed", ("b", "a", "7"))
    ]


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


def test_rows_without_an_id_that_say_the_same_are_one_document(tmp_path: Path) -> None:
    found = read_documents(corpus(tmp_path, '{"text": "x"}', '{"text": "y"}', '{"text": "x"}', '{"text": "x"}'))
    assert [d.text for d in found.documents] == ["x", "y"]
    assert found.account.files[0].reason == "2 of its rows repeat the text of others"


def test_bytes_that_are_not_utf8_are_named_by_offset_in_the_file(tmp_path: Path) -> None:
    path = corpus(tmp_path, b'\xef\xbb\xbf{"text":"x"}', b'{"text":"caf\xe9"}')
    offset = path.read_bytes().index(b"\xe9")
    with pytest.raises(GfmError, match=rf":2: byte {offset} is not UTF-8 \(found 0xe9\).*again as UTF-8"):
        read_documents(path)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_corpus_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(data)
    with pytest.raises(GfmError, match=r"corpus\.jsonl: no text: expected at least one line"):
        read_documents(path)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="does not exist; expected a folder or a file"):
        read_documents(tmp_path / "nowhere")


def test_one_file_of_any_kind(tmp_path: Path, make_pdf: Any) -> None:
    files = {
        "one.txt": b"Tarn Mill.",
        "one.md": b"# Mill\n\nTarn Mill.",
        "one.html": b"<h1>Mill</h1>Tarn Mill.",
        "one.pdf": make_pdf(["Tarn Mill."]),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        (document,) = read_documents(tmp_path / name).documents
        assert (document.id, sources(document)) == (name, [name])
        assert "Tarn Mill." in document.text
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(GfmError, match=rf"^{re.escape(str(tmp_path / 'empty.txt'))}: no text$"):
        read_documents(tmp_path / "empty.txt")


def test_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfID;Title;text;year\r\n7;Tarn Mill;"Built ""so"";\r\nin 1911";1911\r\n;;Orla;\r\n')
    one, other = read_documents(path).documents
    assert one == Document("7", "Tarn Mill", 'Built "so";\nin 1911', {"year": "1911"})
    assert (other.id[:4], other.title, other.text, other.metadata) == ("doc-", "", "Orla", {})
    path.write_text("text,id\nx,1\ny,1\n", encoding="utf-8")
    with pytest.raises(GfmError, match=r"t\.csv:3: the id '1' stands on line 2 too"):
        read_documents(path)


def test_folder_of_texts_in_order_of_their_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    files = {
        "b.txt": "\ufeffBeta\r\ntext",
        "a.MD": "intro\n```\n# no heading\n```\n## Two\n# Alpha *one* ##\nbody",
        "sub/c.md": "#hashtag\nno heading",
        "Z.txt": "Zed",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    found = read_documents(tmp_path)
    assert [(d.id, d.title) for d in found.documents] == [
        ("Z.txt", "Z"),
        ("a.MD", "Alpha one"),
        ("b.txt", "b"),
        ("sub/c.md", "c"),
    ]
    assert found.documents[2].text == "Beta\ntext"
    assert [d.metadata for d in found.documents] == [{"sources": [d.id]} for d in found.documents]
    assert found.account.counts() == {"in": 4, "indexed": 4, "unchanged": 0, "skipped": 0, "failed": 0}


def fill(folder: Path, make_pdf: Any) -> dict[str, str]:
    """One file of every fate; its name and state."""
    files: dict[str, tuple[bytes, str]] = {
        "crlf.txt": (b"Tarn Mill\r\nstands.", "indexed"),
        "latin.txt": ("Sölden liegt im Ötztal.".encode("latin-1"), "indexed"),
        "utf16.txt": ("Łódź".encode("utf-16"), "indexed"),
        "page.html": (b"<nav>menu</nav><p>Port Isk.", "indexed"),
        "note.md": (b"# Orla\n\n## Birth\n\nIn Port Isk.", "indexed"),
        "rows.jsonl": (b'{"text": "one"}\n{"_id": "q", "text": "two"}\n', "indexed"),
        "table.csv": (b"text,id\nthree,3\n", "indexed"),
        "text.pdf": (make_pdf(["Halder Sea."]), "indexed"),
        "zero.txt": (b"", "skipped"),
        "zero.csv": (b"", "skipped"),
        "zero.jsonl": (b"\n", "skipped"),
        "zero.pdf": (b"", "skipped"),
        "blank.md": (b"\n\t ", "skipped"),
        "scan.pdf": (make_pdf([]), "skipped"),
        "picture.png": (b"x", "skipped"),
        ".hidden.txt": (b"x", "skipped"),
        "binary.txt": (bytes(range(256)), "failed"),
        "locked.pdf": (make_pdf(["x"], encrypted=True), "failed"),
        "broken.pdf": (b"%PDF-1.4 nothing", "failed"),
        "broken.jsonl": (b'{"text": "fine"}\n{"text":\n', "failed"),
        "broken.csv": (b'text\nfine\n"open\n', "failed"),
        "clash.jsonl": (b'{"_id": "new", "text": "x"}\n{"_id": "3", "text": "x"}\n', "indexed"),
        "uses.jsonl": (b'{"text": "x", "sources": "own"}\n', "failed"),
    }
    for name, (data, _) in files.items():
        (folder / name).write_bytes(data)
    return {name: state for name, (_, state) in files.items()} | {"table.csv": "failed"}


def test_every_file_ends_in_one_of_four_ways(tmp_path: Path, make_pdf: Any) -> None:
    states = fill(tmp_path, make_pdf)
    found = read_documents(tmp_path)
    assert {file.name: file.state for file in found.account.files} == states
    counts = found.account.counts()
    assert counts["in"] == sum(counts.values()) - counts["in"] == len(states)
    told = {file.name: file.reason for file in found.account.files}
    assert told["broken.jsonl"].startswith("line 2: expected one JSON object")
    assert told["broken.csv"] == "line 3: expected a row of a CSV file; unexpected end of data"
    assert told["table.csv"].startswith("line 2: the id '3' stands in clash.jsonl, line 2, too")
    assert told["uses.jsonl"].startswith("line 1: 'sources': expected another name")
    assert {told[f"zero.{kind}"] for kind in ("txt", "csv", "jsonl", "pdf")} == {"no text"}
    assert told["locked.pdf"].startswith("encrypted")
    assert told["binary.txt"].startswith("not text")
    read_as = {file.name: file.encoding for file in found.account.files if file.state == "indexed"}
    assert (read_as["latin.txt"], read_as["utf16.txt"]) == ("windows-1252 (detected)", "UTF-16")
    texts = {d.id: d.text for d in found.documents}
    assert {d for file in found.account.files for d in file.documents} == texts.keys()
    assert (texts["crlf.txt"], texts["latin.txt"]) == ("Tarn Mill\nstands.", "Sölden liegt im Ötztal.")
    assert (texts["page.html"], texts["text.pdf"]) == ("Port Isk.", "Halder Sea.")
    assert next(sources(d) for d in found.documents if d.id == "q") == ["rows.jsonl"]


def test_no_row_of_a_bad_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"_id": "1", "text": "fine"}\n{"_id": "2", "text": 5}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"_id": "1", "text": "other"}\n')
    assert [(d.id, d.text) for d in read_documents(tmp_path).documents] == [("1", "other")]


def test_one_text_under_several_names_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    data = {
        "copy of a.txt": b"Tarn Mill\nstands.",
        "a.txt": b"Tarn Mill\r\nstands.\r\n",
        "sub/a.md": b"Tarn Mill\nstands.",
    }
    for name, text in data.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x"}\n{"text": "y"}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "x"}\n')
    found = read_documents(tmp_path)
    assert [(d.text, sources(d)) for d in found.documents] == [
        ("x", ["a.jsonl", "b.jsonl"]),
        ("y", ["a.jsonl"]),
        ("Tarn Mill\nstands.\n", ["a.txt", "copy of a.txt"]),
        ("Tarn Mill stands.", ["sub/a.md"]),  # Markdown has no line breaks of the writer's
    ]
    assert found.documents[2].id == "a.txt"
    account = {file.name: file for file in found.account.files}
    assert account["copy of a.txt"].reason == "same text as a.txt"
    assert account["copy of a.txt"].documents == ("a.txt",)
    assert account["b.jsonl"].documents == (found.documents[0].id,)
    assert found.account.counts()["indexed"] == 5


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["x", "y", "z "]), min_size=1), st.randoms())
def test_ids_are_those_of_the_set_of_files(texts: dict[str, str], random: Any) -> None:
    names = list(texts)
    random.shuffle(names)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            Path(folder, f"{name}.txt").write_text(texts[name], encoding="utf-8")
        found = read_documents(folder)
    by_text: dict[str, list[str]] = {}
    for name in sorted(texts):
        by_text.setdefault(texts[name].strip(), []).append(f"{name}.txt")
    assert {d.id: sources(d) for d in found.documents} == {same[0]: same for same in by_text.values()}


def test_the_encoding_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Łódź".encode("iso-8859-2"))
    (tmp_path / "b.csv").write_bytes("text\nŁódź!\n".encode("iso-8859-2"))
    (tmp_path / "c.jsonl").write_bytes('{"text": "Łódź?"}'.encode("iso-8859-2"))
    found = read_documents(tmp_path, "iso-8859-2")
    assert [d.text for d in found.documents] == ["Łódź", "Łódź!", "Łódź?"]
    assert {file.encoding for file in found.account.files} == {"iso-8859-2"}
    assert [file.state for file in read_documents(tmp_path).account.files][2] == "failed"
    with pytest.raises(GfmError, match="encoding 'klingon'"):
        read_documents(tmp_path, "klingon")


def test_beside_a_corpus_nothing_else_is_read(tmp_path: Path) -> None:
    corpus(tmp_path, '{"_id": "a", "text": "x"}')
    (tmp_path / "qrels").mkdir()
    for name in ("queries.jsonl", "qrels/dev.tsv"):
        (tmp_path / name).write_bytes(b"x")
    account = read_documents(tmp_path).account
    assert [(file.name, file.state) for file in account.files] == [
        ("corpus.jsonl", "indexed"),
        ("qrels/dev.tsv", "skipped"),
        ("queries.jsonl", "skipped"),
    ]
    assert account.files[1].reason == "beside a corpus.jsonl, which is read alone"


def test_a_folder_without_any_document_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(NothingToIndexError, match="found none"):
        read_documents(tmp_path)
    for name in "abcd":
        (tmp_path / f"{name}.txt").write_bytes(b"\0")
    with pytest.raises(NothingToIndexError, match=r"found a\.txt: not text.*; and 1 more") as error:
        read_documents(tmp_path)
    assert error.value.account.counts()["failed"] == 4


def test_sources_of_documents_that_no_file_of_a_folder_holds() -> None:
    assert sources(Document("p1", "", "x")) == ["p1"]
    assert sources(Document("p1", "", "x", {"sources": "a free field"})) == ["p1"]
    assert sources(Document("p1", "", "x", {"sources": ["a", "b"]})) == ["a", "b"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode in every locale")
def test_a_name_of_another_script_is_read_in_the_plainest_locale(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "Мельница.txt").write_text("Она стоит.", encoding="utf-8")
    code = (
        "import sys; from gfm.index.documents import read_documents; "
        "print([ascii((d.id, d.title)) for d in read_documents(sys.argv[1]).documents])"
    )
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, "-c", code, tmp_path], env=plain, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([ascii(("Мельница.txt", "Мельница"))])


def test_a_corpus_in_use_keeps_its_documents_and_passages(shared: Path) -> None:
    """A checkpoint and cached vectors depend on them; the hash is of the version that it was trained with."""
    documents = read_documents(shared / "data" / "dev" / "2wiki" / "corpus.jsonl").documents
    passages = split_all(documents, HashingEncoder(64), BuildSettings())
    rows = json.dumps([[p.id, p.document_id, p.title, p.text, p.start, p.end] for p in passages])
    assert (len(documents), len(passages)) == (3301, 3473)
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == "71a4627e5bcacdd4"
