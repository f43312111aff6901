from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from gfm.exchange.exchange import export_graph, import_graph
from gfm.exchange.lightrag import CHUNKS, GRAPH, detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple


def save(folder: Path, graph: networkx.Graph, chunks: object) -> Path:
    networkx.write_graphml(graph, folder / GRAPH)
    (folder / CHUNKS).write_text(json.dumps(chunks), encoding="utf-8")
    return folder


def light(folder: Path) -> Path:
    graph = networkx.Graph()
    graph.add_node(
        "Tarn Mill",
        entity_id="Tarn Mill",
        entity_type="building",
        description="An old mill.<SEP>Burned.<SEP>An old mill.",
        source_id="chunk-1<SEP>chunk-2",
        file_path="mills.txt",
    )
    graph.add_node("Orla Venn", entity_id="Orla Venn", entity_type="UNKNOWN", description="", source_id="chunk-1")
    graph.add_node("Solo", entity_id="Solo", entity_type="cat", description="A cat.", source_id="manual")
    graph.add_edge(
        "Tarn Mill", "Orla Venn", weight=2.0, description="She built it.", keywords="building,work", source_id="chunk-1"
    )
    chunks = {
        "chunk-1": {"content": "Tarn Mill was built by Orla Venn.", "full_doc_id": "doc-1", "file_path": "Tarn Mill"},
        "chunk-2": {"content": "It burned.", "full_doc_id": "chunk-2", "file_path": "unknown_source", "tokens": 3},
    }
    return save(folder, graph, chunks)


def nano(folder: Path) -> Path:
    graph = networkx.Graph()
    graph.add_node('"TARN MILL"', entity_type='"GEO"', description='"An old mill"', source_id="chunk-1")
    graph.add_node('"R&amp;D LAB"', entity_type='"ORGANIZATION"', description='"A lab"<SEP>"Shut"', source_id="chunk-1")
    graph.add_edge('"TARN MILL"', '"R&amp;D LAB"', weight=1.5, description='"Next door"', source_id="chunk-1", order=1)
    return save(folder, graph, {"chunk-1": {"content": "Both are there.", "chunk_order_index": 0, "tokens": 3}})


def test_lightrag(tmp_path: Path) -> None:
    tables = read(light(tmp_path))
    assert detect(tmp_path)
    assert detect(tmp_path / GRAPH)
    assert tables.documents == [
        Document("chunk-1", "Tarn Mill", "Tarn Mill was built by Orla Venn.", {"document_id": "doc-1"}),
        Document("chunk-2", "", "It burned."),
    ]
    assert tables.entities == [
        GivenEntity("Tarn Mill", "", "building", "An old mill. Burned.", (), ("chunk-1", "chunk-2")),
        GivenEntity("Orla Venn", "", "", "", (), ("chunk-1",)),
        GivenEntity("Solo", "", "cat", "A cat."),
    ]
    assert tables.triples == [
        GivenTriple("Tarn Mill", "building,work", "Orla Venn", ("chunk-1",), 2.0, "She built it.")
    ]
    (note,) = tables.notes
    assert note.startswith("chunks that nodes and edges name that are not there, left out: 1, such as 'manual' (")


def test_nano_graphrag_loses_its_quotes(tmp_path: Path) -> None:
    tables = read(nano(tmp_path))
    assert [(e.name, e.type, e.description) for e in tables.entities] == [
        ("TARN MILL", "GEO", "An old mill"),
        ("R&D LAB", "ORGANIZATION", "A lab Shut"),
    ]
    assert tables.triples == [GivenTriple("TARN MILL", "", "R&D LAB", ("chunk-1",), 1.5, "Next door")]


def test_a_graph_without_its_chunks(tmp_path: Path) -> None:
    light(tmp_path)
    (tmp_path / CHUNKS).unlink()
    found = import_graph(tmp_path, tmp_path / "index", encoder="hashing:16")
    assert found.index is not None
    assert found.index.passage_ids == ["entity:Solo", "entity:Tarn Mill"]


def test_what_is_written_is_a_simple_undirected_graph(rich_index: Path, tmp_path: Path) -> None:
    notes = export_graph(rich_index, tmp_path / "out", "lightrag")
    graph = networkx.read_graphml(tmp_path / "out" / GRAPH)
    assert type(graph) is networkx.Graph
    assert graph.nodes["Tarn Mill"]["entity_type"] == "UNKNOWN"
    edge = graph.edges["Tarn Mill", "Orla Venn"]
    assert (edge["weight"], edge["keywords"], edge["source_id"]) == (2.5, "built by", "p1")
    merged = graph.edges["Orla Venn", "Port Isk"]
    assert (merged["weight"], merged["source_id"]) == (1.1, "p1<SEP>p2")
    assert any(note.startswith("triples between the same two entities, put together: ") for note in notes)
    chunks = json.loads((tmp_path / "out" / CHUNKS).read_text(encoding="utf-8"))
    assert chunks["p1"]["file_path"] == "Tarn Mill"


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], "expected an object, found list"),
        ({"c": "x"}, "'c': expected an object with 'content'"),
        ({"c": {"content": ""}}, "'c': expected a text that is not blank"),
    ],
)
def test_bad_chunks_are_named(tmp_path: Path, chunks: object, words: str) -> None:
    save(tmp_path, networkx.Graph([("A", "B")]), chunks)
    with pytest.raises(GfmError) as error:
        read(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / CHUNKS}: ")
    assert words in str(error.value)


def test_a_weight_that_is_none_is_named_by_line(tmp_path: Path) -> None:
    graph = networkx.Graph()
    graph.add_edge("A", "B", weight="heavy")
    with pytest.raises(GfmError, match=r"\.graphml:\d+: 'weight': expected a number, found 'heavy'"):
        read(save(tmp_path, graph, {}))
