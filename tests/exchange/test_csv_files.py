from __future__ import annotations

from pathlib import Path

import pytest

from gfm.exchange.csv_files import detect, read
from gfm.exchange.exchange import import_graph
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

Z = """head,rel,tail,passage_id
Tarn Mill,built by,Orla Venn,p1
Orla Venn,born in,Port Isk,p2
Port Isk,lies on,Halder Sea,p3
Halder Sea,freezes in,winter,p4
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_bytes(text.encode())
    return folder


def test_triples_beside_passages_in_jsonl(tmp_path: Path, z_files: Path) -> None:
    """B12: a graph of one's own, without a language model."""
    write(tmp_path, triples=Z)
    (tmp_path / "passages.jsonl").write_bytes((z_files / "corpus.jsonl").read_bytes())
    assert detect(tmp_path)
    index = import_graph(tmp_path, tmp_path / "index", encoder="hashing:64").index
    assert index is not None
    assert (index.graph.num_triples, index.graph.num_passages) == (4, 5)
    found = [index.passage_ids[i] for i in index.passage_vectors.search(index.encode(["Orla Venn born"]), 1)[0][0]]
    assert found == ["p2"]


def test_three_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        entities='ID,Name,Type,Aliases,colour\n1,Tarn Mill,mill,"[""TM"",""Mill""]",red\n2,,place,,\n',
        triples="head,relation,tail_id,tail,weight,passage_ids\nTarn Mill,in,2,,2.5,p1\n1,,,tarn mill,,\n",
        passages='id,title,text,metadata,year\np1,Mill,"Tarn\r\nMill.","{""a"": 1}",1911\n',
    )
    tables = read(tmp_path)
    assert tables.documents == [Document("p1", "Mill", "Tarn\nMill.", {"a": 1, "year": "1911"})]
    assert tables.entities == [GivenEntity("Tarn Mill", "1", "mill", "", ("TM", "Mill")), GivenEntity("", "2", "place")]
    assert tables.triples == [
        GivenTriple("Tarn Mill", "in", "", ("p1",), 2.5, tail_id="2"),
        GivenTriple("", "", "tarn mill", head_id="1"),
    ]
    assert tables.notes == ["entities.csv: columns that are not known, left out: colour"]


def test_ids_with_gaps_and_an_unknown_node(tmp_path: Path) -> None:
    """A10."""
    write(tmp_path, nodes="id\n3\n7\n12\n", edges="source,target\n3,7\n7,99\n")
    with pytest.raises(GfmError, match=r"edges\.csv:3: unknown node '99'"):
        read(tmp_path)
    write(tmp_path, edges="source,target\n3,7\n7,12\n")
    tables = read(tmp_path)
    assert [e.name for e in tables.entities] == ["3", "7", "12"]
    assert [(t.head, t.tail, t.head_id) for t in tables.triples] == [("3", "7", ""), ("7", "12", "")]


def test_a_reference_is_an_id_before_a_name_and_a_name_before_an_id(tmp_path: Path) -> None:
    write(tmp_path, nodes="id,name\n7,Tarn\n8,7\n", edges="source,label,target\n7,r,8\n")
    (edge,) = read(tmp_path).triples
    assert (edge.head, edge.head_id, edge.tail_id) == ("", "7", "8")
    write(tmp_path, edges="head,label,tail\n7,r,8\n")
    (edge,) = read(tmp_path).triples
    assert (edge.head, edge.head_id, edge.tail_id) == ("7", "", "8")


def test_a_label_that_is_missing_is_no_id_for_people(tmp_path: Path) -> None:
    """A15: the context never shows e17."""
    write(tmp_path, entities="id,name,type\ne17,,place\ne1,Tarn Mill,\n", triples="head,relation,tail\ne17,near,e1\n")
    found = import_graph(tmp_path, tmp_path / "index", encoder="hashing:16")
    assert found.index is not None
    assert found.unnamed == 1
    texts = [*found.index.fact_texts, found.index.passage(0).text, *found.index.passage_ids]
    assert "unnamed place 1 near Tarn Mill" in found.index.fact_texts
    assert not any("e17" in text for text in texts)


def test_a_file_of_triples_alone(tmp_path: Path) -> None:
    path = write(tmp_path, my=Z) / "my.csv"
    assert detect(path)
    assert len(read(path).triples) == 4
    with pytest.raises(GfmError, match=r"my\.csv: expected at least one row"):
        read(write(tmp_path, my="head,relation,tail\n") / "my.csv")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"passages": "id,text\np1,x\np1,y\n", "triples": Z}, r"passages\.csv:3: the id 'p1' stands on line 2"),
        ({"passages": "id,text\n,x\n", "triples": Z}, r"passages\.csv:2: expected the id of a passage"),
        ({"passages": "id,text\np1,\n", "triples": Z}, r"passages\.csv:2: expected a text"),
        ({"passages": "id,text,metadata\np1,x,[1]\n", "triples": Z}, r"passages\.csv:2: 'metadata': expected a JSON"),
        ({"passages": "id,text,metadata\np1,x,{\n", "triples": Z}, r"passages\.csv:2: 'metadata': expected JSON"),
        (
            {"passages": "id,text,sections\np1,x,[[1]]\n", "triples": Z},
            r"'p1': 'sections': expected \[title, start, end",
        ),
        ({"triples": "head,relation,tail\nA,r,\n"}, r"triples\.csv:2: expected the field 'tail'"),
        ({"triples": "head,relation,tail,weight\nA,r,B,x\n"}, r"triples\.csv:2: 'weight': expected a number"),
        ({"triples": Z, "edges": Z}, r"found triples\.csv and edges\.csv"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(GfmError, match=words):
        read(write(tmp_path, **files))
