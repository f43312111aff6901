from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.extract.extraction import Extraction, Mention, Predicate, Statement, unite
from gfm.graph.assemble import RULES, GraphParts, assemble
from gfm.graph.entity_table import EntityTable, make_aliases
from gfm.index.builder import split_all
from gfm.index.documents import read_documents
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import GivenEntity, Passage
from tests.index.fakes import Capitals


def passage(number: int, text: str, title: str = "") -> Passage:
    return Passage(f"p{number}", f"p{number}", title, text, 0, len(text))


def said(text: str, names: list[str], *predicates: tuple[str, str, str], pronoun: bool = False) -> Extraction:
    """An extraction of one sentence: its names, and predicates by (word of subject, predicate, word of object)."""
    return Extraction(
        sentences=((0, len(text)),),
        mentions=tuple(Mention(text.index(n), text.index(n) + len(n), "X") for n in names),
        predicates=tuple(Predicate(text.index(o), text.index(s), pronoun, p) for s, p, o in predicates),
    )


def given_triples(*triples: tuple[str, str, str]) -> Extraction:
    return Extraction(triples=triples)


def named(parts: GraphParts) -> list[tuple[str, str, str, str]]:
    """(head, relation, tail, fact) in words."""
    return [(parts.entities[h][1], r, parts.entities[t][1], parts.facts[f]) for h, t, f, r, _ in parts.triples]


def keys(parts: GraphParts) -> list[str]:
    return [key for key, _ in parts.entities]


Z = [
    ("Tarn Mill was built by Orla Venn in 1911.", ["Tarn Mill", "Orla Venn"], ("Mill", "was built by", "Venn")),
    ("Orla Venn was born in Port Isk.", ["Orla Venn", "Port Isk"], ("Venn", "was born in", "Isk")),
    ("Port Isk lies on the Halder Sea.", ["Port Isk", "the Halder Sea"], ("Isk", "lies on", "Sea")),
    ("The Halder Sea freezes each winter.", ["The Halder Sea"], None),
    ("Quince jam keeps for a year.", [], None),
]


def corpus_z() -> tuple[list[Passage], list[Extraction]]:
    passages = [passage(i, text) for i, (text, _, _) in enumerate(Z, 1)]
    return passages, [said(text, names, *([p] if p else [])) for text, names, p in Z]


def test_corpus_z() -> None:
    parts = assemble(*corpus_z())
    assert parts.entities == [
        ("halder sea", "Halder Sea"),
        ("orla venn", "Orla Venn"),
        ("port isk", "Port Isk"),
        ("tarn mill", "Tarn Mill"),
    ]
    assert parts.facts == [text for text, _, _ in Z]
    assert parts.fact_passages == [(0,), (1,), (2,), (3,), (4,)]
    assert parts.triples == [
        (3, 1, 0, "was built by", 1.0),
        (1, 2, 1, "was born in", 1.0),
        (2, 0, 2, "lies on", 1.0),
    ]
    assert parts.mentions.tolist() == [[0, 1], [0, 3], [1, 1], [1, 2], [2, 0], [2, 2], [3, 0]]
    assert parts.mentions.dtype == np.int64
    assert parts.aliases == []


def test_corpus_z_with_given_triples() -> None:
    triples = [
        ("Tarn Mill", "built by", "Orla Venn"),
        ("Orla Venn", "born in", "Port Isk"),
        ("Port Isk", "lies on", "Halder Sea"),
        ("Halder Sea", "freezes in", "winter"),
    ]
    passages, _ = corpus_z()
    parts = assemble(passages, [*map(given_triples, triples), Extraction()])
    assert named(parts) == [(h, r, t, f"{h} {r} {t}") for h, r, t in triples]
    assert keys(parts) == ["halder sea", "orla venn", "port isk", "tarn mill", "winter"]
    assert len(parts.mentions) == 8


def test_passages_without_entities() -> None:
    texts = ["It was late.", "Some time passed.", "Then it stopped."]
    parts = assemble([passage(i, t) for i, t in enumerate(texts)], [said(t, []) for t in texts])
    assert parts.entities == parts.triples == parts.aliases == []
    assert parts.facts == texts
    assert parts.mentions.shape == (0, 2)


def test_nothing_at_all() -> None:
    parts = assemble([], [])
    assert (parts.entities, parts.facts, parts.triples, parts.mentions.shape) == ([], [], [], (0, 2))
    empty = assemble([passage(0, "text")], [Extraction()])
    assert (empty.entities, empty.facts) == ([], [])


def test_passages_and_extractions_are_counted() -> None:
    with pytest.raises(ValueError, match="zip"):
        assemble([passage(0, "text")], [])


# --- names


@pytest.mark.parametrize(
    ("forms", "display"),
    [
        (["TARN MILL", "Tarn Mill"], "Tarn Mill"),
        (["Electrons", "electrons"], "Electrons"),
        (["Café Noor", "Cafe\u0301 Noor", "ＣＡＦÉ\u3000ＮＯＯＲ", "Café\u200b Noor", "<p>Café Noor</p>"], "Café Noor"),
        (["Bell\x07 Tower", "BELL TOWER"], "Bell Tower"),
        (["Sport &amp; Leisure", "Sport & Leisure"], "Sport & Leisure"),
    ],
)
def test_spellings_of_one_name_are_one_entity(forms: list[str], display: str) -> None:
    passages = [passage(i, "x") for i in range(len(forms))]
    parts = assemble(passages, [given_triples((form, "is", "open")) for form in forms])
    assert [name for _, name in parts.entities if name != "open"] == [display]
    assert len(parts.mentions) == 2 * len(forms)


def test_names_in_other_case_in_running_text() -> None:
    texts = ["TARN MILL burned.", "Tarn Mill reopened."]
    parts = assemble([passage(i, t) for i, t in enumerate(texts)], [said(t, [t[:9]]) for t in texts])
    assert parts.entities == [("tarn mill", "Tarn Mill")]
    assert parts.mentions.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        ("the Halder Sea", "Halder Sea"),
        ("Orla Venn's", "Orla Venn"),
        ("Orla Venn\u2019s", "Orla Venn"),
        ('"Orla Venn', "Orla Venn"),
        ("(Orla Venn),", "Orla Venn)"),  # a closing bracket may belong to the name
        ("Acme Inc.", "Acme Inc."),
        ("दिल्ली", "दिल्ली"),
        ("Cafe\u0301", "Café"),
        ("Lee Moss (diver)", "Lee Moss (diver)"),
    ],
)
def test_what_stands_round_a_name_is_trimmed(mention: str, name: str) -> None:
    text = f"x {mention} y"
    parts = assemble([passage(0, text)], [said(text, [mention])])
    assert [shown for _, shown in parts.entities] == [name]


@pytest.mark.parametrize("mention", ["...", "'s", "x", "\u200b", " "])
def test_what_is_no_name_is_passed_over(mention: str) -> None:
    text = f"A b {mention} c"
    assert assemble([passage(0, text)], [said(text, [mention])]).entities == []


def test_homonyms_with_brackets_stay_apart() -> None:
    passages = [
        passage(0, "Lee Moss was treasurer of Abel Works.", "Lee Moss (treasurer)"),
        passage(1, "Lee Moss was a diver at Port Isk.", "Lee Moss (diver)"),
    ]
    parts = assemble(passages, [said(p.text, ["Lee Moss"]) for p in passages])
    assert parts.entities == [
        ("lee moss", "Lee Moss"),
        ("lee moss (diver)", "Lee Moss (diver)"),
        ("lee moss (treasurer)", "Lee Moss (treasurer)"),
    ]
    assert parts.aliases == [(0, 1), (0, 2)]
    assert parts.mentions.tolist() == [[0, 0], [0, 2], [1, 0], [1, 1]]
    assert named(parts) == [
        ("Lee Moss (treasurer)", "", "Lee Moss", "Lee Moss was treasurer of Abel Works."),
        ("Lee Moss (diver)", "", "Lee Moss", "Lee Moss was a diver at Port Isk."),
    ]


def test_a_homonym_that_its_text_spells_out_is_known() -> None:
    passages = [
        passage(0, "Lee Moss, treasurer of Abel Works.", "Lee Moss (treasurer)"),
        passage(1, "Lee Moss, diver at Port Isk.", "Lee Moss (diver)"),
    ]
    parts = assemble(passages, [said(p.text, ["Lee Moss"]) for p in passages])
    assert keys(parts) == ["lee moss (diver)", "lee moss (treasurer)"]
    assert parts.mentions.tolist() == [[0, 1], [1, 0]]
    assert parts.triples == []


# --- sentences


def test_a_sentence_that_does_not_name_its_subject_gets_the_title() -> None:
    text = "He was born in Port Isk. Orla Venn built mills."
    extraction = Extraction(
        sentences=((0, 24), (25, 47)),
        mentions=(Mention(15, 23, "GPE"),),
        predicates=(Predicate(20, 0, True, "was born in"),),
    )
    parts = assemble([passage(0, text, "Orla Venn (builder)")], [extraction])
    assert parts.facts == ["Orla Venn: He was born in Port Isk.", "Orla Venn built mills."]
    assert keys(parts) == ["orla venn (builder)", "port isk"]
    assert parts.triples == [(0, 1, 0, "was born in", 1.0)]


def test_a_pronoun_means_nobody_without_a_title() -> None:
    text = "Zorin said it was sold to Abel Works."
    parts = assemble(
        [passage(0, text)], [said(text, ["Zorin", "Abel Works"], ("it", "was sold to", "Works"), pronoun=True)]
    )
    assert named(parts) == [("Zorin", "", "Abel Works", text)]


def test_direction_is_kept_where_the_subject_sorts_last() -> None:
    text = "Zorin acquired Abel Works."
    extraction = said(text, ["Zorin", "Abel Works"], ("Zorin", "acquired", "Works"))
    assert named(assemble([passage(0, text)], [extraction])) == [("Zorin", "acquired", "Abel Works", text)]
    titled = named(assemble([passage(0, text, "Abel Works")], [extraction]))
    assert ("Zorin", "acquired", "Abel Works", text) in titled
    assert ("Abel Works", "", "Zorin", text) in titled
    assert not any(h == "Abel Works" and r for h, r, _, _ in titled)


def test_names_are_tied_to_the_subject_and_in_a_chain() -> None:
    text = "Orla Venn saw Port Isk and Tarn Mill."
    parts = assemble([passage(0, text)], [said(text, ["Orla Venn", "Port Isk", "Tarn Mill"])])
    assert {(h, t) for h, _, t, _ in named(parts)} == {
        ("Orla Venn", "Port Isk"),
        ("Orla Venn", "Tarn Mill"),
        ("Port Isk", "Tarn Mill"),
    }


def test_titles_are_found_in_the_text_of_other_passages() -> None:
    passages = [passage(0, "It lies north of Tarn Mill.", "Abel Works"), passage(1, "It burned.", "Tarn Mill")]
    parts = assemble(passages, [said(p.text, []) for p in passages])
    assert named(parts) == [("Abel Works", "", "Tarn Mill", "Abel Works: It lies north of Tarn Mill.")]
    assert parts.mentions.tolist() == [[0, 0], [0, 1], [1, 1]]


def test_headings_and_blank_lines_end_sentences() -> None:
    text = "Orla Venn\n\n# Life of Orla\nShe built Tarn Mill.\n\n\nok"
    parts = assemble([passage(0, text)], [Extraction(sentences=((0, len(text)),))])
    assert parts.facts == ["Orla Venn", "She built Tarn Mill."]  # two letters are no sentence


def test_a_heading_is_no_sentence_wherever_the_parse_ends_one() -> None:
    text = "## 2. The mill. A history\n\nIt burned.\n# Owners\nOrla Venn."
    for cuts in ([5, 15, 38], [2, 25, 41, 46], [26, 27, 38, 47], []):
        ends = [*cuts, len(text)]
        spans = tuple(zip([0, *cuts], ends, strict=True))
        assert assemble([passage(0, text)], [Extraction(sentences=spans)]).facts == ["It burned.", "Orla Venn."]


def test_a_sentence_of_two_passages_is_one_fact() -> None:
    text = "Zorin acquired Abel Works."
    extraction = said(text, ["Zorin", "Abel Works"])
    parts = assemble([passage(0, text), passage(1, text)], [extraction, extraction])
    assert parts.facts == [text]
    assert parts.fact_passages == [(0, 1)]
    assert len(parts.triples) == 1
    assert len(parts.mentions) == 4


def test_markup_and_control_characters_stay_out_of_facts() -> None:
    text = "He\x00 saw\u200b  it."
    parts = assemble([passage(0, text, "<b>Bell\x07 Tower</b>")], [said(text, [])])
    assert parts.facts == ["Bell Tower: He saw it."]
    assert parts.entities == [("bell tower", "Bell Tower")]


# --- given triples


def test_given_self_loops_are_dropped_and_their_entity_stays() -> None:
    parts = assemble([passage(0, "x")], [given_triples(("Abel Works", "owns", "ABEL WORKS"), ("A", "r", "B"))])
    assert named(parts) == [("A", "r", "B", "A r B")]
    assert keys(parts) == ["a", "abel works", "b"]
    assert parts.facts == ["A r B"]


def test_given_duplicates_merge_and_keep_their_sources() -> None:
    parts = assemble(
        [passage(0, "x"), passage(1, "y")],
        [
            given_triples(("A", "r", "B"), ("A", "r", "B")),
            given_triples(("A", "r", "B"), ("B", "r", "A"), ("A", "s", "B")),
        ],
    )
    assert named(parts) == [("A", "r", "B", "A r B"), ("B", "r", "A", "B r A"), ("A", "s", "B", "A s B")]
    assert parts.fact_passages == [(0, 1), (1,), (1,)]


def test_a_given_relation_may_be_blank_and_an_end_may_not() -> None:
    parts = assemble([passage(0, "x")], [given_triples(("A", " ", "B"), ("", "r", "B"), ("A", "r", "\u200b"))])
    assert named(parts) == [("A", "", "B", "A B")]


def test_given_names_resolve_to_titles_by_their_documented_key() -> None:
    passages = [passage(0, "x", "Mercury (planet)"), passage(1, "y", "C")]
    parts = assemble(passages, [given_triples(("MERCURY", "orbits", "Sun")), given_triples(("C++", "extends", "C"))])
    assert named(parts) == [
        ("Mercury (planet)", "orbits", "Sun", "MERCURY orbits Sun"),
        ("C++", "extends", "C", "C++ extends C"),
    ]


# --- what was handed in with more than three names


def table(*entities: GivenEntity, aliases: list[tuple[str, str]] | None = None) -> EntityTable:
    return EntityTable({e.name.casefold(): e for e in entities}, make_aliases(aliases or []))


def test_statements_keep_sentence_weight_and_description() -> None:
    statement = Statement("She put it up.", "Orla Venn", "built", "Tarn Mill", 2.5, "In one summer.")
    parts = assemble([passage(0, "x"), passage(1, "y")], [Extraction(statements=(statement,))] * 2)
    assert named(parts) == [("Orla Venn", "built", "Tarn Mill", "She put it up.")]
    assert [t[4] for t in parts.triples] == [2.5]
    assert parts.descriptions == ["In one summer."]
    assert parts.fact_passages == [(0, 1)]


def test_the_greatest_weight_of_a_statement_counts_and_none_counts_as_one() -> None:
    said_twice = [Statement("A B", "A", "", "B", weight) for weight in (-2.0, -1.0)]
    parts = assemble([passage(0, "x")], [Extraction(triples=(("B", "", "C"),), statements=tuple(said_twice))])
    assert {named(parts)[i][0]: parts.triples[i][4] for i in range(2)} == {"A": -1.0, "B": 1.0}


def test_a_sentence_without_a_triple_and_names_without_a_sentence() -> None:
    extraction = Extraction(statements=(Statement("It rained."),), names=("Soloist", "SOLOIST", "<p></p>"))
    parts = assemble([passage(0, "x")], [extraction])
    assert (parts.facts, parts.triples, parts.entities) == (["It rained."], [], [("soloist", "Soloist")])
    assert parts.forms == {0: [("SOLOIST", 1), ("Soloist", 1)]}


def test_self_loops_are_counted_once_each() -> None:
    """A12."""
    loops = given_triples(("Abel Works", "owns", "ABEL WORKS"), ("A", "r", "a"))
    parts = assemble([passage(0, "x"), passage(1, "y")], [loops, loops])
    assert (parts.self_loops, parts.triples, keys(parts)) == (2, [], ["a", "abel works"])


def test_aliases_merge_in_triples_texts_and_titles_and_the_name_shown_is_that_of_the_table() -> None:
    text = "IBM hired Orla Venn."
    passages = [passage(0, text), passage(1, "x", "I.B.M."), passage(2, "y")]
    extractions = [
        said(text, ["Orla Venn"]),
        Extraction(),
        given_triples(("IBM", "made", "PC"), ("PC", "by", "I.B.M.")),
    ]
    aliases = table(aliases=[("IBM", "Big Blue Ltd"), ("I.B.M.", "IBM")])
    parts = assemble(passages, extractions, aliases)
    assert parts.entities == [("big blue ltd", "Big Blue Ltd"), ("orla venn", "Orla Venn"), ("pc", "PC")]
    assert parts.subjects.tolist() == [-1, 0, -1]
    assert ("Big Blue Ltd", "", "Orla Venn", text) in named(parts)
    assert parts.forms[0] == [("I.B.M.", 2), ("IBM", 2)]
    assert keys(assemble(passages, extractions)) == ["i.b.m.", "ibm", "orla venn", "pc"]  # without the table: undone


def test_an_alias_that_makes_a_self_loop() -> None:
    parts = assemble(
        [passage(0, "x")], [given_triples(("IBM", "is", "Big Blue"))], table(aliases=[("IBM", "Big Blue")])
    )
    assert (parts.self_loops, keys(parts)) == (1, ["big blue"])


def test_a_shared_form_means_the_entity_that_its_passage_is_given() -> None:
    """B03: the title and the text of a passage on one Lee Moss do not speak of the other."""
    known = table(aliases=[("Lee Moss", "Lee Moss (diver)"), ("Lee Moss", "Lee Moss (treasurer)")])
    text = "Lee Moss met Zorin."
    passages = [passage(i, text, "Lee Moss") for i in range(3)]
    extractions = [
        unite([said(text, ["Lee Moss", "Zorin"]), Extraction(names=names)])
        for names in (("Lee Moss (diver)",), ("Lee Moss (treasurer)",), ())
    ]
    parts = assemble(passages, extractions, known)
    assert keys(parts) == ["lee moss", "lee moss (diver)", "lee moss (treasurer)", "zorin"]
    assert parts.subjects.tolist() == [1, 2, 0]
    assert parts.mentions.tolist() == [[0, 1], [0, 3], [1, 2], [1, 3], [2, 0], [2, 3]]
    assert parts.aliases == [(0, 1), (0, 2)]
    assert parts.apart == [(1, 2)]
    assert [name for _, name in parts.entities[1:3]] == ["Lee Moss (diver)", "Lee Moss (treasurer)"]


# --- invariants


NAMES = [
    "Tarn Mill",
    "TARN MILL",
    "Orla Venn",
    "Lee Moss (diver)",
    "Lee Moss (cook)",
    "Lee Moss",
    "李明",
    "Mercury",
    "",
    "C",
]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "r", "s"]), st.sampled_from(NAMES)), max_size=3
        ),
    ),
    max_size=6,
)
Rows = list[tuple[str, list[str], list[tuple[str, str, str]]]]


def build(rows: Rows) -> tuple[list[Passage], list[Extraction]]:
    passages, extractions = [], []
    for number, (title, names, triples) in enumerate(rows):
        text = f"{' met '.join(names)}."
        one = said(text, [n for n in names if n])
        passages.append(passage(number, text, title))
        extractions.append(Extraction(one.sentences, one.mentions, one.predicates, tuple(triples)))
    return passages, extractions


@given(ROWS)
def test_parts_hold_together(rows: Rows) -> None:
    parts = assemble(*build(rows))
    count = len(parts.entities)
    assert keys(parts) == sorted(set(keys(parts)))
    assert all(key and name for key, name in parts.entities)
    assert len(set(parts.facts)) == len(parts.facts) == len(parts.fact_passages)
    assert all(p and set(p) <= set(range(len(rows))) for p in parts.fact_passages)
    assert [t[2] for t in parts.triples] == sorted(t[2] for t in parts.triples)
    assert len({t[:3] for t in parts.triples}) == len(parts.triples)
    assert all(h != t and max(h, t) < count and f < len(parts.facts) and w == 1.0 for h, t, f, _, w in parts.triples)
    pairs = [tuple(m) for m in parts.mentions.tolist()]
    assert pairs == sorted(set(pairs))
    for head, tail, fact, _, _ in parts.triples:
        # A sentence that several passages state is one fact: at least one of them mentions both ends.
        assert any({(passage, head), (passage, tail)} <= set(pairs) for passage in parts.fact_passages[fact])
    assert {e for _, e in pairs} == set(range(count))


@given(ROWS, st.integers(0, 99))
def test_the_order_of_input_plays_no_part_once_sorted(rows: Rows, seed: int) -> None:
    together = list(zip(*build(rows), strict=True))
    expected = assemble([p for p, _ in together], [x for _, x in together])
    random.Random(seed).shuffle(together)
    together.sort(key=lambda row: row[0].id)
    found = assemble([p for p, _ in together], [x for _, x in together])
    assert (found.entities, found.facts, found.fact_passages) == (
        expected.entities,
        expected.facts,
        expected.fact_passages,
    )
    assert (found.triples, found.aliases) == (expected.triples, expected.aliases)
    np.testing.assert_array_equal(found.mentions, expected.mentions)


def test_two_processes_make_the_same_graph() -> None:
    program = (
        "from gfm.extract.extraction import Extraction\n"
        "from gfm.graph.assemble import assemble\n"
        "from gfm.types import Passage\n"
        "titles = [f'Lee Moss ({k})' for k in 'dcab'] + ['Lee Moss', 'Port Isk']\n"
        "text = 'Lee Moss met Lee Moss (a) at Port Isk.'\n"
        "ps = [Passage(str(i), str(i), t, text, 0, len(text)) for i, t in enumerate(titles)]\n"
        "print(assemble(ps, [Extraction(((0, len(text)),), triples=(('A', 'r', t),)) for t in titles]))\n"
    )
    root = Path(__file__).parents[2]
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "GraphParts" in outputs.pop()


def test_a_change_of_the_rules_raises_their_number(repository: Path) -> None:
    """What texts say must not change under an index that grows. Where this fails, RULES goes up with the digest."""
    documents = read_documents(repository / "data" / "demo" / "corpus.jsonl").documents[:60]
    passages = split_all(documents, HashingEncoder(16), BuildSettings(chunk_tokens=60))
    parts = assemble(passages, Capitals().extract(passages))
    said = [p.id for p in passages], parts.entities, parts.facts, parts.triples, parts.mentions.tolist(), parts.aliases
    digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()
    assert (RULES, digest[:16]) == (1, "d859101c06525c8c")
