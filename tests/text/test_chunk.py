from __future__ import annotations

import textwrap
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.chunk import embedded_text, split, unwrapped
from gfm.text.encoder import Encoder, HashingEncoder, load_encoder
from gfm.text.markup import read_markdown
from gfm.types import Document, GfmError, Passage, Section

HASHING = HashingEncoder(64)
FACT = "The vault code is 7714."


def assert_covers(document: Document, passages: list[Passage], overlap: bool = False) -> None:
    """Spans slice exactly, stand in order, and leave nothing out but blanks."""
    end = 0
    for passage in passages:
        assert document.text[passage.start : passage.end] == passage.text
        assert passage.text.strip()
        assert (passage.document_id, passage.title) == (document.id, document.title)
        assert overlap or passage.start >= end
        assert not document.text[end : max(end, passage.start)].strip()
        end = passage.end
    assert not document.text[end:].strip()


def assert_fits(passages: list[Passage], encoder: Encoder, limit: int) -> None:
    for passage in passages:
        assert encoder.count_tokens(embedded_text(passage.title, passage.text)) <= limit - 2


def test_embedded_text() -> None:
    assert embedded_text("Tarn Mill", "It burned.") == "Tarn Mill. It burned."
    assert embedded_text("", "It burned.") == embedded_text("  ", "It burned.") == "It burned."


def test_a_short_document_is_one_passage_under_its_own_id() -> None:
    document = Document("p1", "Tarn Mill", "  Tarn Mill was built. \n")
    assert split(document, HASHING) == [Passage("p1", "p1", "Tarn Mill", "  Tarn Mill was built. \n", 0, 24)]


def test_a_document_that_just_fits_and_one_token_more() -> None:
    words = [f"w{i}" for i in range(254)]
    assert len(split(Document("d", "", " ".join(words)), HASHING)) == 1
    two = split(Document("d", "", " ".join([*words, "more"])), HASHING)
    assert [p.id for p in two] == ["d#0", "d#1"]
    assert len(split(Document("d", "a title", " ".join(words)), HASHING)) == 2


def test_whole_sentences_stay_whole() -> None:
    sentences = [f"Number {i} is a sentence of eight small words." for i in range(20)]
    document = Document("d", "", " ".join(sentences))
    passages = split(document, HASHING, max_tokens=32)
    assert len(passages) == 7  # 30 tokens a passage, three sentences of nine
    assert [p.text for p in passages] == [" ".join(sentences[i : i + 3]) for i in range(0, 20, 3)]


@pytest.mark.parametrize("name", ["hashing:64", "all-MiniLM-L6-v2"])
def test_the_last_sentence_of_a_long_text_is_whole_in_one_passage(name: str) -> None:
    encoder = load_encoder(name)
    filler = " ".join(f"The {i}th stone of the wall is grey and old." for i in range(500))  # 5,000 words
    assert len(filler.split()) == 5000
    document = Document("d", "The wall", f"{filler} {FACT}")
    passages = split(document, encoder)
    assert len(passages) > 10
    assert FACT in passages[-1].text
    assert sum(FACT in p.text for p in passages) == 1
    assert_covers(document, passages)
    assert_fits(passages, encoder, 256)


def test_the_encoder_caps_the_limit() -> None:
    document = Document("d", "", "word " * 600)
    assert_fits(split(document, HASHING, max_tokens=10_000), HASHING, 256)


def test_overlap_shares_text() -> None:
    document = Document("d", "", " ".join(f"w{i}" for i in range(200)))
    passages = split(document, HASHING, max_tokens=42, overlap=10)
    assert_covers(document, passages, overlap=True)
    assert_fits(passages, HASHING, 42)
    for one, other in pairwise(passages):
        assert one.start < other.start < one.end
        assert HASHING.count_tokens(document.text[other.start : one.end]) <= 10


@pytest.mark.parametrize(("title", "overlap"), [("word " * 47, 0), ("short", 61), ("short", -1)])
def test_no_room_beside_the_title_is_refused(title: str, overlap: int) -> None:
    with pytest.raises(GfmError, match=r"document 'd7': its title leaves -?\d+ tokens of 62 for text.*--chunk-tokens"):
        split(Document("d7", title, "word " * 200), HASHING, max_tokens=64, overlap=overlap)


def test_a_long_title_over_a_short_text_is_fine() -> None:
    assert len(split(Document("d", "word " * 40, "text"), HASHING, max_tokens=64)) == 1


def test_text_without_spaces_and_emoji() -> None:
    family = "👨‍👩‍👧"
    for text in ["李明创办了海港书店。" * 60, family * 10 + "é" * 3 + " x" * 300, "x" * 9000, "น้ำตก" * 200]:
        document = Document("d", "T", text)
        passages = split(document, HASHING, max_tokens=64)
        assert_covers(document, passages)
        assert_fits(passages, HASHING, 64)


def test_lone_surrogates_keep_the_spans() -> None:
    document = Document("d", "", "a\ud800b c🚀 " * 100)
    passages = split(document, HASHING, max_tokens=40)
    assert len(passages) > 2
    assert_covers(document, passages)


PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "Tarn Mill. ",
            "\n\n",
            "🚀",
            "👨‍👩‍👧",
            "李明创办了",
            "नमस्ते ",
            "\u2028",
            "\u200b",
            "e\u0301",
            "\r\n",
            "# H\n",
            " ",
        ]
    ),
)


@given(st.lists(PIECES, max_size=120).map("".join), st.integers(24, 80), st.sampled_from(["", "A title"]))
def test_any_text_is_covered_within_the_limit(text: str, limit: int, title: str) -> None:
    document = Document("d", title, text)
    passages = split(document, HASHING, max_tokens=limit)
    if len(passages) == 1:
        assert passages[0].text == text or passages[0].id == "d#0"
    if text.strip():
        assert_covers(document, passages)
    assert_fits(passages, HASHING, limit)
    assert passages == split(document, HASHING, max_tokens=limit)


def test_an_overlap_is_of_whole_sentences() -> None:
    sentences = [f"Number {i} is a sentence of eight small words." for i in range(20)]
    document = Document("d", "", " ".join(sentences))
    passages = split(document, HASHING, max_tokens=32, overlap=12)
    assert [p.text for p in passages[:2]] == [" ".join(sentences[:3]), " ".join(sentences[2:5])]
    assert split(document, HASHING, max_tokens=32, overlap=5) == split(document, HASHING, max_tokens=32)  # none fits


@pytest.mark.parametrize("width", [44, 72, 120])
def test_the_line_breaks_of_wrapped_text_cut_no_sentence(width: int) -> None:
    sentences = [f"Number {i} is a sentence by Orla Venn." for i in range(60)]
    paragraphs = [textwrap.fill(" ".join(sentences[i : i + 20]), width) for i in (0, 20, 40)]
    document = Document("d", "", "\n\n".join(paragraphs))
    passages = split(document, HASHING, max_tokens=34)
    assert_covers(document, passages)
    assert all(p.text.endswith("Orla Venn.") or p.text.endswith("Orla\nVenn.") for p in passages)


def test_lines_that_the_writer_ended_stay_lines() -> None:
    entries = "Tarn Mill, by Orla Venn\nPort Isk\nHalder Sea\n- one of a list, and the widest line of all\n- two"
    assert unwrapped(entries) == entries
    long = "word " * 40 + "\nand more"
    assert unwrapped(long) == long
    assert unwrapped("The mill was built in 1911 by Orla Venn, who\nwas born\n\nthere") == (
        "The mill was built in 1911 by Orla Venn, who was born\n\nthere"
    )


def test_sections_are_cut_apart_under_their_own_titles() -> None:
    text = "Heading\n\nOne two.\n\nOther\n\n" + " ".join(f"Sentence {i}." for i in range(20))
    sections = (Section("T", 9, 17), Section("T (Other)", 26, len(text)))
    document = Document("d", "T", text, sections=sections)
    passages = split(document, HASHING, max_tokens=30)
    assert [(p.id, p.title) for p in passages] == [("d#0", "T"), ("d#1", "T (Other)"), ("d#2", "T (Other)")]
    assert passages[0].text == "One two."
    assert passages[1].text.startswith("Sentence 0.")
    assert passages[2].text.endswith("Sentence 19.")
    assert all(text[p.start : p.end] == p.text for p in passages)


def test_one_section_that_fits_has_the_id_of_the_document() -> None:
    document = Document("d", "T", "Heading\n\nOne two.", sections=(Section("T", 9, 17),))
    assert split(document, HASHING) == [Passage("d", "d", "T", "One two.", 9, 17)]


@given(st.lists(PIECES, max_size=120).map("".join))
def test_unwrapping_keeps_the_length_and_all_but_line_breaks(text: str) -> None:
    assert len(unwrapped(text)) == len(text)
    assert unwrapped(text).replace("\n", " ") == text.replace("\n", " ")


BLOCKS = [
    "# A",
    "## B",
    "Tarn Mill was built.",
    "word " * 30,
    "- item",
    "> quoted",
    "```\ncode  x\n```",
    "می\u200cخواهم",
    "🚀" * 9,
]


@given(st.lists(st.sampled_from(BLOCKS), min_size=1).map("\n\n".join), st.integers(24, 60), st.integers(0, 7))
def test_passages_of_sections_slice_to_the_text(text: str, limit: int, overlap: int) -> None:
    found = read_markdown(text, "A title")
    document = Document("d", found.title, found.text, sections=found.sections)
    passages = split(document, HASHING, limit, overlap)
    assert_fits(passages, HASHING, limit)
    for number, passage in enumerate(passages):
        assert document.text[passage.start : passage.end] == passage.text
        assert passage.id == ("d" if len(passages) == 1 and passage.id == "d" else f"d#{number}")
        assert not found.sections or any(
            s.title == passage.title and s.start <= passage.start and passage.end <= s.end for s in found.sections
        )


def test_a_run_too_long_to_be_a_word_is_cut() -> None:
    """Such as a picture within a note: one word to a tokenizer, whatever its length."""
    encoder = HashingEncoder(16)
    text = f"The mill.\n{'abc' * 2000} grinds rye."
    parts = split(Document("a", "", text), encoder, max_tokens=32)
    assert [len(p.text) for p in parts] == [2010, 2000, 2012]
    assert "".join(p.text for p in parts) == text
    assert all(text[p.start : p.end] == p.text for p in parts)
    chinese = "磨坊由奥拉建造。" * 2000
    assert "".join(p.text for p in split(Document("b", "", chinese), encoder, max_tokens=32)) == chinese
