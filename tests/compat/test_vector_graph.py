from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from gfm.compat.vector_graph import VectorGraphRetriever
from gfm.index.index import GraphIndex
from gfm.types import GfmError, Retrieval

MakeIndex = Callable[..., GraphIndex]

# A chain of acquaintances, and two strangers whose passage reads like the question.
TEXTS = {"p1": "one", "p2": "two", "p3": "three", "p4": "four", "p5": "five", "p6": "six"}
CHAIN = [
    ("Ann", "knows", "Bob", "p1"),
    ("Bob", "knows", "Cid", "p2"),
    ("Cid", "knows", "Dan", "p3"),
    ("Dan", "knows", "Eve", "p4"),
    ("Xia", "likes", "Yan", "p5"),
]
COSINE = {
    "Ann knows Bob": 0.9,
    "Bob knows Cid": 0.5,
    "Cid knows Dan": 0.8,
    "Dan knows Eve": 0.7,
    "Xia likes Yan": 0.1,
    "five": 0.9,
    "four": 0.6,
    "three": 0.3,
    "two": 0.2,
    "one": 0.1,
}


@pytest.fixture(scope="module")
def chain(placed_index: MakeIndex) -> GraphIndex:
    return placed_index(TEXTS, CHAIN, COSINE)


def ids(result: Retrieval) -> list[str]:
    return [hit.item.id for hit in result.passages]


def test_passages_come_in_the_order_of_their_relations_and_are_padded(chain: GraphIndex) -> None:
    """The nearest relation is Ann's, which the question names too; one step from it is that of Bob and Cid."""
    result = VectorGraphRetriever(chain, near_relations=1).retrieve("Whom does Ann know?", top_k=4)
    assert ids(result) == ["p1", "p2", "p5", "p4"]
    assert [hit.score for hit in result.passages] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert result.score_unit == "reciprocal rank"
    assert [(h.item.text, round(h.score, 6)) for h in result.triples] == [
        ("Ann knows Bob", 0.9),
        ("Bob knows Cid", 0.5),
    ]
    assert [(h.item.name, round(h.score, 6)) for h in result.entities] == [("Ann", 1.0)]
    assert result.trace == {
        "retriever": "vector_graph",
        "fallback": None,
        "linked_entities": ["Ann"],
        "start_relations": 1,
        "expanded_relations": 2,
        "kept_relations": 2,
        "relations": ["Ann knows Bob", "Bob knows Cid"],
        "chosen_by": "cosine",
        "padded": ["p5", "p4"],
        "reach": "2 of 5 facts",
    }
    assert set(result.seconds) == {"encode", "search", "expand", "choose", "passages"}


@pytest.mark.parametrize(
    ("degree", "relations"),
    [
        (0, ["Ann knows Bob"]),
        (1, ["Ann knows Bob", "Bob knows Cid"]),
        (2, ["Ann knows Bob", "Cid knows Dan", "Bob knows Cid"]),
        (3, ["Ann knows Bob", "Cid knows Dan", "Dan knows Eve", "Bob knows Cid"]),
        (9, ["Ann knows Bob", "Cid knows Dan", "Dan knows Eve", "Bob knows Cid"]),
    ],
)
def test_a_degree_is_one_step_from_relations_to_relations(chain: GraphIndex, degree: int, relations: list[str]) -> None:
    result = VectorGraphRetriever(chain, near_relations=1, degree=degree).retrieve("Whom does Ann know?")
    assert result.trace["relations"] == relations


def test_relations_are_walked_in_both_directions(chain: GraphIndex) -> None:
    retriever = VectorGraphRetriever(chain, near_relations=0, degree=0)
    assert retriever.retrieve("Who is Bob?").trace["relations"] == ["Ann knows Bob", "Bob knows Cid"]
    assert retriever.retrieve("Who is Eve?").trace["relations"] == ["Dan knows Eve"]


def test_the_start_is_the_near_relations_and_those_of_the_named(chain: GraphIndex) -> None:
    retriever = VectorGraphRetriever(chain, near_relations=2, degree=0)
    trace = retriever.retrieve("Do Eve and Yan agree?").trace
    assert trace["linked_entities"] == ["Eve", "Yan"]
    assert trace["relations"] == ["Ann knows Bob", "Cid knows Dan", "Dan knows Eve", "Xia likes Yan"]


def test_too_many_relations_are_cut_to_the_nearest(chain: GraphIndex) -> None:
    trace = VectorGraphRetriever(chain, max_relations=3).retrieve("Who?").trace
    assert (trace["expanded_relations"], trace["kept_relations"]) == (5, 3)
    assert trace["relations"] == ["Ann knows Bob", "Cid knows Dan", "Dan knows Eve"]


def test_so_many_relations_are_picked(chain: GraphIndex) -> None:
    assert ids(VectorGraphRetriever(chain, picked=2).retrieve("Who?", top_k=3)) == ["p1", "p3", "p5"]
    assert ids(VectorGraphRetriever(chain, picked=9).retrieve("Who?", top_k=9)) == ["p1", "p3", "p4", "p2", "p5", "p6"]


def test_relations_of_equal_cosine_come_by_number(placed_index: MakeIndex) -> None:
    index = placed_index(
        {"a": "x", "b": "y", "c": "z"}, [("K", "r", "L", "c"), ("M", "r", "N", "b"), ("O", "r", "P", "a")]
    )
    result = VectorGraphRetriever(index).retrieve("Who?")
    assert result.trace["relations"] == index.fact_texts
    assert [hit.item.text for hit in result.triples] == index.fact_texts


def test_all_sources_of_a_relation_count_and_each_once(placed_index: MakeIndex) -> None:
    triples = [("Ann", "knows", "Bob", "p3"), ("Ann", "knows", "Bob", "p1"), ("Bob", "knows", "Cid", "p1")]
    index = placed_index(TEXTS, triples, {**COSINE, "Bob knows Cid": 0.2})
    result = VectorGraphRetriever(index).retrieve("Who?", top_k=3)
    assert ids(result) == ["p1", "p3", "p5"]
    assert ids(VectorGraphRetriever(index).retrieve("Who?", top_k=1)) == ["p1"]


def test_entities_near_a_name_join_above_the_threshold(placed_index: MakeIndex) -> None:
    """Anna shares all axes with Ann but the question's: cosine √(1 - 0.3²) = 0.954; that of Annie is √(1 - 0.5²)."""
    triples = [("Ann", "knows", "Bob", "p1"), ("Anna", "knows", "Cid", "p2"), ("Annie", "knows", "Dan", "p3")]
    index = placed_index(TEXTS, triples, {"Anna": 0.3, "Annie": 0.5}, like={"Anna": "Ann", "Annie": "Ann"})

    def found(**settings: Any) -> list[tuple[str, float]]:
        retriever = VectorGraphRetriever(index, near_relations=0, degree=0, **settings)
        return [(hit.item.name, round(hit.score, 3)) for hit in retriever.retrieve("Who is Ann?").entities]

    assert found() == [("Ann", 1.0), ("Anna", 0.954)]
    assert found(above_cosine=0.8) == [("Ann", 1.0), ("Anna", 0.954), ("Annie", 0.866)]
    assert found(near_entities=1) == [("Ann", 1.0)]
    assert found(near_entities=0) == []
    row = index.entity_vectors.rows[[index.entity_number("anna"), index.entity_number("ann")]]  # type: ignore[index]
    equal = float(index.entity_vectors.cosine(np.array([index.entity_number("anna")]), row[1])[0])
    assert found(above_cosine=equal) == [("Ann", 1.0)]  # above, not from it on


def test_names_stand_in_the_question_whole_the_longest_first(placed_index: MakeIndex) -> None:
    triples = [
        ("Port Isk", "on", "Halder Sea", "p1"),
        ("Isk", "of", "Sea", "p2"),
        ("Mercury (planet)", "near", "Sun", "p3"),
        ("Mercury (element)", "in", "Lamps", "p4"),
        ("李明", "创办", "海港书店", "p5"),
    ]
    retriever = VectorGraphRetriever(placed_index(TEXTS, triples))

    def named(question: str) -> list[str]:
        return list(retriever.retrieve(question).trace["linked_entities"])

    assert named("Is PORT ISK on the Halder Sea?") == ["Port Isk", "Halder Sea"]
    assert named("Where is Isk's port?") == ["Isk"]
    assert named("Is Mercury (planet) hot?") == ["Mercury (planet)"]
    assert named("Is Mercury hot?") == ["Mercury (element)", "Mercury (planet)"]
    assert named("谁创办了海港书店？") == ["海港书店"]
    assert named("who knows the sea?") == []


def chosen_by(ids_of: Callable[[Sequence[tuple[int, str]]], Any]) -> Callable[[str, Sequence[tuple[int, str]]], Any]:
    return lambda question, relations: ids_of(relations)


def test_a_chooser_sees_the_question_and_the_relations_nearest_first(chain: GraphIndex) -> None:
    seen: list[Any] = []

    def choose(question: str, relations: Sequence[tuple[int, str]]) -> list[int]:
        seen.extend([question, *relations])
        return [3, 1, 3]

    result = VectorGraphRetriever(chain, chooser=choose).retrieve("Who?", top_k=3)
    texts = ["Ann knows Bob", "Cid knows Dan", "Dan knows Eve", "Bob knows Cid", "Xia likes Yan"]
    assert seen == ["Who?", *((chain.fact_texts.index(text), text) for text in texts)]
    assert result.trace["relations"] == [chain.fact_texts[3], chain.fact_texts[1]]
    assert (ids(result), result.trace["padded"]) == (["p4", "p2", "p5"], ["p5"])
    assert result.trace["chosen_by"] == "chooser"


@pytest.mark.parametrize(
    ("chosen", "named"),
    [([99], "99"), ([0, -1, 99], "-1, 99"), (["0"], "'0'"), ([True], "True"), ([0.0], "0.0"), ([[1]], r"\[1\]")],
)
def test_a_choice_of_unknown_ids_names_them(chain: GraphIndex, chosen: list[Any], named: str) -> None:
    retriever = VectorGraphRetriever(chain, chooser=chosen_by(lambda relations: chosen))
    with pytest.raises(GfmError, match=f"query 'query': expected ids among the 5 relations.*, found {named}$"):
        retriever.retrieve("Who?")


def test_a_relation_that_was_not_shown_cannot_be_chosen(chain: GraphIndex) -> None:
    retriever = VectorGraphRetriever(chain, max_relations=1, chooser=chosen_by(lambda relations: [0, 1]))
    with pytest.raises(GfmError, match=r"among the 1 relations that the chooser was shown, found 1$"):
        retriever.retrieve("Who?")


@pytest.mark.parametrize("chosen", [None, "0", 0, {0: 1}])
def test_a_choice_that_is_no_list_is_an_error(chain: GraphIndex, chosen: Any) -> None:
    retriever = VectorGraphRetriever(chain, chooser=chosen_by(lambda relations: chosen))
    with pytest.raises(GfmError, match="expected a list of relation ids from the chooser, found"):
        retriever.retrieve("Who?")


def test_where_nothing_is_chosen_the_result_says_that_it_is_dense(
    chain: GraphIndex, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = VectorGraphRetriever(chain, chooser=chosen_by(lambda relations: [])).retrieve("Who?", top_k=2)
    assert (ids(result), result.triples) == (["p5", "p4"], [])
    assert (result.trace["fallback"], result.trace["padded"]) == ("dense", ["p5", "p4"])
    assert "query 'query': no relation brought a passage" in caplog.text


def test_a_chooser_is_not_called_where_there_is_no_relation(placed_index: MakeIndex) -> None:
    def never(question: str, relations: Sequence[tuple[int, str]]) -> list[int]:
        raise AssertionError

    result = VectorGraphRetriever(placed_index(TEXTS), chooser=never).retrieve("Who?", top_k=2)
    assert (len(result.passages), result.trace["fallback"]) == (2, "dense")


@settings(deadline=None, max_examples=50)
@given(choice=st.lists(st.integers(0, 4), max_size=6), top_k=st.integers(1, 7))
def test_any_choice_gives_its_passages_first_then_the_nearest_others(
    chain: GraphIndex, choice: list[int], top_k: int
) -> None:
    result = VectorGraphRetriever(chain, chooser=chosen_by(lambda relations: choice)).retrieve("Who?", top_k)
    brought = [p for i in choice for p in chain.triple(i).passage_ids]
    assert ids(result) == list(dict.fromkeys([*brought, "p5", "p4", "p3", "p2", "p1", "p6"]))[:top_k]
    assert result.trace["padded"] == [p for p in ids(result) if p not in brought]


def test_the_expansion_is_that_of_sets_in_plain_python(placed_index: MakeIndex) -> None:
    rng = np.random.default_rng(5)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 30, (35, 2)) if a != b})
    index = placed_index({"p": "x"}, [(f"N{a}", "r", f"N{b}", "p") for a, b in pairs])
    facts = [{f"N{a}", f"N{b}"} for a, b in pairs]

    for start in sorted(set.union(*facts)):
        for degree in range(3):
            reached = [f for f in facts if start in f]
            for _ in range(degree):
                reached = [f for f in facts if f & set.union(*reached)]
            trace = VectorGraphRetriever(index, near_relations=0, degree=degree).retrieve(f"Is {start} here?").trace
            assert trace["linked_entities"] == [start]
            assert trace["expanded_relations"] == len(reached)


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("near_entities", -1, "whole number of 0 or more"),
        ("near_relations", 2.5, "whole number of 0 or more"),
        ("degree", True, "whole number of 0 or more"),
        ("max_relations", 0, "whole number of 1 or more"),
        ("picked", "5", "whole number of 1 or more"),
        ("above_cosine", 1.5, "number from -1 to 1"),
        ("above_cosine", float("nan"), "number from -1 to 1"),
        ("above_cosine", None, "number from -1 to 1"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_an_error(chain: GraphIndex, setting: str, value: Any, expected: str) -> None:
    with pytest.raises(GfmError, match=rf"vector_graph {setting}: expected a {expected}, found"):
        VectorGraphRetriever(chain, **{setting: value})


def test_the_configuration_states_the_defaults(repository: Path) -> None:
    stated = OmegaConf.to_container(OmegaConf.load(repository / "configs/retriever/vector_graph.yaml"))
    parameters = signature(VectorGraphRetriever).parameters
    expected = {name: p.default for name, p in parameters.items() if name not in ("index", "chooser")}
    assert stated == {"name": "vector_graph", **expected}
