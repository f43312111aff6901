from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfm.exchange.exchange import export_graph, import_graph
from gfm.exchange.graphrag import detect, read
from gfm.types import Document, GfmError, GivenEntity, GivenTriple

ENTITIES: dict[str, list[Any]] = {
    "id": ["u1", "u2", "u3"],
    "human_readable_id": [0, 1, 2],
    "title": ["TARN MILL", "ORLA VENN", "TARN MILL"],
    "type": ["PLACE", "PERSON", "BUILDING"],
    "description": ["An old mill", "Orla Venn was a builder.", None],
    "text_unit_ids": [["t1"], ["t1", "t2"], ["t2"]],
    "description_embedding": [[0.1], [0.2], [0.3]],
}
RELATIONSHIPS: dict[str, list[Any]] = {
    "id": ["r1"],
    "source": ["TARN MILL"],
    "target": ["ORLA VENN"],
    "description": ["Orla Venn built Tarn Mill in 1911"],
    "weight": [7.0],
    "text_unit_ids": [["t1", "t9"]],
}
UNITS: dict[str, list[Any]] = {
    "id": ["t1", "t2"],
    "text": ["Tarn Mill was built by Orla Venn.", "She left Tarn Mill."],
}
DOCUMENTS: dict[str, list[Any]] = {"id": ["d1", "d2"], "title": ["Tarn Mill", "book.txt"]}


def save(folder: Path, prefix: str = "", **tables: dict[str, list[Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{prefix}{name}.parquet")
    return folder


def version_3(folder: Path) -> Path:
    units = {**UNITS, "document_id": ["d1", "d2"], "n_tokens": [7, 4]}
    return save(folder, entities=ENTITIES, relationships=RELATIONSHIPS, text_units=units, documents=DOCUMENTS)


def version_2(folder: Path) -> Path:
    units = {**UNITS, "document_ids": [["d1"], ["d2"]]}
    return save(folder, entities=ENTITIES, relationships=RELATIONSHIPS, text_units=units, documents=DOCUMENTS)


def version_1(folder: Path) -> Path:
    units = {**UNITS, "document_ids": [["d1"], ["d2"]]}
    tables = {"entities": ENTITIES, "relationships": RELATIONSHIPS, "text_units": units, "documents": DOCUMENTS}
    return save(folder, "create_final_", **tables)


def version_0(folder: Path) -> Path:
    entities = {"name" if name == "title" else name: values for name, values in ENTITIES.items()}
    units = {**UNITS, "document_ids": [["d1"], ["d2"]]}
    tables = {"entities": entities, "relationships": RELATIONSHIPS, "text_units": units, "documents": DOCUMENTS}
    return save(folder, "create_final_", **tables)


@pytest.mark.parametrize("make", [version_3, version_2, version_1, version_0])
@pytest.mark.parametrize("place", ["", "output", "output/20240702-1/artifacts"])
def test_every_version_at_every_place(tmp_path: Path, make: Any, place: str) -> None:
    make(tmp_path / place)
    assert detect(tmp_path)
    tables = read(tmp_path)
    assert tables.documents == [
        Document("t1", "Tarn Mill", UNITS["text"][0], {"document_id": "d1"}),
        Document("t2", "", UNITS["text"][1], {"document_id": "d2", "file_path": "book.txt"}),
    ]
    assert tables.entities == [
        GivenEntity("TARN MILL", "", "BUILDING, PLACE", "An old mill", (), ("t1",)),
        GivenEntity("ORLA VENN", "", "PERSON", "Orla Venn was a builder.", (), ("t1", "t2")),
        GivenEntity("TARN MILL", "", "BUILDING, PLACE", "", (), ("t2",)),
    ]
    assert tables.triples == [GivenTriple("TARN MILL", "", "ORLA VENN", ("t1",), 7.0, RELATIONSHIPS["description"][0])]
    (note,) = tables.notes
    assert "left out: 1, such as 't9' (" in note
    assert "relationships.parquet: row 1)" in note


def test_an_index_of_it(tmp_path: Path) -> None:
    index = import_graph(version_3(tmp_path / "run"), tmp_path / "index", encoder="hashing:16").index
    assert index is not None
    triple = index.triple(0)
    assert (triple.text, triple.weight, triple.passage_ids) == (RELATIONSHIPS["description"][0], 7.0, ("t1",))
    assert sorted(index.fact_texts) == [
        "Orla Venn built Tarn Mill in 1911",
        "Orla Venn was a builder.",
        "TARN MILL: An old mill",
    ]


def test_without_texts_passages_are_made(tmp_path: Path) -> None:
    found = import_graph(
        save(tmp_path / "run", entities=ENTITIES, relationships=RELATIONSHIPS), tmp_path / "index", encoder="hashing:16"
    )
    assert found.index is not None
    assert found.index.passage_ids == ["entity:ORLA VENN", "entity:TARN MILL"]
    assert found.notes == ["passages made of descriptions and triples that name none: 2"]


def test_what_is_written_has_the_columns_of_version_3(rich_index: Path, tmp_path: Path) -> None:
    (note,) = export_graph(rich_index, tmp_path / "out", "graphrag")
    assert note == (
        "not part of this format, and left out: 7 relations, 1 sentences without a triple, 3 ids of entities, 4 aliases"
    )
    columns = {f.stem: pq.read_schema(f).names for f in sorted((tmp_path / "out").iterdir())}
    assert columns["entities"][:6] == ["id", "human_readable_id", "title", "type", "description", "text_unit_ids"]
    assert columns["relationships"][2:6] == ["source", "target", "description", "weight"]
    assert columns["text_units"][2:5] == ["text", "n_tokens", "document_id"]
    assert columns["documents"][2:5] == ["title", "text", "text_unit_ids"]
    ids = set(pq.read_table(tmp_path / "out" / "entities.parquet")["id"].to_pylist())
    used = pq.read_table(tmp_path / "out" / "text_units.parquet")["entity_ids"].to_pylist()
    assert {i for row in used for i in row} == ids


@pytest.mark.parametrize(
    ("table", "column", "values", "words"),
    [
        ("entities", "title", ["A", " ", "C"], "entities.parquet: row 2: 'title': expected a name"),
        ("entities", "text_unit_ids", ["t1", "t2", "t1"], "row 1: 'text_unit_ids': expected a list of strings"),
        ("relationships", "target", [None], "relationships.parquet: row 1: 'target': expected a name"),
        ("relationships", "weight", ["x"], "row 1: 'weight': expected a number"),
        ("text_units", "text", ["x", ""], "text_units.parquet: row 2: expected a text that is not blank"),
        ("text_units", "id", ["t1", "t1"], "text_units.parquet: row 2: the id 't1' stands here for the second time"),
    ],
)
def test_bad_rows_are_named_by_file_and_row(
    tmp_path: Path, table: str, column: str, values: list[Any], words: str
) -> None:
    tables = {"entities": ENTITIES, "relationships": RELATIONSHIPS, "text_units": UNITS}
    save(tmp_path, **{**tables, table: {**tables[table], column: values}})
    with pytest.raises(GfmError) as error:
        read(tmp_path)
    assert words in str(error.value)


def test_a_damaged_table_two_runs_and_no_titles(tmp_path: Path) -> None:
    version_3(tmp_path / "a")
    (tmp_path / "a" / "entities.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(GfmError, match=r"entities\.parquet: expected a Parquet table"):
        read(tmp_path)
    save(tmp_path / "a", entities={"id": ["x"]})
    with pytest.raises(GfmError, match="expected a column title or name"):
        read(tmp_path)
    version_3(tmp_path / "b")
    with pytest.raises(GfmError, match="one run of GraphRAG, found 2"):
        read(tmp_path)
