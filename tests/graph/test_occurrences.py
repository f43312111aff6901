from __future__ import annotations

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gfm.graph.occurrences import NOTHING, Numbers, Occurrences, Reading, merge

NONE = np.zeros(0, dtype=np.int64)


def reading(*facts: tuple[str, list[tuple[str, str, str]]], subject: str = "") -> Reading:
    """A reading whose mentions are the ends of its triples, each spelt with a capital."""
    made = Reading(subject)
    if subject:
        made.mention(subject, subject.title())
    for text, triples in facts:
        made.fact(text)
        for head, tail, relation in triples:
            for key in (head, tail):
                made.mention(key, key.title())
            made.triple(text, head, tail, relation)
    return made


def collected(readings: list[Reading]) -> Occurrences:
    return merge(NOTHING, NONE, enumerate(readings), len(readings))


def rows(said: Occurrences) -> list[object]:
    found = (getattr(said, f.name) for f in fields(said))
    return [np.nan_to_num(x, nan=-1).tolist() if isinstance(x, np.ndarray) else x for x in found]


def noted(text: str, key: str, words: str) -> Reading:
    """A reading with a description, and a statement of an entity about itself."""
    made = reading((text, [(key, "z", "r")]))
    made.descriptions.add((text, key, "z", words))
    made.self_loops.add((key, words))
    return made


ONE = reading(("A met b.", [("a", "b", "met")]), ("A sat.", []), subject="a")
TWO = reading(("B saw c.", [("b", "c", "saw")]), ("A met b.", [("a", "b", "greeted"), ("a", "b", "met")]))


def test_columns_by_hand() -> None:
    said = collected([ONE, TWO])
    assert said.keys == ["a", "b", "c"]
    assert said.forms == ["A", "B", "C"]
    assert said.facts == ["A met b.", "A sat.", "B saw c."]
    assert said.relations == ["greeted", "met", "saw"]
    assert said.subject.tolist() == [0, -1]
    assert said.mention.tolist() == [[0, 0, 0, 2], [0, 1, 1, 1], [1, 0, 0, 2], [1, 1, 1, 3], [1, 2, 2, 1]]
    assert said.fact.tolist() == [[0, 0], [0, 1], [1, 2], [1, 0]]
    assert said.triple.tolist() == [[0, 0, 1, 1], [2, 1, 2, 2], [3, 0, 1, 0], [3, 0, 1, 1]]
    assert (said.remarks, len(said.description), len(said.self_loop)) == ([], 0, 0)
    assert {x.dtype for x in (said.subject, said.mention, said.fact, said.triple)} == {np.dtype(np.int32)}


def test_remarks_by_hand() -> None:
    said = collected([noted("One.", "b", "y"), ONE, noted("Two.", "a", "x")])
    assert said.remarks == ["x", "y"]
    assert said.description.tolist() == [[0, 1, 2, 1], [3, 0, 2, 0]]
    assert said.self_loop.tolist() == [[0, 1, 1], [2, 0, 0]]
    left = merge(said, np.array([-1, 1, 0]), [], 2)
    assert (left.remarks, left.description.tolist(), left.self_loop.tolist()) == (["x"], [[0, 0, 2, 0]], [[0, 0, 0]])


def test_what_goes_leaves_nothing_behind() -> None:
    left = merge(collected([ONE, TWO]), np.array([-1, 0]), [], 1)
    assert rows(left) == rows(collected([TWO]))
    assert left.facts == ["B saw c.", "A met b."]
    assert rows(merge(left, np.array([-1]), [], 0)) == rows(NOTHING)


KEYS = st.sampled_from("abcd")
PLAIN = st.builds(
    lambda subject, facts: reading(*facts.items(), subject=subject),
    st.sampled_from(["", "a", "d"]),
    st.dictionaries(
        st.sampled_from(["One.", "Two.", "Three."]),
        st.lists(st.tuples(KEYS, KEYS, st.sampled_from(["", "r", "s"])), max_size=3),
        max_size=3,
    ),
)
READINGS = PLAIN | st.builds(noted, st.sampled_from(["One.", "Two."]), KEYS, st.sampled_from("xy"))


@given(st.lists(READINGS, max_size=5), st.lists(READINGS, max_size=3), st.randoms(use_true_random=False))
def test_how_the_columns_came_about_plays_no_part(old: list[Reading], new: list[Reading], rng: object) -> None:
    """Any of the old passages stay, at any place among the new ones."""
    kept = [i for i in range(len(old)) if rng.random() < 0.6]  # type: ignore[attr-defined]
    together = [*((i, old[i]) for i in kept), *((-1, reading) for reading in new)]
    rng.shuffle(together)  # type: ignore[attr-defined]
    moved = np.full(len(old), -1, dtype=np.int64)
    fresh = []
    for place, (i, one) in enumerate(together):
        if i < 0:
            fresh.append((place, one))
        else:
            moved[i] = place
    found = merge(collected(old), moved, fresh, len(together))
    assert rows(found) == rows(collected([one for _, one in together]))


def test_numbers_go_on_where_they_were() -> None:
    numbers = Numbers(["x", "y"])
    assert [numbers[t] for t in ("y", "z", "x", "z")] == [1, 2, 0, 2]
    assert list(numbers) == ["x", "y", "z"]
