"""What `gfm doctor` finds: on this installation as it is, and on troubles made for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gfm import doctor
from gfm.doctor import NOTE, OK, WRONG, Examination, Finding, examine, requirements
from gfm.index.index import GraphIndex
from gfm.types import GfmError


@pytest.fixture
def index_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installation is taken for well, so that no model is loaded."""
    for part in ("_versions", "_devices", "_threads", "_encoders", "_extractors", "_network"):
        monkeypatch.setattr(doctor, part, lambda: iter(()))


def states(found: Examination) -> list[tuple[str, str]]:
    return [(finding.about, finding.state) for finding in found.findings]


@pytest.mark.slow
def test_this_installation_is_well() -> None:
    found = examine()
    assert [finding for finding in found.findings if finding.state == WRONG] == []
    assert list(dict.fromkeys(about for about, _ in states(found))) == [
        "versions",
        "devices",
        "threads",
        "encoders",
        "extractors",
        "network",
    ]
    texts = " ".join(finding.text for finding in found.findings)
    assert "all-MiniLM-L6-v2: works offline, 384 dimensions" in texts
    assert "spacy: works offline" in texts
    assert found.card == {}


def test_requirements_that_are_not_met() -> None:
    lines = [
        "torch>=2.6",
        "numpy<2,>=1.26",
        "faiss-cpu>=1.9",
        'nothing>=1; sys_platform == "elsewhere"',
        'wordllama>=0.3; extra == "static"',
        'matplotlib>=3; extra == "bench"',
        'pytest>=8; extra == "dev"',
    ]
    here = {"torch": "2.9.1+cpu", "numpy": "2.1", "matplotlib": "3.9"}
    assert list(requirements(lines, here.get)) == [
        Finding("versions", WRONG, "expected numpy<2,>=1.26, found 2.1", "pip install 'numpy<2,>=1.26'"),
        Finding("versions", WRONG, "expected faiss-cpu>=1.9, found none", "pip install 'faiss-cpu>=1.9'"),
        Finding(
            "versions", NOTE, "the extra 'static' is not installed: wordllama", "pip install 'gfm-retriever[static]'"
        ),
    ]


def test_a_library_that_does_not_load_is_a_finding(index_alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Finding]:
        raise ImportError("libtorch.so: cannot open")
        yield

    monkeypatch.setattr(doctor, "_network", broken)
    (finding,) = examine().findings
    assert (finding.about, finding.state) == ("network", WRONG)
    assert finding.text == "a library does not load: libtorch.so: cannot open"
    assert finding.mend.startswith("pip install ")


def test_an_encoder_and_an_extractor_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise GfmError("it does not load; mend it with: pip install it")

    monkeypatch.setattr("gfm.text.encoder.load_encoder", broken)
    monkeypatch.setattr("gfm.extract.spacy_facts.SpacyExtractor", broken)
    found = [*doctor._encoders(), *doctor._extractors()]
    assert [(f.about, f.state) for f in found if f.state == WRONG] == [("encoders", WRONG)] * 2 + [
        ("extractors", WRONG)
    ]


def test_an_encoder_of_an_extra_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gfm.text.encoder.DEFAULT_ENCODER", "hashing:8")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    default, optional, _ = doctor._encoders()
    assert (default.state, optional.state) == (OK, NOTE)
    assert optional.mend == "pip install 'gfm-retriever[static]'"


@pytest.mark.parametrize(("policy", "state"), [("PASSIVE", OK), ("passive", OK), ("ACTIVE", NOTE), (None, NOTE)])
def test_spinning_threads_are_noted(monkeypatch: pytest.MonkeyPatch, policy: str | None, state: str) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", policy) if policy else monkeypatch.delenv("OMP_WAIT_POLICY")
    (finding,) = doctor._threads()
    assert finding.state == state
    assert bool(finding.mend) == (state == NOTE)


def test_a_checkpoint_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gfm.retrieve.features.NODE_INPUTS", ("cosine",))
    (finding,) = doctor._network()
    assert (finding.state, "it reads other inputs" in finding.text) == (WRONG, True)
    assert finding.mend


@pytest.mark.usefixtures("index_alone")
class TestIndex:
    def test_the_card_of_corpus_z(self, z_index: Path) -> None:
        found = examine(z_index)
        numbers = {name: value for name, value in found.card.items() if isinstance(value, int) and name != "bytes"}
        assert numbers == {
            "documents": 5,
            "passages": 5,
            "entities": 5,
            "facts": 4,
            "triples": 4,
            "synonyms": 0,
            "hubs": 0,
            "passages_without_entities": 1,
            "components": 2,  # the chain, and the passage about jam
            "largest_component": 9,
            "nodes": 10,
        }
        assert found.card["encoder"] == "hashing:64"
        assert states(found) == [("index", OK), ("index", OK), ("index", NOTE), ("index", OK)]
        assert found.wrong == 0
        assert "gfm verify" in found.findings[0].text
        assert found.findings[2].text.startswith("1 of 5 passages name no entity")
        assert found.findings[3].text == "its graph has 2 parts; the largest holds 90% of all nodes"

    def test_an_empty_graph_is_wrong(self, z_files: Path, tmp_path: Path) -> None:
        GraphIndex.build(z_files / "corpus.jsonl", tmp_path / "i", encoder="hashing:8", extractor="none")
        found = examine(tmp_path / "i")
        assert found.wrong == 1
        assert found.findings[2].mend.startswith("gfm index PATH --out ")

    def test_no_index(self, tmp_path: Path) -> None:
        found = examine(tmp_path / "nowhere")
        assert states(found) == [("index", WRONG)]
        assert "make one: gfm index PATH --out" in found.findings[0].text
        assert found.card == {}

    def test_an_altered_index(self, z_index: Path, tmp_path: Path) -> None:
        shutil.copytree(z_index, tmp_path / "i")
        (graph,) = (tmp_path / "i").glob("generation-*/graph.safetensors")
        graph.write_bytes(graph.read_bytes()[:-1] + b"\x7f")
        found = examine(tmp_path / "i")
        assert states(found) == [("index", WRONG)]
        assert "build the index again" in found.findings[0].text

    def test_another_encoder_behind_the_name(self, z_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from gfm.text.encoder import HashingEncoder

        monkeypatch.setattr("gfm.index.index.load_encoder", lambda name: HashingEncoder(32))
        found = examine(z_index)
        assert found.findings[1].state == WRONG
        assert "the index was built with encoder 'hashing:64'" in found.findings[1].text
