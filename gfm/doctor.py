"""What this installation and an index are fit for, and for each trouble the command that mends it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from gfm import __version__
from gfm.types import GfmError

if TYPE_CHECKING:
    from gfm.index.index import GraphIndex

PACKAGE = "gfm-retriever"
OK, NOTE, WRONG = "ok", "note", "wrong"
_SHOWN = ("torch", "torch-geometric", "faiss-cpu", "transformers", "sentence-transformers", "spacy", "numpy", "pyarrow")
_OPTIONAL = {"wordllama": "static"}  # encoders that come with an extra
_COUNTS = ("documents", "passages", "entities", "facts", "triples", "synonyms")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: versions, devices, threads, encoders, extractors, network, or index.
        state: ``ok``, ``note`` (it works, and could be better) or ``wrong``.
        text: What was found.
        mend: A command that mends it; empty where nothing is to be mended, or where the text says how.
    """

    about: str
    state: str
    text: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings, and the card of the index; empty where none was named."""

    findings: tuple[Finding, ...]
    card: dict[str, Any]

    @property
    def wrong(self) -> int:
        """How many findings are wrong."""
        return sum(finding.state == WRONG for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {"well": not self.wrong, "findings": [asdict(finding) for finding in self.findings], "card": self.card}


def examine(index: Path | None = None) -> Examination:
    """Look at the installation, and at an index.

    Args:
        index: Folder of an index; its files are verified, its encoder is loaded.
    """
    found = list(_versions())
    parts = {
        "devices": _devices,
        "threads": _threads,
        "encoders": _encoders,
        "extractors": _extractors,
        "network": _network,
    }
    for about, part in parts.items():
        found += _whole(about, part)
    card: dict[str, Any] = {}
    if index is not None:
        found += _whole("index", lambda: _index(index, card))
    return Examination(tuple(found), card)


def _whole(about: str, part: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a part; that a library does not load is one of them."""
    try:
        yield from part()
    except (ImportError, OSError) as error:
        yield Finding(about, WRONG, f"a library does not load: {error}", f"pip install --force-reinstall {PACKAGE}")


def _versions() -> Iterator[Finding]:
    known = [f"{name} {version}" for name in _SHOWN if (version := _installed(name))]
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding("versions", OK, ", ".join([f"gfm {__version__}", python, *known]))
    try:
        wanted = importlib.metadata.requires(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        mend = "pip install -c constraints.txt ."
        yield Finding(
            "versions", NOTE, "gfm is run from a folder and not installed: its libraries were not compared", mend
        )
        return
    yield from requirements(wanted, _installed)


def _installed(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def requirements(lines: Iterable[str], installed: Callable[[str], str | None]) -> Iterator[Finding]:
    """Libraries that are missing or of a wrong version, and extras that are not there.

    Args:
        lines: As ``importlib.metadata.requires`` gives them.
        installed: Version of a distribution by its name; None where there is none.
    """
    extras: dict[str, list[str]] = {}
    for requirement in map(Requirement, lines):
        version, extra = installed(requirement.name), _extra_of(requirement)
        if extra:
            extras.setdefault(extra, []).extend([] if version else [requirement.name])
            continue
        if requirement.marker and not requirement.marker.evaluate():
            continue
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            wanted = f"{requirement.name}{requirement.specifier}"
            text = f"expected {wanted}, found {version or 'none'}"
            yield Finding("versions", WRONG, text, f"pip install {shlex.quote(wanted)}")
    for extra, missing in extras.items():
        if missing and extra != "dev":
            mend = f"pip install '{PACKAGE}[{extra}]'"
            yield Finding("versions", NOTE, f"the extra {extra!r} is not installed: {', '.join(missing)}", mend)


def _extra_of(requirement: Requirement) -> str:
    """The extra that a requirement belongs to; empty where it belongs to all."""
    marker = requirement.marker
    if marker is None or marker.evaluate({"extra": ""}):
        return ""
    text = str(marker)
    return text.split("extra ==", 1)[1].strip(" )").strip("\"'") if "extra ==" in text else ""


def _devices() -> Iterator[Finding]:
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        gpus.append("Apple GPU (mps)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("devices", OK, f"CPU cores: {cores}; GPUs: {', '.join(gpus) or 'none, and none is needed'}")


def _threads() -> Iterator[Finding]:
    import faiss
    import torch

    policy = os.environ.get("OMP_WAIT_POLICY", "unset")
    text = f"torch {torch.get_num_threads()}, faiss {faiss.omp_get_max_threads()}; OMP_WAIT_POLICY={policy}"
    if policy.upper() == "PASSIVE":
        yield Finding("threads", OK, text)
    else:
        yield Finding(
            "threads", NOTE, f"{text}: idle threads spin and slow a busy machine", "export OMP_WAIT_POLICY=PASSIVE"
        )


def _encoders() -> Iterator[Finding]:
    from gfm.text.encoder import DEFAULT_ENCODER, load_encoder

    for name in (DEFAULT_ENCODER, *_OPTIONAL):
        if name in _OPTIONAL and importlib.util.find_spec(name) is None:
            mend = f"pip install '{PACKAGE}[{_OPTIONAL[name]}]'"
            yield Finding("encoders", NOTE, f"{name}: not installed, and needed only where it is named", mend)
            continue
        try:
            encoder = load_encoder(name)
        except GfmError as error:
            yield Finding("encoders", WRONG, str(error))
            continue
        yield Finding(
            "encoders", OK, f"{name}: works offline, {encoder.fingerprint.dim} dimensions, {encoder.max_tokens} tokens"
        )
    yield Finding("encoders", OK, "hashing:DIM: works offline, for tests and dry runs")


def _extractors() -> Iterator[Finding]:
    from gfm.extract.spacy_facts import DEFAULT_PIPELINE, SpacyExtractor

    try:
        SpacyExtractor()
    except GfmError as error:
        yield Finding("extractors", WRONG, str(error))
        return
    import spacy

    others = sorted(set(spacy.util.get_installed_models()) - {DEFAULT_PIPELINE})
    more = f"; other pipelines: {', '.join(others)}" if others else ""
    yield Finding("extractors", OK, f"spacy: works offline with {DEFAULT_PIPELINE}{more}")


def _network() -> Iterator[Finding]:
    from gfm.nn.checkpoint import load_model
    from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS

    again = f"pip install --force-reinstall --no-deps {PACKAGE}"
    try:
        model, _ = load_model()
    except GfmError as error:
        yield Finding("network", WRONG, str(error), again)
        return
    if (model.settings.node_inputs, model.settings.edge_inputs) != (NODE_INPUTS, EDGE_INPUTS):
        yield Finding(
            "network", WRONG, "the checkpoint in the package is not of this version: it reads other inputs", again
        )
        return
    size = sum(parameter.numel() for parameter in model.parameters())
    yield Finding("network", OK, f"the checkpoint in the package loads: {size:,} parameters")


def _index(path: Path, card: dict[str, Any]) -> Iterator[Finding]:
    """What is to be said of an index; fills its card."""
    from gfm.graph.health import bare_passages, components
    from gfm.graph.knowledge_graph import hubs
    from gfm.index.index import GraphIndex

    try:
        index = GraphIndex.open(path.absolute())
    except GfmError as error:
        yield Finding("index", WRONG, str(error))
        return
    graph, counts = index.graph, index.manifest["counts"]
    parts = components(graph)
    card.update(
        {name: counts[name] for name in _COUNTS},
        hubs=len(hubs(graph)),
        passages_without_entities=bare_passages(graph),
        components=len(parts),
        largest_component=int(parts[0]),
        nodes=graph.num_nodes,
        encoder=index.fingerprint.name,
        extractors=index.manifest["extractors"],
        generation=index.generation,
        bytes=sum(file["bytes"] for file in index.manifest["files"].values()),
    )
    deep = f"gfm verify {shlex.quote(str(path))}"
    yield Finding("index", OK, f"{path}: opens, and every checksum fits; what lies deeper: {deep}")
    yield from _encoder_of(index)
    yield from _graph_of(card, path)


def _encoder_of(index: GraphIndex) -> Iterator[Finding]:
    try:
        index.encode(["a question"])
    except GfmError as error:
        yield Finding("index", WRONG, str(error))
    else:
        yield Finding("index", OK, f"its encoder {index.fingerprint.name} loads, and is the one that it was built with")


def _graph_of(card: dict[str, Any], path: Path) -> Iterator[Finding]:
    """Whether the graph can help: an empty one is wrong, bare passages are worth a note."""
    bare, total = card["passages_without_entities"], card["passages"]
    mend = f"gfm index PATH --out {shlex.quote(str(path))} --extractor spacy:PIPELINE, or --triples FILE"
    if bare == total:
        yield Finding("index", WRONG, "its graph is empty: questions are answered by vectors and words alone", mend)
    elif bare:
        yield Finding(
            "index", NOTE, f"{bare:,} of {total:,} passages name no entity: found by vectors and words alone", mend
        )
    share = card["largest_component"] / card["nodes"]
    parts = (
        "is of one piece"
        if card["components"] == 1
        else (f"has {card['components']:,} parts; the largest holds {share:.0%} of all nodes")
    )
    yield Finding("index", OK, f"its graph {parts}")
