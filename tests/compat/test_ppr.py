from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfm.compat.ppr import EntityPPRRetriever, PPRRetriever
from gfm.index.index import GraphIndex
from gfm.retrieve.dense import DenseRetriever
from gfm.text.encoder import HashingEncoder
from gfm.types import GfmError

ChosenIndex = Callable[..., GraphIndex]
QUESTION = "Who?"
TEXTS = {"p1": "Tarn knows Venn.", "p2": "Venn likes Isk.", "p3": "Jam keeps."}
TRIPLES = [("Tarn", "knows", "Venn", "p1"), ("Venn", "likes", "Isk", "p2")]
# Cosines with the question: facts 1 and 0; passages 1, 0.6 and 0.
VECTORS = {
    QUESTION: [1, 0],
    "Tarn knows Venn": [1, 0],
    "Venn likes Isk": [0, 1],
    "Tarn knows Venn.": [1, 0],
    "Venn likes Isk.": [0.6, 0.8],
    "Jam keeps.": [0, 1],
    "Tarn": [0, 0, 1],
    "Venn": [0, 0, 0, 1],
    "Isk": [0, 0, 0, 0, 1],
}


class ChosenEncoder(HashingEncoder):
    """Knows the vectors of some texts; all others lie on an axis of their own."""

    def __init__(self, chosen: Mapping[str, Sequence[float]]):
        self._chosen = chosen  # first: the fingerprint encodes a probe
        super().__init__(8)

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        rows = np.zeros((len(texts), 8), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = self._chosen.get(text, [0, 0, 0, 0, 0, 0, 0, 1])
            row[: len(known)] = known
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def chosen_index(tmp_path: Path) -> Callable[..., GraphIndex]:
    """Builds an index of texts (id → text), triples (head, relation, tail, passage id) and vectors (text → vector)."""

    def make(
        texts: Mapping[str, str],
        triples: Sequence[tuple[str, str, str, str]],
        vectors: Mapping[str, Sequence[float]],
        titles: Mapping[str, str] | None = None,
    ) -> GraphIndex:
        rows = [{"_id": name, "title": (titles or {}).get(name, ""), "text": text} for name, text in texts.items()]
        (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        links = [dict(zip(("head", "relation", "tail", "passage_id"), row, strict=True)) for row in triples]
        (tmp_path / "triples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in links), encoding="utf-8")
        return GraphIndex.build(
            tmp_path / "corpus.jsonl",
            tmp_path / "index",
            encoder=ChosenEncoder(vectors),
            triples=tmp_path / "triples.jsonl",
        )

    return make


@pytest.fixture
def index(chosen_index: ChosenIndex) -> GraphIndex:
    return chosen_index(TEXTS, TRIPLES, VECTORS)


def solved(restart: list[float]) -> np.ndarray:
    """Mass of Isk, Tarn, Venn, p1, p2, p3 for a walk of damping 1/2: (I - P / 2) x = restart / 2, scaled to sum 1.

    Tarn has the neighbours Venn and p1, Venn has Tarn, Isk, p1 and p2, Isk has Venn and p2; p3 has none.
    """
    links = np.zeros((6, 6))
    for a, b in [(1, 2), (2, 0), (3, 1), (3, 2), (4, 2), (4, 0)]:
        links[a, b] = links[b, a] = 1
    step = links / np.maximum(links.sum(axis=0), 1)
    rank: np.ndarray = np.linalg.solve(np.eye(6) - step / 2, np.array(restart) / 2)
    return rank / rank.sum()


def test_by_hand(index: GraphIndex) -> None:
    """Starts: Tarn 1; Venn (1 + 0) / 2 facts / 2 passages; Isk 0. Passages: 0.05 · 1, 0.6 and 0."""
    assert [index.entity(i).name for i in range(3)] == ["Isk", "Tarn", "Venn"]
    result = PPRRetriever(index).retrieve(QUESTION)
    rank = solved([0, 1, 0.25, 0.05, 0.03, 0])
    assert [(h.item.id, h.score) for h in result.passages] == [
        ("p1", pytest.approx(rank[3])),
        ("p2", pytest.approx(rank[4])),
        ("p3", 0.0),
    ]
    assert [(h.item.name, h.score) for h in result.entities] == [
        ("Tarn", pytest.approx(rank[1])),
        ("Venn", pytest.approx(rank[2])),
        ("Isk", pytest.approx(rank[0])),
    ]
    assert result.triples == []
    assert (result.score_unit, result.trace) == ("PageRank", {"retriever": "ppr", "seeds": ["Tarn", "Venn", "Isk"]})
    assert set(result.seconds) == {"encode", "seeds", "pagerank", "rank"}


def test_settings(index: GraphIndex) -> None:
    """With one fact and one phrase it starts from Tarn (1 / 1 passage) alone of the entities."""
    result = PPRRetriever(index, facts=1, phrases=1, passage_weight=0.5).retrieve(QUESTION, top_k=2)
    rank = solved([0, 1, 0, 0.5, 0.3, 0])
    assert [h.score for h in result.passages] == pytest.approx([rank[3], rank[4]])
    assert result.trace["seeds"] == ["Tarn"]
    lazy = PPRRetriever(index, damping=1e-6, passage_weight=0.1).retrieve(QUESTION)
    assert [h.score for h in lazy.passages] == pytest.approx([0.1 / 1.41, 0.06 / 1.41, 0.0], abs=1e-5)


def test_facts_are_scaled_over_all_facts_not_over_the_nearest(chosen_index: ChosenIndex) -> None:
    """Cosines 1, 0.6 and -1: the second fact starts with 0.8 also where only two facts are taken."""
    texts = {"p1": "A red.", "p2": "B red.", "p3": "C red."}
    triples = [("Tarn", "knows", "Venn", "p1"), ("Isk", "likes", "Orla", "p2"), ("Mo", "sees", "Pell", "p3")]
    vectors = {
        QUESTION: [1, 0],
        "Tarn knows Venn": [1, 0],
        "Isk likes Orla": [0.6, 0.8],
        "Mo sees Pell": [-1, 0],
        **{name: np.eye(8)[i].tolist() for i, name in enumerate(["Tarn", "Venn", "Isk", "Orla", "Mo", "Pell"])},
    }
    index = chosen_index(texts, triples, vectors)
    found = PPRRetriever(index, facts=2, damping=1e-6, passage_weight=1e-6).retrieve(QUESTION)
    assert [(h.item.name, round(h.score * 3.6, 3)) for h in found.entities] == [
        ("Tarn", 1.0),
        ("Venn", 1.0),
        ("Isk", 0.8),
        ("Orla", 0.8),
    ]


def test_equal_scores_are_in_order_of_ids(chosen_index: ChosenIndex) -> None:
    """A01: all vectors are equal, so every cosine is, and no minimum lies below the maximum."""
    triples = [("Tarn", "knows", "Venn", name) for name in ("p1", "p2", "p3")]
    result = PPRRetriever(chosen_index(TEXTS, triples, {})).retrieve(QUESTION)
    assert [h.item.id for h in result.passages] == ["p1", "p2", "p3"]
    assert np.ptp([h.score for h in result.passages]) < 1e-12
    assert np.isfinite([h.score for h in result.passages]).all()


def test_without_entities_it_is_the_dense_order(chosen_index: ChosenIndex) -> None:
    """A01: a walk that cannot leave its passage stays with the cosine."""
    index = chosen_index(TEXTS, [("Tarn", "is", "Tarn", "p3")], VECTORS)
    assert index.graph.num_facts == 0
    found = [[h.item.id for h in r(index).retrieve(QUESTION).passages] for r in (PPRRetriever, DenseRetriever)]
    assert found[0] == found[1] == ["p1", "p2", "p3"]


def test_the_same_twice(index: GraphIndex) -> None:
    retriever = PPRRetriever(index)
    assert retriever.retrieve(QUESTION).passages == retriever.retrieve(QUESTION).passages
    assert retriever.retrieve(QUESTION).passages == PPRRetriever(index).retrieve(QUESTION).passages


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"facts": 0}, "ppr facts: expected a whole number of 1 or more, found 0"),
        ({"phrases": 2.5}, "ppr phrases: expected a whole number of 1 or more, found 2.5"),
        ({"phrases": True}, "ppr phrases"),
        ({"passage_weight": 0.0}, "ppr passage_weight: expected a number above 0"),
        ({"passage_weight": float("nan")}, "ppr passage_weight"),
        ({"damping": 0.0}, "ppr damping: expected a share above 0 and below 1, found 0.0"),
        ({"damping": 1.0}, "ppr damping"),
    ],
)
def test_settings_that_cannot_be_meant(index: GraphIndex, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GfmError, match=message):
        PPRRetriever(index, **settings)


# ---------------------------------------------------------------- over entities alone


MILL_NAMES = ["Tarn", "Venn", "Isk", "Tarn Mill", "Orla"]
APART = {name: np.eye(8)[i].tolist() for i, name in enumerate(MILL_NAMES)}


@pytest.fixture
def mill(chosen_index: ChosenIndex) -> GraphIndex:
    """Tarn and Isk are in one passage each, Venn in two; Tarn Mill is the title of a passage without a fact."""
    return chosen_index({**TEXTS, "p4": "It stands."}, TRIPLES, APART, titles={"p4": "Tarn Mill"})


def names(mill: GraphIndex, text: str) -> list[str]:
    return [mill.entity(int(i)).name for i in sorted(mill.lexical.named(mill.lexical.token_ids(text)))]


def test_entities_by_hand(mill: GraphIndex) -> None:
    """Along Tarn–Venn–Isk from Tarn the mass is 7/12, 4/12 and 1/12; each passage states one of the two links."""
    result = EntityPPRRetriever(mill).retrieve("What does Tarn do?")
    assert [(h.item.id, h.score) for h in result.passages] == [
        ("p1", pytest.approx(11 / 12)),
        ("p2", pytest.approx(5 / 12)),
    ]
    assert [(h.item.name, h.score) for h in result.entities] == [("Tarn", pytest.approx(7 / 12))]
    assert result.trace == {"retriever": "ppr_entity", "fallback": None, "seeds": ["Tarn"]}
    assert result.score_unit == "PageRank"
    assert set(result.seconds) == {"seeds", "pagerank", "rank"}  # the question is not encoded


def test_a_rare_name_starts_with_more(mill: GraphIndex) -> None:
    """Tarn 1, Venn 1/2: with hardly a step the mass is 2/3 and 1/3."""
    result = EntityPPRRetriever(mill, damping=1e-6).retrieve("Tarn or Venn?")
    assert [(h.item.name, h.score) for h in result.entities] == [
        ("Tarn", pytest.approx(2 / 3, abs=1e-5)),
        ("Venn", pytest.approx(1 / 3, abs=1e-5)),
    ]


def test_each_triple_that_a_passage_states_counts(chosen_index: ChosenIndex) -> None:
    """p1 states both links and p2 one; the walk does not see passages."""
    index = chosen_index(TEXTS, [*TRIPLES, ("Venn", "likes", "Isk", "p1")], APART)
    result = EntityPPRRetriever(index).retrieve("What does Tarn do?")
    assert [(h.item.id, h.score) for h in result.passages] == [
        ("p1", pytest.approx(16 / 12)),
        ("p2", pytest.approx(5 / 12)),
    ]


def test_synonyms_are_walked_by_their_cosine(chosen_index: ChosenIndex) -> None:
    """Isk has a link to Venn and a synonym of cosine 0.96, Orla: of what walks on from Isk, 0.96 / 1.96 goes there."""
    triples = [("Venn", "likes", "Isk", "p1"), ("Orla", "sees", "Mo", "p2")]
    vectors = {"Isk": [0.96, 0.28], "Orla": [1, 0], "Venn": [0, 0, 1], "Mo": [0, 0, 0, 1]}
    index = chosen_index({"p1": "One.", "p2": "Two."}, triples, vectors)
    assert index.graph.edge_weight.max() == 1.0
    result = EntityPPRRetriever(index, damping=0.01).retrieve("Isk?")
    assert [h.item.id for h in result.passages] == ["p1", "p2"]
    assert result.passages[1].score == pytest.approx(0.01 * 0.96 / 1.96, rel=0.02)


def test_what_a_question_names(mill: GraphIndex) -> None:
    """The words of a longer name that stands there too do not name another one."""
    assert names(mill, "Where is Tarn?") == ["Tarn"]
    assert names(mill, "where is the TARN MILL?") == ["Tarn Mill"]
    assert names(mill, "Venn of Tarn Mill") == ["Tarn Mill", "Venn"]
    assert names(mill, "Which mill?") == []


@pytest.mark.parametrize("question", ["Which mill?", "Where is Tarn Mill?"])
def test_a03_nothing_to_walk_from_is_said(mill: GraphIndex, question: str, caplog: pytest.LogCaptureFixture) -> None:
    """No name; or a name without a fact."""
    with caplog.at_level(logging.WARNING):
        result = EntityPPRRetriever(mill).retrieve(question, top_k=3)
    assert result.passages == DenseRetriever(mill).retrieve(question, top_k=3).passages
    assert (result.score_unit, result.trace["fallback"]) == ("cosine", "dense")
    assert "query 'query': it names no entity of a fact" in caplog.text
    assert "encode" in result.seconds


@pytest.mark.parametrize("damping", [0.0, 1.0, -0.5, float("nan")])
def test_a_damping_of_entities_that_cannot_be_meant(mill: GraphIndex, damping: float) -> None:
    with pytest.raises(GfmError, match="ppr_entity damping: expected a share above 0 and below 1"):
        EntityPPRRetriever(mill, damping=damping)
