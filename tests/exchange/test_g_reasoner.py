from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

import pytest

from gfm.exchange.exchange import export_graph
from gfm.exchange.g_reasoner import detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

NODES = """name,type,attributes
France,document,{}
doc-2,document,"{'content': 'Lyon is old.', 'title': 'Lyon'}"
france,entity,"{""description"": ""A country.""}"
paris,city,{}
"""
EDGES = """source,relation,target,attributes
paris,capital of,france,"{'weight': 2}"
paris,is_mentioned_in,France,{}
France,mentions,france,{}
france,equivalent,paris,{}
France,next,doc-2,{}
"""


def save(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    raw, stage = folder / "raw", folder / "processed" / "stage1"
    raw.mkdir(parents=True)
    stage.mkdir(parents=True)
    (raw / "documents.json").write_text(json.dumps({"France": "Paris is its capital."}), encoding="utf-8")
    (stage / "nodes.csv").write_text(nodes, encoding="utf-8")
    (stage / "edges.csv").write_text(edges, encoding="utf-8")
    (stage / "relations.csv").write_text('name,attributes\ncapital of,"{}"\n', encoding="utf-8")
    return folder


@pytest.mark.parametrize("place", [".", "processed/stage1"])
def test_a_data_set(tmp_path: Path, place: str) -> None:
    tables = read(save(tmp_path / "set") / place)
    assert detect(tmp_path / "set" / place)
    assert tables.documents == [
        Document("France", "France", "Paris is its capital."),
        Document("doc-2", "Lyon", "Lyon is old."),
    ]
    assert tables.entities == [
        GivenEntity("france", "", "", "A country.", (), ("France",)),
        GivenEntity("paris", "", "city", "", (), ("France",)),
    ]
    assert tables.triples == [GivenTriple("paris", "capital of", "france", ("France",), 2.0)]
    assert tables.notes == [
        "edges between near names ('equivalent'), left out: 1; an index makes its own",
        "edges between two documents, left out: 1",
    ]


def test_attributes_are_data_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    with pytest.raises(GfmError, match=r"nodes\.csv:2: 'attributes': expected an object"):
        read(save(tmp_path / "set", f'name,type,attributes\na,entity,"{code}"\n'))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (NODES, EDGES + "paris,r,rome,{}\n", "edges.csv:7: unknown node 'rome'"),
        (NODES + "paris,entity,{}\n", EDGES, "nodes.csv:6: the node 'paris' stands here for the second time"),
        (NODES + "Rome,document,{}\n", EDGES, "nodes.csv:6: document 'Rome': expected its text in documents.json"),
        (NODES + "x,entity,[1]\n", EDGES, "nodes.csv:6: 'attributes': expected an object"),
        (NODES, EDGES + "paris,r,france,\"{'weight': 'x'}\"\n", "edges.csv:7: 'weight': expected a number"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, nodes: str, edges: str, words: str) -> None:
    with pytest.raises(GfmError) as error:
        read(save(tmp_path / "set", nodes, edges))
    assert words in str(error.value)


def test_what_is_written_is_what_gfm_rag_reads(rich_index: Path, tmp_path: Path) -> None:
    export_graph(rich_index, tmp_path / "out", "g-reasoner")
    stage = tmp_path / "out" / "processed" / "stage1"
    rows = {}
    for name in ("nodes", "relations", "edges"):
        with (stage / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows[name] = list(csv.DictReader(stream))
        assert all(isinstance(ast.literal_eval(row["attributes"]), dict) for row in rows[name])
    names = [row["name"] for row in rows["nodes"]]
    assert len(set(names)) == len(names)
    assert {end for row in rows["edges"] for end in (row["source"], row["target"])} <= set(names)
    assert {row["relation"] for row in rows["edges"]} <= {row["name"] for row in rows["relations"]}
    texts = json.loads((tmp_path / "out" / "raw" / "documents.json").read_text(encoding="utf-8"))
    assert set(texts) == {row["name"] for row in rows["nodes"] if row["type"] == "document"}
