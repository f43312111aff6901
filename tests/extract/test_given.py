import json
from pathlib import Path

import pytest

from gfm.extract.extraction import Extraction, Extractor
from gfm.extract.given import GivenTable, GivenTriples, read_triples
from gfm.types import GfmError, Passage


def triples(folder: Path, *rows: object) -> Path:
    path = folder / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(head: str, relation: str, tail: str, passage: object) -> dict[str, object]:
    return {"head": head, "relation": relation, "tail": tail, "passage_id": passage}


BUILT = ("Tarn Mill", "built by", "Orla Venn")
BORN = ("Orla Venn", "born in", "Port Isk")


def test_triples_by_passage_in_order(tmp_path: Path) -> None:
    path = triples(
        tmp_path, row(*BORN, "p2"), row(*BUILT, "p1"), row("Orla\x00 Venn ", "", "Mill", 2), row(*BUILT, "p2")
    )
    assert read_triples(path) == {"p2": [BORN, BUILT], "p1": [BUILT], "2": [("Orla Venn", "", "Mill")]}


def test_self_loops_are_dropped_and_counted(tmp_path: Path) -> None:
    path = triples(tmp_path, row("Abel Works", "owns", "ABEL  works", "p1"), row(*BUILT, "p1"))
    assert read_triples(path) == {"p1": [BUILT]}
    assert GivenTriples(path).self_loops == 1


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
        read_triples(path)
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


def test_settings_change_with_the_triples_and_nothing_is_cached(tmp_path: Path) -> None:
    rows = [row(*BUILT, "p1"), row(*BORN, "p1"), row(*BORN, "p2")]
    given: Extractor = GivenTriples(triples(tmp_path, *rows))
    assert (given.name, given.cached) == ("given", False)
    assert given.settings.startswith("given-2:")
    assert GivenTriples(triples(tmp_path, rows[2], *rows[:2])).settings == given.settings
    assert GivenTriples(triples(tmp_path, rows[1], rows[0], rows[2])).settings != given.settings
    assert GivenTriples(triples(tmp_path, *rows[:2], row(*BORN, "p3"))).settings != given.settings


def test_a_table_is_made_again_from_its_rows(tmp_path: Path) -> None:
    given = GivenTriples(triples(tmp_path, row(*BORN, "p2"), row("李明", "", "Mill", "p1"), row(*BUILT, "p2")))
    assert [json.loads(line)[0] for line in given.rows] == ["p1", "p2"]
    again = GivenTable.restore(given.rows)
    assert (again.rows, again.settings) == (given.rows, given.settings)
    assert again.of("p2") == [BORN, BUILT]
    assert again.of("p3") == []


def test_tables_are_united_document_by_document() -> None:
    one, two = GivenTable({"p1": [BUILT], "p2": [BORN]}), GivenTable({"p2": [BUILT], "p3": [BORN]})
    assert one.united(two).rows == GivenTable({"p1": [BUILT], "p2": [BUILT], "p3": [BORN]}).rows
    assert one.without(["p1", "p9"]).rows == GivenTable({"p2": [BORN]}).rows


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
