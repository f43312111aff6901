from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.exchange.xml_graph import graphml_text, read_graphml
from gfm.types import GfmError

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'


def file(folder: Path, text: str) -> Path:
    path = folder / "g.graphml"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_attributes_by_name_with_defaults_and_places(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        HEAD + '<key id="d0" for="node" attr.name="colour"><default>red</default></key><key id="d1" for="all"/>\n'
        '<graph edgedefault="directed">\n<node id="a"><data key="d0">blue &amp; "x"</data></node>\n<node id="b"/>\n'
        '<edge source="b" target="a"><data key="d1">1</data></edge></graph></graphml>',
    )
    nodes, edges = read_graphml(path)
    assert {i: node.values for i, node in nodes.items()} == {"a": {"colour": 'blue & "x"'}, "b": {"colour": "red"}}
    assert [(e.source, e.target, e.values, e.place) for e in edges] == [("b", "a", {"d1": "1"}, f"{path}:6")]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD + "<graph><node id='a'></graph></graphml>", 2, "mismatched tag"),
        (HEAD + "<graph><node/></graph></graphml>", 2, "expected an attribute 'id'"),
        (HEAD + "<graph>\n<node id='a'/>\n<node id='a'/></graph></graphml>", 4, "the node 'a' stands at"),
        (HEAD + "<graph><node id='a'/>\n<edge source='a' target='z'/></graph></graphml>", 3, "unknown node 'z'"),
        (HEAD + "<graph><edge source='a'/></graph></graphml>", 2, "expected an attribute 'target'"),
        ("", 1, "no element found"),
        ('<!DOCTYPE g [<!ENTITY a "aaaa">]>\n<graphml/>', 1, "without a document type declaration"),
        (HEAD + "<graph><node id='a\x07'/></graph></graphml>", 2, "not well-formed"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(GfmError) as error:
        read_graphml(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)


def test_no_graph_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="<graph>"):
        read_graphml(file(tmp_path, HEAD + "</graphml>"))
    with pytest.raises(GfmError, match="readable file"):
        read_graphml(tmp_path / "none.graphml")


@settings(deadline=None)
@given(st.text(min_size=1), st.text())
def test_whatever_is_written_can_be_read(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    """B13: a control character would make the whole file unreadable."""
    path = tmp_path_factory.getbasetemp() / "any.graphml"
    identifier = f"n{name}"
    written = graphml_text([(identifier, {"text": text})], [(identifier, identifier, {})], ["text"], [])
    path.write_text(written, encoding="utf-8", newline="\n")
    nodes, edges = read_graphml(path)
    assert len(nodes) == len(edges) == 1
    if text.isprintable():
        assert next(iter(nodes.values())).values.get("text", "") == text
    if name.isprintable():
        assert list(nodes) == [identifier]
