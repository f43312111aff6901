from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import gfm.index.cache as cache_module
from gfm.extract.extraction import Extraction
from gfm.index.cache import Cache
from gfm.text.encoder import Fingerprint, HashingEncoder
from gfm.types import GfmError, Passage


class CountingEncoder(HashingEncoder):
    """Counts the texts that reach it; NaN for a skull, a crash for a bomb."""

    def __init__(self, dim: int = 8) -> None:
        self.seen: list[str] = []
        super().__init__(dim)
        self.seen.clear()

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        self.seen += texts
        if any("💣" in t for t in texts):
            raise RuntimeError("power cut")
        vectors = super().encode(texts)
        vectors[["☠" in t for t in texts]] = np.nan
        vectors[["🐌" in t for t in texts]] = 0.0
        return vectors


class CountingExtractor:
    """Says the text back as the relation of a triple, and counts."""

    name = "stub"
    rows = ()

    def __init__(self, settings: str = "stub-1", cached: bool = True) -> None:
        self.settings = settings
        self.cached = cached
        self.seen: list[str] = []

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        self.seen += [p.id for p in passages]
        if any("💣" in p.text for p in passages):
            raise RuntimeError("power cut")
        return [Extraction(triples=(("A", p.text, p.id if not self.cached else "B"),)) for p in passages]


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"p{i}", f"p{i}", "", t, 0, len(t)) for i, t in enumerate(texts)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[Cache]:
    made = Cache(path)
    yield made
    made.close()


def rows(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    return int(count)


# --- vectors


def test_vectors_are_those_of_the_encoder_bit_for_bit(cache: Cache) -> None:
    texts = ["Tarn Mill", "李明", "", "a\ud800", "Tarn Mill"]
    expected = HashingEncoder(8).encode(texts)
    for _ in range(2):
        found = cache.vectors(texts, HashingEncoder(8), "names")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    assert cache.vectors([], HashingEncoder(8), "").shape == (0, 8)


def test_a_second_call_costs_nothing_even_after_reopening(cache: Cache, path: Path) -> None:
    encoder = CountingEncoder()
    first = cache.vectors(["a", "b"], encoder, "")
    cache.close()
    again = Cache(path)
    encoder.seen.clear()
    np.testing.assert_array_equal(again.vectors(["b", "a"], encoder, ""), first[::-1])
    assert encoder.seen == []
    again.vectors(["a", "c", "b"], encoder, "")
    assert encoder.seen == ["c"]
    again.close()


def test_new_work_is_counted(cache: Cache) -> None:
    cache.vectors(["a", "b", "a"], CountingEncoder(), "")
    cache.vectors(["b", "c"], CountingEncoder(), "")
    cache.extractions(passages("one", "two", "one"), CountingExtractor())
    cache.extractions(passages("two"), CountingExtractor())
    assert (cache.encoded, cache.extracted) == (3, 2)


def test_the_same_text_is_encoded_once(cache: Cache) -> None:
    encoder = CountingEncoder()
    cache.vectors(["bb", "a", "bb", "a", "ccc"], encoder, "")
    assert encoder.seen == ["a", "bb", "ccc"]  # by length, then alphabet


def test_encoders_do_not_share_vectors(cache: Cache) -> None:
    one = CountingEncoder()
    other = CountingEncoder()
    other._fingerprint = Fingerprint("other", "another revision", 8, one.fingerprint.probe)  # of the same dimension
    cache.vectors(["a"], one, "")
    cache.vectors(["a"], other, "")
    cache.vectors(["a"], CountingEncoder(16), "")
    assert one.seen == other.seen == ["a"]
    assert cache.vectors(["a"], CountingEncoder(16), "").shape == (1, 16)


def test_a_crash_keeps_the_finished_batches(path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_BATCH", 2)
    encoder = CountingEncoder()
    with pytest.raises(RuntimeError, match="power cut"):
        cache.vectors(["a", "b", "cc", "dd", "eee", "💣💣💣"], encoder, "")
    assert rows(path, "vector") == 4
    encoder.seen.clear()
    cache.vectors(["a", "b", "cc", "dd", "eee", "fff"], encoder, "")
    assert encoder.seen == ["eee", "fff"]


@pytest.mark.parametrize("sign", ["☠", "🐌"])
def test_a_bad_vector_is_never_stored(path: Path, cache: Cache, sign: str) -> None:
    with pytest.raises(GfmError, match=f"'jam {sign}'"):
        cache.vectors(["fine", f"jam {sign}"], CountingEncoder(), "")
    assert rows(path, "vector") == 0


def test_a_vector_of_another_length_is_refused(path: Path, cache: Cache) -> None:
    cache.vectors(["a"], HashingEncoder(8), "")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vector SET value = x'0000'")
    connection.close()
    with pytest.raises(GfmError, match=r"cache\.sqlite: .*a vector of 2 bytes where 32 are due; delete that file"):
        cache.vectors(["a"], HashingEncoder(8), "")


# --- extractions


def test_extractions_are_made_once_a_text(cache: Cache, path: Path) -> None:
    extractor = CountingExtractor()
    first = cache.extractions(passages("one", "two", "one", "a\ud800\u2028\n"), extractor)
    assert [x.triples[0][1] for x in first] == ["one", "two", "one", "a\ud800\u2028\n"]
    assert len(extractor.seen) == 3
    cache.close()
    again = Cache(path)
    assert again.extractions(passages("one", "two", "one", "a\ud800\u2028\n"), extractor) == first
    assert len(extractor.seen) == 3
    again.close()


def test_extractors_of_other_settings_do_not_share(cache: Cache) -> None:
    one, other = CountingExtractor("stub-1"), CountingExtractor("stub-2")
    for extractor in (one, other):
        cache.extractions(passages("one"), extractor)
    assert one.seen == other.seen == ["p0"]


def test_an_extractor_that_must_not_be_cached_is_not(path: Path, cache: Cache) -> None:
    extractor = CountingExtractor(cached=False)
    for _ in range(2):
        found = cache.extractions(passages("same", "same"), extractor)
        assert [x.triples[0][2] for x in found] == ["p0", "p1"]
    assert extractor.seen == ["p0", "p1", "p0", "p1"]
    assert rows(path, "extraction") == 0


def test_a_crash_keeps_the_finished_extractions(path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_BATCH", 2)
    extractor = CountingExtractor()
    with pytest.raises(RuntimeError, match="power cut"):
        cache.extractions(passages("a", "b", "c", "d", "e", "💣"), extractor)
    assert rows(path, "extraction") == 4
    extractor.seen.clear()
    assert len(cache.extractions(passages("a", "b", "c", "d", "e", "f"), extractor)) == 6
    assert extractor.seen == ["p4", "p5"]


def test_more_texts_than_one_question_to_sqlite_holds(cache: Cache) -> None:
    encoder = CountingEncoder()
    texts = [f"text {i}" for i in range(1203)]
    first = cache.vectors(texts, encoder, "")
    encoder.seen.clear()
    np.testing.assert_array_equal(cache.vectors(texts, encoder, ""), first)
    assert encoder.seen == []


@pytest.mark.parametrize(
    "value", ["not json", '{"sentences":[]}', '{"sentences":1,"mentions":[],"predicates":[],"triples":[]}']
)
def test_an_unreadable_extraction_is_named(path: Path, cache: Cache, value: str) -> None:
    cache.extractions(passages("one"), CountingExtractor())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE extraction SET value = ?", (value.encode(),))
    connection.close()
    with pytest.raises(GfmError, match=r"cache\.sqlite: .*does not read.*delete that file"):
        cache.extractions(passages("one"), CountingExtractor())


# --- the file


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is text " * 40, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_file_that_is_no_cache_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(
        GfmError, match=r"cache\.sqlite: expected the index's cache \(SQLite\), found: .*delete that file"
    ):
        Cache(path)
    assert path.read_bytes() == content  # it may be somebody's own file


def test_damage_in_the_middle_is_named(path: Path) -> None:
    cache = Cache(path)
    cache.vectors([f"text {i}" for i in range(400)], HashingEncoder(64), "")
    cache.close()
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(GfmError, match=r"cache\.sqlite: expected the index's cache.*delete that file"):
        Cache(path).vectors([f"text {i}" for i in range(400)], HashingEncoder(64), "")


def test_an_empty_file_becomes_a_cache(path: Path) -> None:
    path.touch()
    cache = Cache(path)
    assert cache.vectors(["a"], HashingEncoder(8), "").shape == (1, 8)
    cache.close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"none.cache\.sqlite: .*see that its folder exists"):
        Cache(tmp_path / "none" / "cache.sqlite")


def test_a_foreign_database_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vector (a, b)")
    connection.close()
    with pytest.raises(GfmError, match="no such column"):
        Cache(path)


def test_two_processes_may_share_the_file(path: Path, cache: Cache) -> None:
    other = Cache(path)
    one, two = CountingEncoder(), CountingEncoder()
    cache.vectors(["a", "b"], one, "")
    other.vectors(["b", "c"], two, "")
    assert two.seen == ["c"]
    other.close()


def test_a_write_held_up_too_long_does_not_ask_to_delete(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_BUSY_SECONDS", 0.05)
    cache = Cache(path)
    blocker = sqlite3.connect(path)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(GfmError, match=r"locked.*no other build is running") as caught:
        cache.vectors(["a"], HashingEncoder(8), "")
    assert "delete" not in str(caught.value)
    blocker.rollback()
    blocker.close()
    assert cache.vectors(["a"], HashingEncoder(8), "").shape == (1, 8)
    cache.close()
