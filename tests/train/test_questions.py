from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from gfm.index.index import GraphIndex
from gfm.train.questions import make_questions
from gfm.types import GfmError, Query


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, mills: Path) -> GraphIndex:
    folder = tmp_path_factory.mktemp("made")
    return GraphIndex.build(
        mills / "corpus.jsonl", folder / "index", encoder="hashing:64", triples=mills / "triples.jsonl"
    )


def of_kind(queries: Sequence[Query], kind: str) -> list[Query]:
    return [q for q in queries if q.metadata["type"] == kind]


def test_equal_seeds_make_equal_questions(index: GraphIndex) -> None:
    first, second = make_questions(index, 30, 0), make_questions(index, 30, 0)
    assert first == second
    assert make_questions(index, 30, 1) != first
    queries, qrels = first
    assert [q.id for q in queries] == [f"made-{i}" for i in range(30)]
    assert len({q.text for q in queries}) == 30
    assert qrels.keys() == {q.id for q in queries}


def test_a_chain_names_its_start_and_hides_the_bridge_and_the_answer(index: GraphIndex) -> None:
    """Mill → builder → town: the two passages of the builder's mill and of the builder's birth are gold."""
    queries, qrels = make_questions(index, 40, 0)
    chains = of_kind(queries, "chain_2")
    assert chains
    for query in chains:
        (mill, _, builder), (person, _, town) = query.metadata["evidences"]
        assert builder == person
        assert query.metadata["answer"] == town
        assert mill in query.text
        assert builder not in query.text
        assert town not in query.text
        number = re.sub(r"\D", "", next(iter(qrels[query.id])))
        assert qrels[query.id] == {f"m{number}": 1, f"p{number}": 1}
        assert any(word in query.text for word in ("built", "born"))


def test_a_single_fact_has_one_gold_document(index: GraphIndex) -> None:
    queries, qrels = make_questions(index, 40, 0)
    singles = of_kind(queries, "one_hop")
    assert singles
    for query in singles:
        (head, relation, tail) = query.metadata["evidences"][0]
        assert query.metadata["answer"] in (head, tail)
        assert (head in query.text) != (tail in query.text)
        assert any(word in query.text for word in relation.split())
        assert len(qrels[query.id]) == 1


def test_a_comparison_names_two_things_of_which_the_like_is_said(index: GraphIndex) -> None:
    queries, qrels = make_questions(index, 40, 0)
    compared = of_kind(queries, "comparison")
    assert compared
    for query in compared:
        one, two = query.metadata["evidences"]
        assert one[1] == two[1]  # of mills and people drawn at random, the nearest fact is one of the same relation
        assert one[0] in query.text or one[2] in query.text
        assert two[0] in query.text or two[2] in query.text
        assert len(qrels[query.id]) == 2


def test_two_chains_meet(index: GraphIndex) -> None:
    queries, qrels = make_questions(index, 40, 0)
    for query in of_kind(queries, "meeting"):
        assert len(qrels[query.id]) == 2
        counts = Counter(name for head, _, tail in query.metadata["evidences"] for name in (head, tail))
        bridge = next(name for name, count in counts.items() if count == 2)
        assert bridge not in query.text


def test_an_index_with_too_few_facts_is_an_error(tmp_path: Path, index: GraphIndex) -> None:
    with pytest.raises(GfmError, match=r"expected facts that make 5000 questions, found enough for \d+; ask for fewer"):
        make_questions(index, 5000, 0)
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "It was late."}\n', encoding="utf-8")
    bare = GraphIndex.build(tmp_path / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", extractor="none")
    with pytest.raises(GfmError, match="found enough for 0"):
        make_questions(bare, 1, 0)


def test_untitled_text_serves_too(tmp_path: Path) -> None:
    rows = [
        '{"_id": "a", "text": "Tarn Mill was built by Orla Venn."}',
        '{"_id": "b", "text": "Orla Venn was born in Port Isk."}',
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "triples.jsonl").write_text(
        '{"head": "Tarn Mill", "relation": "built by", "tail": "Orla Venn", "passage_id": "a"}\n'
        '{"head": "Orla Venn", "relation": "born in", "tail": "Port Isk", "passage_id": "b"}\n',
        encoding="utf-8",
    )
    index = GraphIndex.build(
        tmp_path / "corpus.jsonl", tmp_path / "index", encoder="hashing:64", triples=tmp_path / "triples.jsonl"
    )
    queries, qrels = make_questions(index, 4, 0)
    assert {frozenset(gold) for gold in qrels.values()} <= {frozenset("a"), frozenset("b"), frozenset("ab")}
    assert len(queries) == 4
