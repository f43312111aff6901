from __future__ import annotations

from pathlib import Path

import networkx
import pytest

from gfm.exchange.exchange import export_graph, import_graph
from gfm.exchange.graphml import detect, read
from gfm.types import GfmError, GivenEntity, GivenTriple


def save(folder: Path, graph: networkx.Graph) -> Path:
    networkx.write_graphml(graph, folder / "g.graphml")
    return folder / "g.graphml"


def test_a_graph_whose_ids_are_names(tmp_path: Path) -> None:
    """A11: the direction stays, also where the subject sorts last."""
    graph = networkx.DiGraph()
    graph.add_node("Abel Works", type="firm", description="Old.", size=3)
    graph.add_edge("Zorin", "Abel Works", label="acquired", weight=2.5, colour="red")
    tables = read(save(tmp_path, graph))
    assert tables.entities == [GivenEntity("Abel Works", "", "firm", "Old."), GivenEntity("Zorin")]
    assert tables.triples == [GivenTriple("Zorin", "acquired", "Abel Works", (), 2.5)]
    assert tables.notes == [
        "attributes of nodes that are not known, left out: size",
        "attributes of edges that are not known, left out: colour",
    ]
    assert detect(tmp_path)
    index = import_graph(tmp_path, tmp_path / "index", encoder="hashing:16").index
    assert index is not None
    triple = index.triple(0)
    assert (triple.head, triple.relation, triple.tail, triple.text, triple.weight) == (
        *("Zorin", "acquired", "Abel Works", "Zorin acquired Abel Works"),
        2.5,
    )


def test_labelled_nodes_keep_their_ids_and_parallel_edges_stay(tmp_path: Path) -> None:
    graph = networkx.MultiDiGraph()
    graph.add_node("n1", name="Lee Moss", category="diver")
    graph.add_node("n2", name="Lee Moss", category="cook")
    graph.add_node("n3")
    graph.add_edge("n1", "n3", relation="at")
    graph.add_edge("n1", "n3", relation="near")
    tables = read(save(tmp_path, graph))
    assert [(e.name, e.id, e.type) for e in tables.entities] == [
        ("Lee Moss", "n1", "diver"),
        ("Lee Moss", "n2", "cook"),
        ("", "n3", ""),
    ]
    assert [(t.head_id, t.relation, t.tail_id) for t in tables.triples] == [("n1", "at", "n3"), ("n1", "near", "n3")]
    found = import_graph(tmp_path / "g.graphml", None)
    assert (found.homonyms, found.unnamed, found.index) == (["Lee Moss"], 1, None)


def test_control_characters_and_noncharacters_never_make_an_unreadable_file(tmp_path: Path) -> None:
    """B13."""
    rows = '{"_id": "p", "text": "a\\u0000b\\uffff"}\n'
    (tmp_path / "corpus.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "triples.jsonl").write_text(
        '{"head": "Bell\\u0007 Tower", "relation": "in", "tail": "Isk\\uffff", "passage_id": "p"}\n', encoding="utf-8"
    )
    import_graph(tmp_path, tmp_path / "a", encoder="hashing:16")
    export_graph(tmp_path / "a", tmp_path / "out", "graphml")
    found = import_graph(tmp_path / "out", tmp_path / "b", encoder="hashing:16")
    assert found.index is not None
    assert found.index.manifest["counts"] | {"self_loops": 0} == found.index.manifest["counts"]
    names = sorted(found.index.entity(i).name for i in range(found.index.graph.num_entities))
    assert names == ["Bell Tower", "Isk\ufffd"]
    assert found.index.passage(0).text == "ab\ufffd"


@pytest.mark.parametrize(
    ("node", "edge", "words"),
    [
        ({"kind": "passage", "text": " "}, {}, "expected a text that is not blank"),
        ({"kind": "passage", "text": "x", "metadata": "[1]"}, {}, "'metadata': expected JSON like {}"),
        ({"kind": "entity", "aliases": "{"}, {}, "'aliases': expected JSON"),
        ({}, {"weight": "heavy"}, "'weight': expected a number, found 'heavy'"),
        ({"kind": "fact", "text": "x"}, {}, "expected an edge between entities"),
    ],
)
def test_bad_values_are_named_by_file_and_line(
    tmp_path: Path, node: dict[str, str], edge: dict[str, str], words: str
) -> None:
    graph = networkx.DiGraph()
    graph.add_node("a", **node)
    graph.add_edge("a", "b", **edge)
    path = save(tmp_path, graph)
    with pytest.raises(GfmError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:")
    assert words in str(error.value)
