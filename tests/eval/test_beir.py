from pathlib import Path

import pytest

from gfm.eval.beir import load_dataset, read_qrels, read_queries
from gfm.types import GfmError, Query

HEADER = "query-id\tcorpus-id\tscore\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def dataset(folder: Path, *splits: str) -> Path:
    write(folder / "corpus.jsonl", '{"_id": "d1", "text": "x"}\n')
    write(folder / "queries.jsonl", '{"_id": "a", "text": "who?"}\n{"_id": "b", "text": "where?"}\n')
    for split in splits:
        write(folder / "qrels" / f"{split}.tsv", f"{HEADER}a\td1\t1\nb\td1\t0\n")
    return folder


def test_queries_need_only_a_question(tmp_path: Path) -> None:
    lines = [
        '\ufeff{"_id": "a", "text": "who\\u2028is  it?", "metadata": {"type": "2hop"}, "answer": "Orla"}\r',
        "",
        '{"question": "where?"}',
        '{"id": 5, "text": "when?", "question": "kept"}',
    ]
    assert read_queries(write(tmp_path / "q.jsonl", "\n".join(lines))) == [
        Query("a", "who is it?", {"type": "2hop", "answer": "Orla"}),
        Query("q3", "where?", {}),
        Query("5", "when?", {"question": "kept"}),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"_id": "a"}', ":1: expected the field 'text' or 'question'"),
        ('{"text": " "}', ":1: 'text' is blank"),
        ('{"text": "x"}\n{"id": "q1", "text": "y"}', ":2: the query id 'q1' stands on line 1 too"),
        ("\n", "expected at least one line"),
    ],
)
def test_query_errors(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "q.jsonl", text)
    with pytest.raises(GfmError) as error:
        read_queries(path)
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)


def test_qrels_with_mark_crlf_zero_scores_and_duplicates(tmp_path: Path) -> None:
    rows = ["a\td1\t1", "a\td2\t0", "a\td1\t1", "", "b\td 3\t2.0", "b\td4\t-1", "c\td1\t0", "b\td 3\t1"]
    path = write(tmp_path / "q.tsv", "\ufeff" + (HEADER + "\n".join(rows)).replace("\n", "\r\n"))
    assert read_qrels(path) == {"a": {"d1": 1}, "b": {"d 3": 2}, "c": {}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEADER}a\td1", ":2: expected 3 columns"),
        (f"{HEADER}a\td1\t1\na 0 d1 1", ":3: expected 3 columns"),
        (f"{HEADER}\n\td1\t1", ":3: expected an id"),
        (f"{HEADER}a\td1\tyes", ":2: expected a whole number as score, found 'yes'"),
        (f"{HEADER}a\td1\t0.5", ":2: expected a whole number"),
        (f"{HEADER}a\td1\tnan", ":2: expected a whole number"),
        ("a\td1\t1\n", ":1: expected the header line"),
        (HEADER, "below the header, found none"),
        ("", "is empty"),
    ],
)
def test_qrels_errors(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "q.tsv", text)
    with pytest.raises(GfmError) as error:
        read_qrels(path)
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)


def test_the_only_split_needs_no_name(tmp_path: Path) -> None:
    found = load_dataset(dataset(tmp_path / "mini", "dev"))
    assert (found.name, found.corpus) == ("mini", tmp_path / "mini" / "corpus.jsonl")
    assert [q.id for q in found.queries] == ["a", "b"]
    assert found.qrels == {"a": {"d1": 1}, "b": {}}
    assert [q.id for q in found.judged()] == ["a"]
    assert load_dataset(str(tmp_path / "mini"), split="dev") == found


def test_several_splits_have_to_be_named(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "train", "test")
    with pytest.raises(GfmError, match="several splits: test, train"):
        load_dataset(folder)
    assert load_dataset(folder, "test").qrels["a"] == {"d1": 1}
    with pytest.raises(GfmError, match=r"expected dev\.tsv, found these splits: test, train"):
        load_dataset(folder, "dev")


def test_a_set_without_labels_loads(tmp_path: Path) -> None:
    found = load_dataset(dataset(tmp_path))
    assert found.qrels == {}
    assert found.judged() == []
    with pytest.raises(GfmError, match="found these splits: none"):
        load_dataset(tmp_path, "test")


def test_missing_files_and_qrels_of_another_set(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"corpus\.jsonl: does not exist"):
        load_dataset(tmp_path / "nowhere")
    folder = dataset(tmp_path, "dev")
    write(folder / "qrels" / "dev.tsv", f"{HEADER}zz\td1\t1\n")
    with pytest.raises(GfmError, match=r"judges 1 queries .* the first 'zz'"):
        load_dataset(folder)
    (folder / "queries.jsonl").unlink()
    with pytest.raises(GfmError, match=r"queries\.jsonl: expected a readable file"):
        load_dataset(folder)
