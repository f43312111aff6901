from __future__ import annotations

from math import log

import numpy as np
import pytest

from gfm.index.lexical import Lexical, make_lexical


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
