"""GraphML as nodes and edges with attributes: read by line, written in one order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from gfm.types import GfmError

# Characters that XML 1.0 cannot hold; one in a file makes all of it unreadable.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">\n'
)


@dataclass
class Element:
    """A node or an edge.

    Attributes:
        id: Of a node; empty for an edge.
        source: Node id of an edge.
        target: Node id of an edge.
        values: Its attributes by name; numbers as they are written.
        place: File and line.
    """

    id: str = ""
    source: str = ""
    target: str = ""
    values: dict[str, str] = field(default_factory=dict)
    place: str = ""


def read_graphml(path: Path) -> tuple[dict[str, Element], list[Element]]:
    """Nodes by id, and edges.

    Raises:
        GfmError: The file is not GraphML, declares a document type (and with it entities, which no graph needs), has a
            node twice, or an edge to a node that is not there; by file and line.
    """
    reader = _Reader(path)
    try:
        with path.open("rb") as stream:
            reader.parser.ParseFile(stream)
    except expat.ExpatError as error:
        raise GfmError(
            f"{path}:{error.lineno}: expected GraphML, found what is not XML: {expat.errors.messages[error.code]}"
        ) from error
    except OSError as error:
        raise GfmError(f"{path}: expected a readable file; {error.strerror}") from error
    if not reader.seen_graph:
        raise GfmError(f"{path}: expected GraphML with an element <graph>, found none")
    for edge in reader.edges:
        for end in (edge.source, edge.target):
            if end not in reader.nodes:
                raise GfmError(f"{edge.place}: unknown node {end!r}: expected the id of a node of the file")
    return reader.nodes, reader.edges


class _Reader:
    def __init__(self, path: Path):
        self.nodes: dict[str, Element] = {}
        self.edges: list[Element] = []
        self.seen_graph = False
        self._path = path
        self._names: dict[str, str] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        self._open: list[Element] = []
        self._key = ""
        self._default_of = ("", "")
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator="|")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _fail(self, message: str) -> GfmError:
        return GfmError(f"{self._path}:{self.parser.CurrentLineNumber}: {message}")

    def _doctype(self, *_: object) -> None:
        raise self._fail("expected GraphML without a document type declaration; delete the line <!DOCTYPE …>")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.rpartition("|")[2]
        place = f"{self._path}:{self.parser.CurrentLineNumber}"
        if kind == "graph":
            self.seen_graph = True
        elif kind == "key":
            identifier = attributes.get("id", "")
            self._names[identifier] = attributes.get("attr.name") or identifier
            self._default_of = (attributes.get("for", "all"), self._names[identifier])
        elif kind == "node":
            node = Element(id=self._required(attributes, "id"), place=place)
            if node.id in self.nodes:
                raise self._fail(f"the node {node.id!r} stands at {self.nodes[node.id].place} too; ids are unique")
            self.nodes[node.id] = node
            self._begin(node, "node")
        elif kind == "edge":
            edge = Element(source=self._required(attributes, "source"), target=self._required(attributes, "target"))
            edge.place = place
            self.edges.append(edge)
            self._begin(edge, "edge")
        elif kind in ("data", "default"):
            self._key, self._text = attributes.get("key", ""), []

    def _required(self, attributes: dict[str, str], name: str) -> str:
        if not attributes.get(name, "").strip():
            raise self._fail(f"expected an attribute {name!r} that is not blank")
        return attributes[name]

    def _begin(self, element: Element, kind: str) -> None:
        for (domain, name), value in self._defaults.items():
            if domain in (kind, "all"):
                element.values[name] = value
        self._open.append(element)

    def _data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:
        kind = name.rpartition("|")[2]
        if kind == "data" and self._text is not None:
            if self._open:
                self._open[-1].values[self._names.get(self._key, self._key)] = "".join(self._text)
            self._text = None
        elif kind == "default" and self._text is not None:
            self._defaults[self._default_of] = "".join(self._text)
            self._text = None
        elif kind in ("node", "edge"):
            self._open.pop()


def graphml_text(
    nodes: Iterable[tuple[str, Mapping[str, str | float]]],
    edges: Iterable[tuple[str, str, Mapping[str, str | float]]],
    node_keys: Sequence[str],
    edge_keys: Sequence[str],
    directed: bool = True,
) -> str:
    """GraphML of nodes (id, attributes) and edges (source, target, attributes); blank attributes are left out.

    Args:
        nodes: In the order in which they are written.
        edges: In the order in which they are written.
        node_keys: Names of the nodes' attributes.
        edge_keys: Names of the edges' attributes; ``weight`` is a number.
        directed: Whether the edges are.
    """
    names = [("node", name) for name in node_keys] + [("edge", name) for name in edge_keys]
    key = {pair: f"d{number}" for number, pair in enumerate(names)}
    return "".join(
        [
            _HEAD,
            *(
                f'  <key id="{number}" for="{kind}" attr.name="{name}" '
                f'attr.type="{"double" if name == "weight" else "string"}"/>\n'
                for (kind, name), number in key.items()
            ),
            f'  <graph edgedefault="{"directed" if directed else "undirected"}">\n',
            *(_element(f"node id={_attribute(i)}", "node", values, key) for i, values in nodes),
            *(
                _element(f"edge source={_attribute(s)} target={_attribute(t)}", "edge", values, key)
                for s, t, values in edges
            ),
            "  </graph>\n</graphml>\n",
        ]
    )


def _element(tag: str, kind: str, values: Mapping[str, str | float], key: Mapping[tuple[str, str], str]) -> str:
    lines = list(_values(kind, values, key))
    if not lines:
        return f"    <{tag}/>\n"
    return f"    <{tag}>\n{''.join(lines)}    </{kind}>\n"


def _values(kind: str, values: Mapping[str, str | float], key: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for name, value in values.items():
        if value != "":
            yield f'      <data key="{key[kind, name]}">{escape(_xml(str(value)), {chr(13): "&#13;"})}</data>\n'


def _attribute(text: str) -> str:
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _xml(text: str) -> str:
    """The text with what XML cannot hold (a noncharacter such as U+FFFF) as U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)
