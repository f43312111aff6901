"""Out, in and out again gives the same bytes, in every format; nothing that a format has a place for is lost."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import networkx
import pytest
import rdflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gfm.exchange import formats
from gfm.exchange.exchange import export_graph, import_graph
from gfm.exchange.from_index import tables_of
from gfm.exchange.tables import GraphTables
from gfm.index.index import GraphIndex
from gfm.types import Document, GivenEntity, GivenTriple

ENCODER = "hashing:32"
OURS = ("jsonl", "csv", "graphml", "ntriples")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative path."""
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.mark.parametrize("name", formats.NAMES)
@pytest.mark.parametrize("graph", ["rich_index", "found_index"])
def test_the_same_bytes(name: str, graph: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    export_graph(request.getfixturevalue(graph), tmp_path / "one", name)
    found = import_graph(tmp_path / "one", tmp_path / "index", encoder=ENCODER)
    assert found.format == name
    export_graph(tmp_path / "index", tmp_path / "two", name)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


@pytest.mark.parametrize("name", formats.NAMES)
def test_a_text_with_headings(name: str, tmp_path: Path) -> None:
    """Its passages have titles of their own, and stay the passages that they were."""
    text = "# Tarn Mill\n\nOrla built it.\n\n## History\n\nIt burned.\n\n## Today\n\nIt stands.\n"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mill.md").write_text(text, encoding="utf-8")
    index = GraphIndex.build(tmp_path / "notes", tmp_path / "a", encoder=ENCODER, extractor="none")
    export_graph(tmp_path / "a", tmp_path / "one", name)
    found = import_graph(tmp_path / "one", tmp_path / "b", encoder=ENCODER).index
    export_graph(tmp_path / "b", tmp_path / "two", name)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert found is not None
    if name in OURS:
        assert [found.passage(i).title for i in range(3)] == [index.passage(i).title for i in range(3)]
        assert found.passage_ids == index.passage_ids == ["mill.md#0", "mill.md#1", "mill.md#2"]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("graph", ["rich_index", "found_index"])
def test_our_own_forms_keep_everything(name: str, graph: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = request.getfixturevalue(graph)
    assert export_graph(source, tmp_path / "one", name) == []
    import_graph(tmp_path / "one", tmp_path / "index", encoder=ENCODER)
    index, other = GraphIndex.open(source), GraphIndex.open(tmp_path / "index")
    assert tables_of(other, name in formats.WHOLE_DOCUMENTS) == tables_of(index, name in formats.WHOLE_DOCUMENTS)
    counts = dict(index.manifest["counts"]) | {"self_loops": 0}
    if name in formats.WHOLE_DOCUMENTS:
        assert other.manifest["counts"] == counts
    assert sorted(other.fact_texts) == sorted(index.fact_texts)


def test_what_stats_count_is_what_is_written(rich_index: Path, tmp_path: Path) -> None:
    """A12."""
    counts = GraphIndex.open(rich_index).manifest["counts"]
    export_graph(rich_index, tmp_path / "csv", "csv")
    with (tmp_path / "csv" / "triples.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert sum(bool(row["head"]) for row in rows) == counts["triples"]
    with (tmp_path / "csv" / "entities.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == counts["entities"]


def test_other_tools_read_the_graphml(rich_index: Path, tmp_path: Path) -> None:
    export_graph(rich_index, tmp_path / "g", "graphml")
    graph = networkx.read_graphml(tmp_path / "g" / "graph.graphml")
    counts = GraphIndex.open(rich_index).manifest["counts"]
    kinds = [values["kind"] for _, values in graph.nodes(data=True)]
    assert graph.is_directed()
    assert (kinds.count("entity"), kinds.count("passage")) == (counts["entities"], counts["passages"])
    edges = [values for _, _, values in graph.edges(data=True)]
    assert sum(edge["kind"] == "triple" for edge in edges) == counts["triples"]
    assert sum(edge["kind"] == "mention" for edge in edges) == counts["mentions"]
    built = next(edge for edge in edges if edge.get("label") == "built by")
    assert (built["weight"], built["description"]) == (2.5, "Orla Venn put up Tarn Mill.")
    assert graph.nodes["passage/p1"]["text"].endswith('"Orl" Venn,\nin 1911 & burned <once>.')


def test_other_tools_read_the_ntriples(rich_index: Path, tmp_path: Path) -> None:
    export_graph(rich_index, tmp_path / "g", "ntriples")
    graph = rdflib.Graph().parse(tmp_path / "g" / "graph.nt", format="nt")
    entity, relation = "urn:gfm:entity/", "urn:gfm:relation/"
    built = (rdflib.URIRef(f"{entity}Tarn%20Mill"), rdflib.URIRef(f"{relation}built%20by"))
    assert list(graph.objects(*built)) == [rdflib.URIRef(f"{entity}Orla%20Venn")]
    texts = {str(o) for o in graph.objects(None, rdflib.URIRef("urn:gfm:text"))}
    assert 'Tarn Mill was built by Orla "Orl" Venn,\nin 1911 & burned <once>.' in texts
    kind = rdflib.URIRef("urn:gfm:Entity")
    assert (
        len(list(graph.subjects(rdflib.RDF.type, kind))) == GraphIndex.open(rich_index).manifest["counts"]["entities"]
    )


def test_from_any_format_to_any_other_without_an_index(rich_folder: Path, tmp_path: Path) -> None:
    """What goes from our rows straight to a format is what goes there by way of an index."""
    export_graph(rich_folder, tmp_path / "a", "graphml")
    export_graph(tmp_path / "a", tmp_path / "b", "csv")
    one, two = formats.read(tmp_path / "a"), formats.read(tmp_path / "b")
    assert {e.name for e in one.entities} == {e.name for e in two.entities}
    assert sum(bool(t.head) for t in one.triples) == sum(bool(t.head) for t in two.triples) == 9


NAMES = ["Tarn Mill", "TARN MILL", "Orla Venn", "Lee Moss", "Moss", "Lee Moss (diver)", "李明", "C, D", "7"]
WORDS = st.sampled_from(["", "built by", "is; was", "x, y", 'a "b"'])
PASSAGES = st.lists(st.sampled_from(["p1", "p2", "entity:Moss"]), max_size=2, unique=True).map(tuple)
DOCUMENTS = [
    Document("p1", "Tarn Mill", "Tarn Mill stands."),
    Document("p2", "Lee Moss", "Lee Moss\nleft.", {"a": 1}),
    Document("entity:Moss", "", "Moss grows."),
]
ENTITIES = st.lists(
    st.builds(
        GivenEntity,
        st.sampled_from(NAMES),
        id=st.sampled_from(["", "", "7", "e1"]),
        type=st.sampled_from(["", "", "diver", "cook, or so"]),
        description=st.sampled_from(["", "Tall.", "Tarn Mill is tall"]),
        aliases=st.lists(st.sampled_from(["Moss", "Mill", "TM"]), max_size=2).map(tuple),
        passage_ids=PASSAGES,
    ),
    max_size=4,
    unique_by=lambda e: e.id or e.name,
)
TRIPLES = st.lists(
    st.builds(
        GivenTriple,
        st.sampled_from(NAMES),
        WORDS,
        st.sampled_from(NAMES),
        PASSAGES,
        weight=st.sampled_from([None, None, 1.0, 2.0, 0.1, -3.0]),
        description=st.sampled_from(["", "", "It was so."]),
        text=st.sampled_from(["", "", "Tarn Mill stood."]),
        tail_type=st.sampled_from(["", "", "diver"]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ENTITIES, TRIPLES, st.sampled_from(formats.NAMES))
def test_any_graph_in_any_format(
    tmp_path_factory: pytest.TempPathFactory, entities: list[GivenEntity], triples: list[GivenTriple], name: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    formats.write(GraphTables(list(DOCUMENTS), entities, triples), folder / "in", "jsonl")
    import_graph(folder / "in", folder / "a", encoder=ENCODER)
    export_graph(folder / "a", folder / "one", name)
    import_graph(folder / "one", folder / "b", encoder=ENCODER)
    export_graph(folder / "b", folder / "two", name)
    assert contents(folder / "two") == contents(folder / "one")


def test_the_order_of_the_rows_plays_no_part(rich_folder: Path, tmp_path: Path) -> None:
    for file in ("corpus.jsonl", "entities.jsonl", "triples.jsonl"):
        lines = (rich_folder / file).read_text(encoding="utf-8").split("\n")[:-1]
        (tmp_path / file).write_text("".join(f"{line}\n" for line in reversed(lines)), encoding="utf-8")
    import_graph(rich_folder, tmp_path / "a", encoder=ENCODER)
    import_graph(tmp_path, tmp_path / "b", encoder=ENCODER)
    export_graph(tmp_path / "a", tmp_path / "one", "jsonl")
    export_graph(tmp_path / "b", tmp_path / "two", "jsonl")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_row_reads_as_the_documented_form(rich_index: Path, tmp_path: Path) -> None:
    export_graph(rich_index, tmp_path / "g", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "g" / "triples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"head": "Orla Venn", "relation": "born in", "tail": "Port Isk", "passage_id": "p2"} in rows
    assert {"text": "A sentence of its own.", "passage_ids": ["p1", "p2"]} in rows
    assert {
        "head": "Lee Moss (diver)",
        "relation": "dives at",
        "tail": "Port Isk",
        "passage_id": "p3",
    } in rows
