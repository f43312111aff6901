from __future__ import annotations

from math import log

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.index.lexical import NO_WORDS, Lexical, Words, lexical_arrays, make_lexical, merge_words
from gfm.text.normalise import tokens


def lexical(passages: list[str], names: list[str]) -> Lexical:
    return Lexical(*make_lexical(passages, names), len(passages))


def test_bm25_by_hand() -> None:
    """The Lucene variant, k1 = 1.5 and b = 0.75, on three passages of 4, 2 and 3 tokens (3 on average)."""
    index = lexical(["red mill, red sea", "red fox", "a blue sea"], [])
    length, average = {0: 4, 1: 2, 2: 3}, 3.0

    def score(passage: int, tf: int, df: int) -> float:
        idf = log(1 + (3 - df + 0.5) / (df + 0.5))
        return idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * length[passage] / average))

    red, sea = index.token_ids("RED"), index.token_ids("sea")
    assert index.bm25(red) == pytest.approx([score(0, 2, 2), score(1, 1, 2), 0.0], rel=1e-6)
    assert index.bm25(sea) == pytest.approx([score(0, 1, 2), 0.0, score(2, 1, 2)], rel=1e-6)
    both = index.bm25(index.token_ids("the red sea"))
    assert both == pytest.approx([score(0, 2, 2) + score(0, 1, 2), score(1, 1, 2), score(2, 1, 2)], rel=1e-6)
    assert both[0] == pytest.approx(0.470004 * (2 / 3.875 + 1 / 2.875), rel=1e-5)
    assert both.dtype == np.float32


def test_names_that_stand_in_a_text_by_hand() -> None:
    """Rarest first: the idf of orla and venn is log 6 each, of tarn and mill log 2; a part of a longer name is none."""
    index = lexical(["tarn mill", "a fox"], ["Tarn Mill", "Mill", "Orla Venn", "Blue Mill", "…", "Fox"])
    assert index.named(index.token_ids("Did Orla Venn see a mill at Tarn?")).tolist() == [2, 0]
    assert index.named(index.token_ids("the MILL")).tolist() == [1]
    assert index.named(index.token_ids("tarn fox mill, fox")).tolist() == [0, 5]
    assert index.named(index.token_ids("who?")).dtype == np.int64


def test_idf_by_hand() -> None:
    index = lexical(["red mill", "red fox"], ["Blue Fox"])
    assert list(index.vocabulary) == ["blue", "fox", "mill", "red"]
    assert index.idf == pytest.approx([log(1 + 2.5 / 0.5), log(2.0), log(2.0), log(1 + 0.5 / 2.5)], rel=1e-6)
    assert index.idf.dtype == np.float32


def test_tokens_of_names() -> None:
    index = lexical(["Tarn Mill"], ["Orla Venn", "Tarn Tarn Mill", "…"])
    words = list(index.vocabulary)
    rows = [index.name_token[a:b] for a, b in zip(index.name_ptr, index.name_ptr[1:], strict=False)]
    assert [[words[i] for i in row] for row in rows] == [["orla", "venn"], ["mill", "tarn"], []]
    assert (index.name_ptr.dtype, index.name_token.dtype) == (np.int64, np.int32)


def test_overlap_of_names_by_hand() -> None:
    """The idf of tarn and mill, each in one of two passages, is log 2; that of blue, in none, log 6."""
    index = lexical(["tarn mill", "a fox"], ["Tarn Mill", "Blue Mill", "…"])
    found = index.name_overlap(np.array([2, 0, 1]), index.token_ids("Which mill?"))
    assert found == pytest.approx([0.0, 0.5, log(2) / (log(2) + log(6))], rel=1e-6)
    assert index.name_overlap(np.array([0]), index.token_ids("the MILL at Tarn")) == pytest.approx([1.0])
    assert found.dtype == np.float32
    assert index.name_overlap(np.zeros(0, dtype=np.int64), index.token_ids("mill")).shape == (0,)


def test_unknown_words() -> None:
    index = lexical(["red mill", "red fox"], ["Blue Fox"])
    assert index.token_ids("Who saw zemmer?").tolist() == []
    assert index.token_ids("").tolist() == []
    assert index.bm25(index.token_ids("zemmer")).tolist() == [0.0, 0.0]
    assert index.token_ids("fox fox zemmer BLUE").tolist() == [0, 1]
    assert index.bm25(index.token_ids("blue")).tolist() == [0.0, 0.0]  # known from a name alone


@pytest.mark.parametrize("passages", [["…", "?!"], [""]])
def test_passages_without_a_word(passages: list[str]) -> None:
    index = lexical(passages, ["Blue Fox"])
    assert index.bm25(index.token_ids("blue fox")).tolist() == [0.0] * len(passages)
    assert list(index.vocabulary) == ["blue", "fox"]


def test_nothing_at_all() -> None:
    index = lexical(["?"], [])
    assert index.vocabulary == {}
    assert (index.idf.shape, index.name_ptr.tolist(), index.name_token.shape) == ((0,), [0], (0,))
    assert index.bm25(index.token_ids("a")).tolist() == [0.0]


def test_one_wordless_passage_among_others() -> None:
    index = lexical(["red", "…", "red fox"], [])
    assert (index.bm25(index.token_ids("red")) > 0).tolist() == [True, False, True]
    assert (index.bm25(index.token_ids("fox")) > 0).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("passages", "query", "best"),
    [
        (["李明创办了海港书店。", "海港在临川。"], "书店", 0),
        (["Кафе Нур закрыто.", "Мельница сгорела."], "МЕЛЬНИЦА", 1),
        (["مقهى نور", "طاحونة تارن"], "طاحونة", 1),
        (["Cafe\u0301 Noor", "Tarn Mill"], "ＣＡＦÉ", 0),
        (["भारत की नदी", "पुराना पुल"], "पुल", 1),
    ],
)
def test_other_scripts(passages: list[str], query: str, best: int) -> None:
    """B10, B02."""
    index = lexical(passages, [])
    scores = index.bm25(index.token_ids(query))
    assert scores[best] > 0
    assert scores.argmax() == best
    assert scores[1 - best] == 0


def test_the_order_of_the_passages_moves_no_score() -> None:
    texts = ["red mill, red sea", "red fox", "a blue sea", "mill"]
    one, two = lexical(texts, ["Fox"]), lexical(texts[::-1], ["Fox"])
    for query in ("red", "sea mill", "fox"):
        assert one.bm25(one.token_ids(query)).tolist() == two.bm25(two.token_ids(query))[::-1].tolist()


def test_the_scores_are_those_of_the_library() -> None:
    texts = ["red mill, red sea", "red fox", "a blue sea", "…", "mill mill mill"]
    vocabulary, arrays = make_lexical(texts, ["Blue Fox", "Hare"])
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    ids = [[vocabulary[t] for t, _, _ in tokens(text)] for text in texts]
    library.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    assert arrays["bm25_indptr"].tolist() == library.scores["indptr"].tolist()
    assert arrays["bm25_indices"].tolist() == library.scores["indices"].tolist()
    assert arrays["bm25_data"].tolist() == library.scores["data"].tolist()


def words(texts: list[str], names: list[str]) -> Words:
    return merge_words(NO_WORDS, np.zeros(0, np.int64), dict(enumerate(texts)), [], names)


TEXTS = st.lists(st.text("ab 李c", max_size=6), min_size=1, max_size=5)


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.sets(st.integers(0, 4)))
def test_words_carried_over_are_those_counted_anew(
    old: list[str], new: list[str], old_names: list[str], names: list[str], kept: set[int]
) -> None:
    """Some old texts stay, behind the new ones; some names stay, and some stand there twice."""
    stay = sorted(i for i in kept if i < len(old))
    moved = np.array([len(new) + stay.index(i) if i in stay else -1 for i in range(len(old))])
    names = [*names, *old_names[::2]]
    found = merge_words(words(old, old_names), moved, dict(enumerate(new)), old_names, names)
    expected = words([*new, *(old[i] for i in stay)], names)
    size = len(new) + len(stay)
    assert found.vocabulary == expected.vocabulary
    for name, array in lexical_arrays(expected, size).items():
        assert lexical_arrays(found, size)[name].tolist() == array.tolist()
        assert lexical_arrays(found, size)[name].dtype == array.dtype
