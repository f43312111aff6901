"""Imports go downwards only: a room of gfm/ may import the rooms below it, and no file imports itself in a circle."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# From the top to the bottom. A room is a file or a folder directly in gfm/.
ROOMS = [
    "cli",
    "doors",
    "adapters",
    "serve",
    "viewer",
    "train",
    "eval",
    "answer",
    "report",
    "doctor",
    "retrievers",
    "compat",
    "retrieve",
    "context",
    "nn",
    "exchange",
    "index",
    "extract",
    "graph",
    "llm",
    "text",
    "memory",
    "progress",
    "resources",
    "extras",
    "types",
]
# The root stands beneath all rooms: its doors load on first use, so it imports none, and any room may ask its version.
ROOT = "gfm"
# The one step upwards: the graph is assembled from what extraction made, so it knows the nouns of extraction.
ALLOWED_UP = {("graph", "gfm.extract.extraction")}


def modules(package: Path) -> dict[str, Path]:
    """Dotted name of every module of the package → its file."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> list[tuple[str, int]]:
    """The modules of the package that a file imports anywhere, inside functions too, each with its line."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, [".".join(package.split(".")[: _kept(package, node.level)]), node.module]))
            submodules = [f"{base}.{alias.name}" for alias in node.names]
            # `from gfm.text import chunk` imports a module, `from gfm.text.chunk import split` a name of one.
            targets = [module if module in known else base for module in submodules]
        else:
            continue
        found += [(target, node.lineno) for target in targets if target == ROOT or target.startswith(f"{ROOT}.")]
    return found


def _kept(package: str, level: int) -> int:
    """How many parts of ``package`` a relative import of ``level`` dots starts from; none for an absolute one."""
    return 0 if level == 0 else len(package.split(".")) - level + 1


def room(module: str) -> str:
    """The room of a module: ``gfm.text.chunk`` is in ``text``."""
    return module.split(".")[1] if "." in module else ROOT


def steps_upwards(package: Path) -> list[str]:
    """Every import that does not go down, and every room without a place, as lines for a person."""
    known = modules(package)
    place = {name: depth for depth, name in enumerate(ROOMS)} | {ROOT: len(ROOMS)}
    wrong = [
        f"{path}: room {room(name)!r} has no place in ROOMS" for name, path in known.items() if room(name) not in place
    ]
    for name, path in known.items():
        for target, line in imports(name, path, known):
            here, there = place.get(room(name), -1), place.get(room(target), -1)
            if here > there and (room(name), target) not in ALLOWED_UP:
                wrong.append(f"{path}:{line}: {name} imports {target}, which is above it")
            if target not in known:
                wrong.append(f"{path}:{line}: {name} imports {target}, which does not exist")
    return wrong


def cycle(package: Path) -> list[str]:
    """The modules of one import cycle, or nothing."""
    known = modules(package)
    graph = {name: {target for target, _ in imports(name, path, known)} - {name} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def write(package: Path, files: dict[str, str]) -> Path:
    """A package ``gfm`` of the given files under a folder."""
    for name, text in files.items():
        path = package / "gfm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package / "gfm"


def test_imports_of_the_package_go_down(repository: Path) -> None:
    assert len(modules(repository / "gfm")) > 10
    assert steps_upwards(repository / "gfm") == []


def test_imports_of_the_package_make_no_cycle(repository: Path) -> None:
    assert cycle(repository / "gfm") == []


@pytest.mark.parametrize(
    "line",
    [
        "from gfm.index.index import GraphIndex",
        "from gfm.index import index",
        "import gfm.index.index",
        "from ..index.index import GraphIndex",
        "from ..index import index",
        "def later():\n    from gfm.index.index import GraphIndex",
    ],
)
def test_an_import_upwards_is_found_in_every_form(tmp_path: Path, line: str) -> None:
    package = write(tmp_path, {"__init__.py": "", "index/__init__.py": "", "index/index.py": "", "text/chunk.py": line})
    (found,) = steps_upwards(package)
    assert "gfm.text.chunk imports gfm.index.index, which is above it" in found


def test_an_import_downwards_is_fine(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "types.py": "",
        "extract/extraction.py": "from ..types import Passage",
        "graph/assemble.py": "from gfm.extract.extraction import Extraction\nfrom gfm import __version__",
        "text/chunk.py": "import json\nfrom gfm.types import Passage",
    }
    assert steps_upwards(write(tmp_path, files)) == []


def test_the_graph_may_use_only_the_nouns_of_extraction(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "extract/spacy_facts.py": "",
        "graph/assemble.py": "from gfm.extract.spacy_facts import SpacyFacts",
    }
    assert len(steps_upwards(write(tmp_path, files))) == 1


def test_a_room_without_a_place_is_found(tmp_path: Path) -> None:
    (found,) = steps_upwards(write(tmp_path, {"__init__.py": "", "utils.py": ""}))
    assert "room 'utils' has no place" in found


def test_a_cycle_is_found(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "text/a.py": "def later():\n    from gfm.text import b",
        "text/b.py": "from gfm.text.a import later",
    }
    assert set(cycle(write(tmp_path, files))) == {"gfm.text.a", "gfm.text.b"}
