"""Answers over a bare graph: who starred in what, worked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gfm.eval.answers import METRICS, RETRIEVERS, bench_answers, draw, held_out, read_answer_questions, table
from gfm.eval.settings import entries
from gfm.exchange.exchange import import_graph
from gfm.index.index import GraphIndex
from gfm.retrieve.answers import answer_entities
from gfm.retrievers import load_retriever
from gfm.types import GfmError, Query
from tests.conftest import Gfm, write_jsonl

FACTS = [
    ("Red Fox", "starred", "Orla Venn"),
    ("Blue Fox", "starred", "Orla Venn"),
    ("Blue Fox", "in genre", "Drama"),
]
QUESTIONS: list[dict[str, Any]] = [
    {"_id": "a", "text": "what films did Orla Venn act in", "answers": ["Blue Fox", "red fox"], "hops": 1},
    {"_id": "b", "text": "in which genres were the films of Orla Venn", "answers": ["Drama", "Opera"], "hops": 2},
    {"_id": "c", "text": "who acts with Orla Venn in Red Fox", "answers": ["Orla Venn"], "hops": 1},
]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the facts, the questions and an index of the facts, which name no passage."""
    folder = tmp_path_factory.mktemp("films")
    keys = ("head", "relation", "tail")
    write_jsonl(folder / "triples.jsonl", [dict(zip(keys, fact, strict=True)) for fact in FACTS])
    write_jsonl(folder / "queries_1.jsonl", QUESTIONS[:1])
    write_jsonl(folder / "queries_2.jsonl", QUESTIONS[1:])
    import_graph(folder / "triples.jsonl", folder / "index", encoder="hashing:64")
    return folder


def answers_of(text: str, retriever: str, films: Path, top_k: int = 9) -> list[str]:
    found: Any = load_retriever(retriever, GraphIndex.open(films / "index"))
    hits = answer_entities(found, text, top_k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert sorted(-hit.score for hit in hits) == [-hit.score for hit in hits]
    return [hit.item.name for hit in hits]


def test_each_head_of_a_bare_graph_is_a_source_of_its_facts(films: Path) -> None:
    index = GraphIndex.open(films / "index")
    assert index.passage_ids == ["entity:Blue Fox", "entity:Red Fox"]
    assert index.passage(0).text == "Blue Fox in genre Drama.\nBlue Fox starred Orla Venn."


@pytest.mark.parametrize("retriever", ["gfm", "gfm_entity", "ppr", "ppr_entity"])
def test_what_the_question_names_is_never_an_answer(films: Path, retriever: str) -> None:
    found = answers_of("What did Orla Venn act in?", retriever, films)
    assert "Orla Venn" not in found
    assert {"Red Fox", "Blue Fox"} <= set(found)
    assert answers_of("What did Orla Venn act in?", retriever, films, top_k=1) == found[:1]


def test_a_walk_from_the_named_entity_by_hand(films: Path) -> None:
    """From Orla Venn half of the mass goes to each film; Drama is a step farther."""
    assert answers_of("Orla Venn?", "ppr_entity", films) == ["Blue Fox", "Red Fox", "Drama"]
    assert answers_of("who?", "ppr_entity", films) == []


def test_figures_by_hand(films: Path) -> None:
    """ppr_entity ranks Blue Fox, Red Fox, Drama for a and b; c asks for what it names itself."""
    index = GraphIndex.open(films / "index")
    groups = draw(read_answer_questions(films), None, 0)
    report = bench_answers(index, groups, entries("ppr_entity"))
    of = report.retrievers["ppr_entity"]
    assert {h: [of[h][m]["mean"] for m in METRICS] for h in of} == {1: [0.5, 0.5], 2: [0.0, pytest.approx(1 / 3)]}
    assert (report.questions, report.answers, report.unknown, report.named) == ({1: 2, 2: 1}, 5, 1, 1)
    shown = table(report)
    assert shown.header == ["%", "Hits@1 (1)", "MRR (1)", "Hits@1 (2)", "MRR (2)"]
    assert shown.rows == [["ppr_entity", "50.0", "50.0", "0.0", "33.3"]]
    assert shown.notes[-1].startswith("Of 5 answers 1 are no entity of the index and 1 stand in their question")


def test_a_retriever_without_entities_is_refused(films: Path) -> None:
    with pytest.raises(GfmError, match=r"bm25: ranks no entities; expected gfm"):
        bench_answers(GraphIndex.open(films / "index"), {1: [Query("a", "x", {"answers": ["y"]})]}, entries("bm25"))


def test_a_draw_is_seeded_and_split_by_hops() -> None:
    questions = [Query(f"q{i}", "?", {"hops": 1 + i % 2}) for i in range(20)]
    drawn = draw(questions, 4, 3)
    assert {h: len(row) for h, row in drawn.items()} == {1: 4, 2: 4}
    assert drawn == draw(questions[::-1], 4, 3) != draw(questions, 4, 4)
    assert list(draw([Query("q", "?")], None, 0)) == [0]


def test_half_of_all_questions_are_held_out_by_their_ids_alone() -> None:
    ids = [f"3hop-dev-{i}" for i in range(2000)]
    kept = [held_out(Query(i, "?")) for i in ids]
    assert 0.47 < sum(kept) / len(kept) < 0.53
    assert [held_out(Query(i, "other text", {"hops": 3})) for i in ids] == kept
    assert [held_out(Query(x, "?")) for x in ("a", "b", "c", "d")] == [True, False, False, False]


@pytest.mark.parametrize("answers", [None, [], "Drama", [3]])
def test_questions_without_names_as_answers_are_refused(tmp_path: Path, answers: object) -> None:
    file = write_jsonl(tmp_path / "queries.jsonl", [{"_id": "a", "text": "who?", "answers": answers}])
    with pytest.raises(GfmError, match=r'queries\.jsonl: question \'a\': expected "answers": \["NAME", …\], found'):
        read_answer_questions(file)


def test_two_files_with_one_id_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"expected files queries\*\.jsonl"):
        read_answer_questions(tmp_path)
    for name in ("queries1.jsonl", "queries2.jsonl"):
        write_jsonl(tmp_path / name, [QUESTIONS[0]])
    with pytest.raises(GfmError, match=r"queries2\.jsonl: the question id 'a' stands in another file too"):
        read_answer_questions(tmp_path)


def test_the_command(gfm: Gfm, films: Path, tmp_path: Path) -> None:
    command: Sequence[object] = ("answers", films / "index", films, "--retrievers", "ppr_entity,gfm")
    status, output, errors = gfm(*command)
    assert (status, errors) == (0, "asking ppr_entity\nasking gfm\n")
    assert "Questions, by the hops in brackets: 2 of 1 hop, 1 of 2 hops." in output
    assert max(map(len, output.split("\n"))) <= 80
    report = json.loads(gfm(*command, "--held-out", "--json")[1])
    assert report["questions"] == {"1": 1}
    assert set(report["retrievers"]["gfm"]["1"]) == {*METRICS, "ms"}


def test_all_default_retrievers_rank_entities(films: Path) -> None:
    report = bench_answers(GraphIndex.open(films / "index"), draw(read_answer_questions(films), 1, 0), RETRIEVERS)
    assert [*report.retrievers] == ["gfm", "gfm walk", "ppr", "ppr_entity"]
    assert report.retrievers["gfm walk"][1]["ms"] > 0
