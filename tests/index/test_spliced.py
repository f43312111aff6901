from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gfm.index import store
from gfm.index.spliced import Spliced


def numbered(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + 2 * count, dtype=np.float32).reshape(count, 2)


@given(st.integers(0, 4), st.integers(0, 4), st.data())
def test_it_stands_for_the_array_that_it_is_not_copied_to(old: int, new: int, data: st.DataObject) -> None:
    """Whatever rows of both are taken, in whatever order: alone, in blocks, as scores and whole."""
    rows = np.concatenate([numbered(0, old), numbered(100, new)])
    place = np.array(data.draw(st.lists(st.integers(0, old + new - 1)) if old + new else st.just([])), dtype=np.int64)
    found, expected = Spliced(rows[:old], rows[old:], place), rows[place]
    assert (len(found), found.shape, found.dtype, found.nbytes) == (
        len(expected),
        expected.shape,
        expected.dtype,
        expected.nbytes,
    )
    every = np.arange(len(place))
    assert np.array_equal(found[every[::-1]], expected[::-1])
    assert np.array_equal(np.concatenate([expected[:0], *found.blocks()]), expected)
    assert np.array_equal(found.scores(numbered(1, 3)), numbered(1, 3) @ expected.T)
    assert np.array_equal(found.whole(), expected)
    assert Spliced.of(expected).whole() is expected


def test_it_is_written_as_that_array_is(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((9000, 3)).astype(np.float32)  # more than a block
    place = np.delete(np.arange(9000), 17)
    place[5000] = 9000
    new = np.ones((1, 3), np.float32)
    store.write_arrays(tmp_path / "spliced", {"a": Spliced(rows, new, place), "b": place})
    store.write_arrays(tmp_path / "whole", {"a": np.concatenate([rows, new])[place], "b": place})
    assert (tmp_path / "spliced").read_bytes() == (tmp_path / "whole").read_bytes()
