from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.answer.citations import CitationFilter, unsupported


def filtered(text: str, known: set[int], size: int = 3) -> tuple[str, list[int], list[int]]:
    """The text that comes out, and what was cited and removed."""
    check = CitationFilter(known)
    out = "".join(check.feed(text[i : i + size]) for i in range(0, len(text), size)) + check.close()
    return out, list(check.cited), list(check.removed)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "expected", "cited", "removed"),
    [
        ("Orla Venn built it [1].", "Orla Venn built it [1].", [1], []),
        ("Orla Venn built it [9].", "Orla Venn built it.", [], [9]),
        ("It stands [1, 9] there [2-4].", "It stands [1] there [2].", [1, 2], [9, 3, 4]),
        ("It stands [1][9][2].", "It stands [1][2].", [1, 2], [9]),
        ("It stands【1】.", "It stands[1].", [1], []),
        ("An array[0] and [x] and [ 2 ] stay.", "An array and [x] and [2] stay.", [2], [0]),
        ("[1-9999999] huge", "[1] huge", [1], [9999999]),
        ("<think>maybe [9]\n</think>\nYes [1].", "Yes [1].", [1], []),
        ("<think>never closed [1]", "", [], []),
        ("<thin ice [1]", "<thin ice [1]", [1], []),
        ("open [1", "open [1", [], []),
        ("", "", [], []),
    ],
)
def test_only_citations_of_sources_stay(
    text: str, expected: str, cited: list[int], removed: list[int], size: int
) -> None:
    assert filtered(text, {1, 2}, size) == (expected, cited, removed)


@given(st.text(alphabet="ab [1,29]-\n<think>/", max_size=40), st.integers(1, 9))
def test_the_size_of_the_pieces_plays_no_part(text: str, size: int) -> None:
    assert filtered(text, {1, 2}, size) == filtered(text, {1, 2}, 1000)


def test_a_piece_is_handed_on_as_soon_as_it_is_certain() -> None:
    check = CitationFilter({1})
    assert check.feed("Orla Venn ") == "Orla Venn"
    assert check.feed("built it [") == " built it"
    assert check.feed("1") == ""
    assert check.feed("] in") == " [1] in"


def test_sentences_to_be_careful_with() -> None:
    sources = {1: "Tarn Mill. Tarn Mill was built by Orla Venn in 1911.", 2: "Quince jam keeps for a year."}
    text = "Orla Venn built Tarn Mill. [1] It was 1911 [1]. It is lovely. Orla Venn built it [2]. Ja [1]."
    uncited, strange = unsupported(text, sources)
    assert uncited == ["It is lovely."]
    assert strange == ["Orla Venn built it."]
