from __future__ import annotations

from pathlib import Path

import pytest

from gfm.exchange.exchange import import_graph
from gfm.exchange.ntriples import detect, read
from gfm.types import GfmError, GivenTriple

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
FOREIGN = f"""<http://x/Q1> <{RDFS}label> "Tarn Mill"@en .
<http://x/Q1> <{RDFS}label> "Tarnmühle"@de .
<http://x/Q1> <{RDF}type> <http://x/Mill> .
<http://x/Mill> <{RDFS}label> "water mill" .
<http://x/Q1> <{RDFS}comment> "Burned in 1920." .
<http://x/Q1> <http://x/builtBy> <http://x/Orla_Venn> .
<http://x/Q1> <http://x/P571> "1911"^^<http://www.w3.org/2001/XMLSchema#gYear> .
<http://x/P571> <{RDFS}label> "inception"@en .
<http://x/Orla_Venn> <http://x/knows> _:b1 .
"""


def file(folder: Path, text: str) -> Path:
    path = folder / "g.nt"
    path.write_text(text, encoding="utf-8")
    return path


def test_any_rdf(tmp_path: Path) -> None:
    tables = read(file(tmp_path, FOREIGN))
    assert detect(tmp_path)
    rows = {e.id: e for e in tables.entities}
    mill = rows["http://x/Q1"]
    assert (mill.name, mill.type, mill.description, mill.aliases) == (
        *("Tarn Mill", "water mill", "Burned in 1920."),
        ("Tarnmühle",),
    )
    assert (rows["http://x/Orla_Venn"].name, rows["_:b1"].name) == ("Orla Venn", "")
    assert "http://x/Mill" not in rows
    assert {(t.head, t.relation, t.tail, t.tail_id) for t in tables.triples} == {
        ("Tarn Mill", "built by", "Orla Venn", "http://x/Orla_Venn"),
        ("Tarn Mill", "inception", "1911", ""),
        ("Orla Venn", "knows", "", "_:b1"),
    }
    found = import_graph(tmp_path, tmp_path / "index", encoder="hashing:16")
    assert found.index is not None
    assert "Tarn Mill built by Orla Venn" in found.index.fact_texts
    assert "Orla Venn knows unnamed entity 1" in found.index.fact_texts


def test_two_resources_of_one_label_stay_apart(tmp_path: Path) -> None:
    """B03."""
    lines = [
        f'<http://x/{i}> <{RDFS}label> "Mercury" .\n<http://x/{i}> <http://x/is> <http://x/o{i}> .\n' for i in "12"
    ]
    found = import_graph(file(tmp_path, "".join(lines)), tmp_path / "i", encoder="hashing:16")
    assert found.homonyms == ["Mercury"]
    assert found.index is not None
    names = [found.index.entity(i).name for i in range(found.index.graph.num_entities)]
    assert names == ["Mercury (http://x/1)", "Mercury (http://x/2)", "o1", "o2"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f'<urn:p> <{RDF}type> <urn:gfm:Passage> .\n<urn:p> <urn:gfm:text> "x" .\n', 1, "expected the id of a passage"),
        (f"<urn:s> <{RDF}type> <{RDF}Statement> .\n", 1, "expected a statement with one subject"),
        (f"<urn:e> <{RDFS}label> <urn:e> .\n<urn:e> <urn:gfm:mentionedIn> <urn:p> .\n", 2, "unknown passage 'urn:p'"),
        ("x\n", 1, "expected one statement of N-Triples"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(GfmError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)


def test_a_blank_literal_is_left_out_and_told(tmp_path: Path) -> None:
    tables = read(file(tmp_path, '<urn:x:A> <urn:x:r> " " .\n<urn:x:A> <urn:x:r> <urn:x:B> .\n'))
    assert [(t.head, t.tail) for t in tables.triples] == [("A", "B")]
    assert tables.notes == [f"{tmp_path / 'g.nt'}:1: a literal of which nothing can be seen, left out"]
    assert isinstance(tables.triples[0], GivenTriple)
