"""The benchmark end to end: on the demo data by every retriever, and on a set whose answers are known."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gfm.eval.beir import load_dataset
from gfm.eval.bench import Bench, bench, open_or_build, questions
from gfm.eval.metrics import METRICS
from gfm.eval.settings import BenchSettings, bench_settings, entries
from gfm.resources import demo_folder
from gfm.retrievers import NAMES
from gfm.types import GfmError

QUICK = {"encoder": "hashing:64", "extractor": "none", "apart": False}


@pytest.fixture(scope="module")
def demo_settings(tmp_path_factory: pytest.TempPathFactory, untrained: Path) -> BenchSettings:
    folder = tmp_path_factory.mktemp("bench")
    given = {"data": ["demo"], "limit": 12, "work": str(folder / "work"), "out": str(folder / "out"), **QUICK}
    return bench_settings({**given, "checkpoint": str(untrained)})


@pytest.fixture(scope="module")
def demo(demo_settings: BenchSettings) -> Bench:
    return bench(demo_settings, command="gfm bench demo")


@pytest.fixture(scope="module")
def demo_name() -> str:
    return "-".join(demo_folder().parts[-2:])


def test_every_retriever_is_measured_on_the_same_questions(
    demo: Bench, demo_settings: BenchSettings, demo_name: str
) -> None:
    (of,) = demo.report["sets"].values()
    assert list(of["retrievers"]) == list(NAMES)
    assert of["data"]["questions"] == 12
    assert all(len(run) == 12 for run in demo.runs[demo_name].values())
    for label, row in of["retrievers"].items():
        assert 0 <= row["quality"]["R@2"]["mean"] <= row["quality"]["filtered_recall@2"]["mean"] <= 1, label
        assert row["quality"]["R@5"]["low"] <= row["quality"]["R@5"]["mean"] <= row["quality"]["R@5"]["high"]
        assert 0 < row["context_tokens"] <= demo_settings.max_tokens
        assert row["time"]["retrieval_ms"]["median"] > 0
    assert of["retrievers"]["gfm"]["quality"]["ceiling"]["mean"] > 0.5
    assert "ceiling" not in of["retrievers"]["bm25"]["quality"]
    assert of["retrievers"][of["baseline"]]["p"] is None
    assert of["retrievers"]["gfm"]["weights"] is not None
    assert of["baseline"] != "gfm"
    assert 0 < of["retrievers"]["gfm"]["p"]["R@5"] <= 1


def test_what_is_written_holds_what_is_returned(demo: Bench, demo_settings: BenchSettings, demo_name: str) -> None:
    out = Path(demo_settings.out)
    assert json.loads((out / "bench.json").read_text(encoding="utf-8")) == json.loads(json.dumps(demo.report))
    run = json.loads((out / "runs" / demo_name / "gfm.json").read_text(encoding="utf-8"))
    assert run == demo.runs[demo_name]["gfm"]
    text = (out / "bench.md").read_text(encoding="utf-8")
    for part in ("gfm bench demo", "## All sets", "by hops", "strict recall", "filtered_recall@k", "numpy "):
        assert part in text
    pictures = sorted(path.name for path in (out / "pictures").iterdir())
    assert pictures == [f"{demo_name}-hops.png", f"{demo_name}-time.png"]
    assert all(f"(pictures/{name})" in text for name in pictures)
    assert all((out / "pictures" / name).read_bytes()[:4] == b"\x89PNG" for name in pictures)


def test_figures_are_those_of_the_independent_scorer(
    demo: Bench, demo_settings: BenchSettings, demo_name: str, shared: Path
) -> None:
    out = Path(demo_settings.out)
    asked = demo.runs[demo_name]["gfm"]
    lines = (demo_folder() / "qrels" / "test.tsv").read_text(encoding="utf-8").split("\n")
    kept = [lines[0], *(line for line in lines[1:] if line.split("\t")[0] in asked)]
    qrels = out.parent / "qrels.tsv"
    qrels.write_text("\n".join(kept) + "\n", encoding="utf-8")
    for label, row in demo.report["sets"][demo_name]["retrievers"].items():
        command = [sys.executable, str(shared / "tools" / "score_run.py"), str(qrels)]
        run = str(out / "runs" / demo_name / f"{label}.json")
        by = [f"{demo_folder() / 'queries.jsonl'}:type"]
        output = subprocess.run([*command, run, "--by", *by], capture_output=True, text=True, check=True).stdout
        told = {line.split()[0]: line.split()[2:] for line in output.splitlines()[1:]}
        assert told.pop("all") == [f"{100 * row['quality'][m]['mean']:.1f}" for m in METRICS]
        assert told == {kind: [f"{100 * of[m]['mean']:.1f}" for m in METRICS] for kind, of in row["by"]["type"].items()}


def test_a_second_run_has_the_same_figures_and_says_so(demo: Bench, demo_settings: BenchSettings) -> None:
    said: list[str] = []
    again = bench(replace(demo_settings, pictures=False, retrievers=demo_settings.retrievers), said.append)
    assert again.repeated == [f"the same figures as the run of {demo.report['made']}"]
    assert again.runs == demo.runs
    assert not any("building" in line for line in said)
    other = bench(replace(demo_settings, pictures=False, seed=1, retrievers=tuple(entries("bm25"))))
    assert other.repeated[0].startswith("asked otherwise than in the run of ")
    assert any("settings seed: 1, was 0" in line for line in other.repeated)


# --- a set whose answers are known


@pytest.fixture
def z_settings(z_set: Path, tmp_path: Path) -> BenchSettings:
    given = {"data": [str(z_set)], "retrievers": "bm25", "work": str(tmp_path / "w"), "out": str(tmp_path / "o")}
    return bench_settings({**given, **QUICK, "pictures": False})


def test_what_is_odd_is_counted_and_told(fixed: type, z_settings: BenchSettings) -> None:
    settings = replace(z_settings, retrievers=tuple(entries("fixed,other")))
    report = bench(settings).report
    (of,) = report["sets"].values()
    data = of["data"]
    assert (data["questions"], data["judged"], data["without_gold"]) == (3, 3, 1)
    assert (data["gold"], data["repeated_gold"], data["gold_outside_corpus"], data["hops_told"]) == (5, 1, 0, 0)
    assert of["groups"] == {"type": {"bridge": 2, "one_hop": 1}, "hops": {"1": 1, "2": 2}}
    row = of["retrievers"]["fixed"]
    assert row["counts"] == {"repeated_passages": 3, "fallbacks": {"dense": 1}, "without_result": 0}
    assert row["quality"]["R@2"]["mean"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert row["by"]["type"]["bridge"]["R@2"]["mean"] == pytest.approx(0.25)
    assert row["by"]["hops"]["1"]["R@2"] == {"mean": 1.0, "low": None, "high": None}
    assert of["baseline"] == "fixed"
    assert set(of["retrievers"]["other"]["p"].values()) == {1.0}
    text = (Path(settings.out) / "bench.md").read_text(encoding="utf-8")
    for part in (
        "1 more have no gold document",
        "1 lines of the qrels name a pair again",
        "fixed: 3 passages were returned twice",
        "fixed: 1 questions were answered by dense",
        "its number of gold documents, for its metadata tell none",
    ):
        assert part in text


def test_gold_outside_the_corpus_is_counted(z_set: Path, z_settings: BenchSettings, tmp_path: Path) -> None:
    folder = tmp_path / "s" / "t"
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).write_bytes((z_set / name).read_bytes())
    (folder / "qrels" / "x.tsv").write_text("q\td\ts\nq1\tp1\t1\nq1\tlost\t1\n", encoding="utf-8")
    report = bench(replace(z_settings, data=(str(folder),))).report
    (of,) = report["sets"].values()
    assert of["data"]["gold_outside_corpus"] == 1
    assert of["retrievers"]["bm25"]["quality"]["R@20"]["mean"] <= 0.5
    assert "1 of 2 gold documents are not in the corpus" in (Path(z_settings.out) / "bench.md").read_text("utf-8")


def test_the_limit_draws_by_seed_and_keeps_the_order(z_set: Path) -> None:
    dataset = load_dataset(z_set)
    assert [q.id for q in questions(dataset, None, 0)] == ["q1", "q2", "q4"]
    drawn = {tuple(q.id for q in questions(dataset, 2, seed)) for seed in range(20)}
    assert drawn == {("q1", "q2"), ("q1", "q4"), ("q2", "q4")}
    with pytest.raises(GfmError, match="found none"):
        questions(replace(dataset, qrels={}), None, 0)


def test_an_index_is_opened_again_and_built_again_for_another_corpus(
    z_set: Path, z_settings: BenchSettings, tmp_path: Path
) -> None:
    dataset, said = load_dataset(z_set), []
    path, cache = tmp_path / "w" / "i", tmp_path / "w" / "cache.sqlite"
    first = open_or_build(dataset, path, cache, z_settings, said.append)
    assert said == [f"building the index {path}"]
    assert open_or_build(dataset, path, cache, z_settings, said.append).generation == first.generation
    assert len(said) == 1
    changed = tmp_path / "corpus.jsonl"
    changed.write_bytes(dataset.corpus.read_bytes().replace(b"1911", b"1912"))
    open_or_build(replace(dataset, corpus=changed), path, cache, z_settings, said.append)
    assert "is of another corpus, encoder or extractor" in said[1]
    open_or_build(replace(dataset, corpus=changed), path, cache, replace(z_settings, encoder="hashing:32"), said.append)
    assert "is of another corpus, encoder or extractor" in said[3]


def test_what_would_fail_later_fails_at_once(z_settings: BenchSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GfmError, match="two sets are called the same"):
        bench(replace(z_settings, data=z_settings.data * 2))
    with pytest.raises(GfmError, match="does not exist"):
        bench(replace(z_settings, data=("nowhere",)))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GfmError, match=r"pip install matplotlib, or leave the pictures out: --no-pictures"):
        bench(replace(z_settings, pictures=True))
    Path(z_settings.out).mkdir(exist_ok=True)
    (Path(z_settings.out) / "bench.json").write_text("mine", encoding="utf-8")
    with pytest.raises(GfmError, match="give another --out"):
        bench(z_settings)
