from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gfm.compat.gfm_entity import EntityGNNRetriever
from gfm.index.index import GraphIndex
from gfm.retrieve.dense import DenseRetriever
from gfm.retrieve.gnn import GNNRetriever
from gfm.types import GfmError

SEA = "Which sea is near the birthplace of the builder of Tarn Mill?"
# Who is mentioned where in Corpus Z.
MENTIONS = {
    "p1": {"Tarn Mill", "Orla Venn"},
    "p2": {"Orla Venn", "Port Isk"},
    "p3": {"Port Isk", "Halder Sea"},
    "p4": {"Halder Sea", "winter"},
    "p5": set(),
}


@pytest.fixture
def z(z_index: Path) -> GraphIndex:
    return GraphIndex.open(z_index)


@pytest.mark.parametrize("best", [1, 2, 3, 20])
def test_the_mean_of_inverse_document_frequency_over_the_best_entities(
    z: GraphIndex, untrained: Path, best: int
) -> None:
    ours = EntityGNNRetriever.from_pretrained(z, untrained, best_entities=best).retrieve(SEA)
    theirs = GNNRetriever.from_pretrained(z, untrained).retrieve(SEA)
    names = [h.item.name for h in theirs.entities]
    assert len(names) == 5
    df = {name: sum(name in row for row in MENTIONS.values()) for name in names}
    score = {p: sum(1 / df[n] for n in names[:best] if n in row) / best for p, row in MENTIONS.items()}
    order = sorted(score, key=lambda p: (-score[p], p))
    assert [(h.item.id, h.score) for h in ours.passages] == [(p, pytest.approx(score[p])) for p in order]
    assert (ours.score_unit, ours.trace["retriever"]) == ("mean 1/df of the best entities", "gfm_entity")


def test_everything_else_is_the_learnt_retrievers(z: GraphIndex, untrained: Path) -> None:
    ours = EntityGNNRetriever.from_pretrained(z, untrained).retrieve(SEA)
    theirs = GNNRetriever.from_pretrained(z, untrained).retrieve(SEA)
    assert (ours.entities, ours.triples) == (theirs.entities, theirs.triples)
    assert ours.trace == {**theirs.trace, "retriever": "gfm_entity"}
    assert ours.seconds.keys() == theirs.seconds.keys()
    assert set(ours.paths) == {"p1", "p2", "p3", "p4"}
    assert all(path[-1].target == passage for passage, path in ours.paths.items())


def test_nothing_that_tells_passages_apart_is_said(tmp_path: Path, untrained: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "It was late."}\n{"_id": "b", "text": "Jam."}\n')
    index = GraphIndex.build(tmp_path / "corpus.jsonl", tmp_path / "i", encoder="hashing:64", extractor="none")
    result = EntityGNNRetriever.from_pretrained(index, untrained).retrieve("Jam?")
    assert result.passages == DenseRetriever(index).retrieve("Jam?").passages
    assert (result.score_unit, result.trace["fallback"]) == ("cosine", "dense")
    assert result.trace["retriever"] == "gfm_entity"


@pytest.mark.parametrize("best", [0, -1, 2.5, True])
def test_a_number_of_entities_that_cannot_be_meant(z: GraphIndex, untrained: Path, best: Any) -> None:
    with pytest.raises(GfmError, match="gfm_entity best_entities: expected a whole number of 1 or more, found"):
        EntityGNNRetriever.from_pretrained(z, untrained, best_entities=best)
