import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gfm.extract.extraction import Extraction, Extractor, Statement
from gfm.extract.given import GivenGraph, GivenTriples
from gfm.extract.resolve import resolve
from gfm.types import GfmError, GivenEntity, GivenTriple, Passage


def triples(folder: Path, *rows: object) -> Path:
    path = folder / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(head: str, relation: str, tail: str, passage: object) -> dict[str, object]:
    return {"head": head, "relation": relation, "tail": tail, "passage_id": passage}


def passage(identifier: str, text: str = "One text.", document: str = "") -> Passage:
    return Passage(identifier, document or identifier, "", text, 0, len(text))


BUILT = ("Tarn Mill", "built by", "Orla Venn")
BORN = ("Orla Venn", "born in", "Port Isk")


def test_triples_by_passage_in_order(tmp_path: Path) -> None:
    path = triples(
        tmp_path, row(*BORN, "p2"), row(*BUILT, "p1"), row("Orla\x00 Venn ", "", "Mill", 2), row(*BUILT, "p2")
    )
    found = GivenTriples(path).extract([passage("2"), passage("p1"), passage("p2")])
    assert [x.triples for x in found] == [(("Orla Venn", "", "Mill"),), (BUILT,), (BORN, BUILT)]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"relation": "r", "tail": "B", "passage_id": "p"}, "expected the field 'head'"),
        ({"head": "A", "relation": "r", "passage_id": "p"}, "expected the field 'tail'"),
        ({"head": "A", "tail": "B", "passage_id": "p"}, "expected the field 'relation'"),
        ({"head": "A", "relation": "r", "tail": "B"}, "expected the field 'passage_id'"),
        (row(" ", "r", "B", "p"), "'head' is blank"),
        (row("A", "r", "\u200b", "p"), "'tail' is blank"),
        (row("A", "r", "<p></p>", "p"), "'tail': expected a name"),
        (row(3, "r", "B", "p"), "'head': expected a string, found a number"),
        (row("A", ["r"], "B", "p"), "'relation': expected a string, found an array"),
        (row("A", "r", "B", 1.5), "'passage_id': expected a string or a whole number"),
        (["A", "r", "B"], "expected a JSON object, found an array"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, bad: object, words: str) -> None:
    path = triples(tmp_path, row(*BUILT, "p1"), bad)
    with pytest.raises(GfmError) as error:
        GivenTriples(path)
    assert str(error.value).startswith(f"{path}:2: ")
    assert words in str(error.value)


def test_a_file_without_triples_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="found none"):
        GivenTriples(triples(tmp_path))


def test_check_names_the_first_line_of_an_unknown_passage(tmp_path: Path) -> None:
    path = triples(tmp_path, row(*BUILT, "p1"), row("A", "is", "a", "p8"), row(*BUILT, "p9"), row(*BORN, "p9"))
    given = GivenTriples(path)
    with pytest.raises(GfmError, match=r"jsonl:2: .*found 'p8' \(2 such ids"):
        given.check(["p1"])
    given.check({"p1", "p8", "p9"})


def test_settings_change_with_the_file_and_nothing_is_cached(tmp_path: Path) -> None:
    path = triples(tmp_path, row(*BUILT, "p1"))
    given: Extractor = GivenTriples(path)
    (one,) = given.rows
    assert given.settings == "given-3:" + hashlib.sha256(one.encode()).hexdigest()
    assert given.cached is False
    assert GivenTriples(triples(tmp_path, row(*BUILT, "p2"))).settings != given.settings


def test_extract_looks_up_by_document_not_by_text(tmp_path: Path) -> None:
    given = GivenTriples(triples(tmp_path, row(*BUILT, "p1"), row(*BORN, "p2")))
    same = [Passage(i, i, "", "One text.", 0, 9) for i in ("p2", "p3", "p1")]
    assert given.extract(same) == [Extraction(triples=(BORN,)), Extraction(), Extraction(triples=(BUILT,))]
    assert given.extract([]) == []


def test_the_first_chunk_that_names_both_ends_gets_the_triple(tmp_path: Path) -> None:
    lies = ("Port Isk", "lies on", "Halder Sea")
    subject = ("Orla Venn", "fond of", "tea")
    nowhere = ("Lee Moss", "dives at", "Port Isk")
    given = GivenTriples(triples(tmp_path, *(row(*t, "d") for t in (BORN, lies, subject, nowhere))))
    texts = ["Nothing here.", "She was born in PORT ISK.", "Port Isk is on the Halder\nSea; she drinks tea."]
    chunks = [Passage(f"d#{i}", "d", "Orla Venn", text, 100 * i, 100 * i + len(text)) for i, text in enumerate(texts)]
    expected = [(nowhere,), (BORN,), (lies, subject)]
    assert [x.triples for x in given.extract(chunks)] == expected
    assert [x.triples for x in given.extract(chunks[::-1])] == expected[::-1]


def given_graph(entities: list[GivenEntity], *triples: GivenTriple) -> GivenGraph:
    return GivenGraph(resolve(entities, list(triples)))


def test_what_a_row_says_beside_three_names_makes_a_statement() -> None:
    given = given_graph(
        [GivenEntity("Solo", passage_ids=("p2",))],
        GivenTriple(*BUILT, ("p1",), weight=2.0),
        GivenTriple(*BORN, ("p1",), description="She was born there."),
        GivenTriple("", "", "", ("p1", "p2"), text="It rained."),
    )
    first, second = given.extract([passage("p1"), passage("p2")])
    assert first.statements == (
        Statement("It rained."),
        Statement("Orla Venn born in Port Isk: She was born there.", *BORN, description="She was born there."),
        Statement("Tarn Mill built by Orla Venn", *BUILT, weight=2.0),
    )
    assert (second.statements, second.names) == ((Statement("It rained."),), ("Solo",))


def test_weights_of_rows_that_say_the_same_are_added_in_any_order() -> None:
    """A row without a weight adds nothing, and a row of several passages counts once."""
    rows = [
        GivenTriple(*BUILT, ("p1", "p2"), weight=0.1),
        GivenTriple("TARN MILL", "built by", "Orla Venn", ("p2",), weight=0.2, text="Tarn Mill built by Orla Venn"),
        GivenTriple(*BUILT, ("p1",), weight=0.3),
        GivenTriple(*BUILT, ("p1",)),
    ]
    one = given_graph([], *rows).extract([passage("p1"), passage("p2")])
    assert one == given_graph([], *rows[::-1]).extract([passage("p1"), passage("p2")])
    assert [[s.weight for s in x.statements] for x in one] == [[pytest.approx(0.6)], [pytest.approx(0.6)]]
    assert [x.triples for x in one] == [(BUILT,), ()]


def test_a_description_is_a_sentence_of_every_passage_that_mentions_the_entity() -> None:
    given = given_graph(
        [
            GivenEntity("Tarn Mill", description="Burned in 1920.", passage_ids=("p1",)),
            GivenEntity("Orla Venn", description="Orla Venn was a builder."),
        ],
        GivenTriple(*BUILT, ("p2",)),
    )
    first, second = given.extract([passage("p1"), passage("p2")])
    assert first.statements == (Statement("Tarn Mill: Burned in 1920."),)
    assert second.statements == (Statement("Orla Venn was a builder."), Statement("Tarn Mill: Burned in 1920."))


def test_a_row_may_name_a_passage_of_a_document() -> None:
    chunks = [passage("d#0", "Nothing."), passage("d#1", "Orla Venn built Tarn Mill."), passage("d#2", "Tarn Mill.")]
    chunks = [replace(p, document_id="d", start=i) for i, p in enumerate(chunks)]
    given = given_graph(
        [GivenEntity("Tarn Mill", passage_ids=("d",)), GivenEntity("Nobody", passage_ids=("d",))],
        GivenTriple(*BUILT, ("d#2",)),
        GivenTriple(*BUILT, ("d#7",), text="She built it."),
    )
    given.check({"d"})
    found = given.extract(chunks)
    assert [x.triples for x in found] == [(), (), (BUILT,)]
    assert [x.names for x in found] == [("Nobody",), ("Tarn Mill",), ("Tarn Mill",)]
    assert [len(x.statements) for x in found] == [0, 1, 0]
    with pytest.raises(GfmError, match="'e#1'"):
        given_graph([], GivenTriple(*BUILT, ("e#1",))).check({"d"})


def test_settings_of_a_graph_change_with_its_rows_and_not_with_their_order_or_place() -> None:
    rows = [GivenTriple(*BUILT, ("p1",), place="a:1"), GivenTriple(*BORN, ("p1",))]
    one, other = given_graph([], *rows), given_graph([], rows[1], replace(rows[0], place="b:9"))
    assert one.settings == other.settings
    assert one.settings != given_graph([], rows[0]).settings


def test_what_each_document_says() -> None:
    """An id with # is a document's own, where there is such a document, and else names a passage."""
    rows = [
        GivenTriple("A", "is", "B", ("a",)),
        GivenTriple("C", "is", "D", ("a#1", "b")),
        GivenTriple("E", "is", "F", ("a#1",)),
    ]
    given = GivenGraph(resolve([], rows))
    for known, of_a in (({"a", "b"}, [rows[0], rows[2], rows[1]]), ({"a", "b", "a#1"}, rows[:1])):
        assert given.documents(known) == known
        assert given.of("a", known) == of_a
        left = given.without({"a"}, known).resolved.triples
        assert [t.head for t in left] == (["C"] if len(known) == 2 else ["E", "C"])
        assert {p for t in left for p in t.passage_ids} == known - {"a"}
    assert [t.passage_ids for t in given.without({"b"}, {"a", "b"}).resolved.triples] == [("a",), ("a#1",), ("a#1",)]
    other = GivenGraph(resolve([], [GivenTriple("G", "is", "H", ("a",))]))
    assert [t.head for t in given.united(other, {"a", "b"}).resolved.triples] == ["G", "C"]


def test_entities_go_with_the_last_that_names_them() -> None:
    rows = [
        GivenEntity("A", "1", passage_ids=("p",)),
        GivenEntity("B", "2", passage_ids=("p", "q")),
        GivenEntity("C", "3", passage_ids=("p",)),
        GivenEntity("D", "4"),
    ]
    given = given_graph(rows, GivenTriple("C", "is", "D", ("q",)), GivenTriple("A", "is", "D", ("p",)))
    left = given.without({"p"}, {"p", "q"}).resolved
    assert [(e.name, e.passage_ids) for e in left.entities] == [("B", ("q",)), ("C", ()), ("D", ())]
    assert [t.head for t in left.triples] == ["C"]
    with pytest.raises(GfmError, match="found entities with ids, types or descriptions"):
        given.united(given, {"p", "q"})


def test_the_rows_make_the_same_graph_again() -> None:
    given = given_graph(
        [GivenEntity("Lee Moss", "1", "diver", "Dives.", ("Moss",), ("p",)), GivenEntity("Lee Moss", "2", "cook")],
        GivenTriple("Lee Moss", "met", "Lee Moss", ("p", "q"), 0.5, "twice", "They met.", "1", "2"),
    )
    again = GivenGraph.restore(given.rows)
    assert (again.settings, again.rows) == (given.settings, given.rows)
    assert again.resolved.table == given.resolved.table
    passages = [Passage(i, i, "", "Text.", 0, 5) for i in "pq"]
    assert again.extract(passages) == given.extract(passages)
