import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gfm.eval.metrics import DEFINITIONS, FILTERED, METRICS, evaluate, filtered_recall
from gfm.types import GfmError

SCORER = Path(__file__).parents[3] / "shared" / "tools" / "score_run.py"


def test_values_worked_by_hand() -> None:
    qrels = {"a": {"p1": 1, "p2": 2, "p3": 1, "p9": 0}}
    run = {"a": {"p1": 0.9, "x1": 0.8, "p2": 0.7, "p9": 0.6, "x2": 0.5, "x3": 0.4, "p3": 0.3}}  # gold at 1, 3 and 7
    report = evaluate(qrels, run)
    dcg = 1 + 1 / math.log2(4) + 1 / math.log2(8)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert report.per_query["a"] == pytest.approx(
        {"R@2": 1 / 3, "R@5": 2 / 3, "R@10": 1, "R@20": 1, "all@5": 0, "MRR@10": 1, "nDCG@10": dcg / ideal}
    )
    assert report.mean == report.per_query["a"]
    assert (report.num_queries, report.missing, report.without_gold) == (1, [], [])


def test_recall_divides_by_all_relevant_and_the_cutoffs_hold() -> None:
    qrels = {"a": {f"g{i}": 1 for i in range(4)}, "b": {"g": 1}}
    run = {
        "a": {"g0": 9.0, "g1": 8.0, "g2": 7.0, "g3": 6.0},
        "b": {**{f"x{i:02}": 50.0 - i for i in range(10)}, "g": 1.0},  # rank 11
    }
    report = evaluate(qrels, run)
    assert report.per_query["a"]["R@2"] == 0.5
    assert report.per_query["a"]["all@5"] == 1.0
    assert report.per_query["b"] == dict(zip(METRICS, [0, 0, 0, 1, 0, 0, 0], strict=True))
    assert report.mean["R@20"] == 1.0
    assert report.mean["MRR@10"] == 0.5


def test_ties_go_by_passage_id_ascending_and_close_scores_are_no_ties() -> None:
    qrels = {"tie": {"a": 1}, "close": {"z": 1}}
    run = {"tie": {"c": 1.0, "b": 1.0, "a": 1.0}, "close": {"a": 0.5, "z": 0.5 + 1e-12}}
    report = evaluate(qrels, run)
    assert report.per_query["tie"]["MRR@10"] == 1.0
    assert report.per_query["close"]["MRR@10"] == 1.0


def test_missing_queries_score_zero_and_queries_without_gold_are_left_out() -> None:
    qrels = {"a": {"p": 1}, "gone": {"p": 1}, "none": {"p": 0}, "empty": {}, "nothing found": {"p": 1}}
    run = {"a": {"p": 1.0}, "none": {"p": 1.0}, "extra": {"p": 1.0}, "nothing found": {}}
    report = evaluate(qrels, run)
    assert report.num_queries == 3
    assert report.missing == ["gone"]
    assert report.without_gold == ["none", "empty", "extra"]
    assert set(report.per_query) == {"a", "gone", "nothing found"}
    assert report.per_query["gone"] == report.per_query["nothing found"] == dict.fromkeys(METRICS, 0.0)
    assert report.mean["R@5"] == pytest.approx(1 / 3)


def test_without_any_gold_there_is_no_mean() -> None:
    report = evaluate({"a": {"p": 0}}, {"a": {"p": 1.0}})
    assert (report.mean, report.num_queries, report.without_gold) == ({}, 0, ["a"])
    assert evaluate({}, {}).per_query == {}


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_name_the_query(score: float) -> None:
    with pytest.raises(GfmError, match=r"query 'q 7': passage 'p' has the score (nan|-?inf)"):
        evaluate({"a": {"p": 1}}, {"a": {"p": 1.0}, "q 7": {"p": score}})


@pytest.mark.skipif(not SCORER.is_file(), reason="../shared/tools/score_run.py, the independent scorer, is not here")
def test_equal_to_the_independent_scorer(tmp_path: Path) -> None:
    draw = random.Random(7)
    passages = [f"p{i}" for i in range(60)]
    qrels = {
        f"q{i}": {p: draw.choice([0, 1, 1, 2]) for p in draw.sample(passages, draw.randint(1, 12))} for i in range(80)
    }
    run = {
        q: {
            p: draw.choice([draw.random(), round(draw.random(), 1)]) for p in draw.sample(passages, draw.randint(0, 40))
        }
        for q in list(qrels)[:75]
    }
    rows = [f"{q}\t{p}\t{score}\n" for q, row in qrels.items() for p, score in row.items()]
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    command = [sys.executable, str(SCORER), str(tmp_path / "qrels.tsv"), str(tmp_path / "run.json")]
    output = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    header, line, *_ = output.splitlines()
    assert tuple(header.split()[2:]) == METRICS
    report = evaluate(qrels, run)
    assert line.split() == ["all", str(report.num_queries), *(f"{100 * report.mean[m]:.1f}" for m in METRICS)]
    assert f"{len(report.missing)} of {report.num_queries} queries are missing" in output


@pytest.mark.parametrize(
    ("ranked", "at_two", "at_five"),
    [
        (["g1", "g2", "g3", "g4"], 1.0, 1.0),
        (["x", "g1", "g2", "y", "g3", "z", "g4"], 0.5, 1.0),  # without each other: ranks 2, 2, 3 and 4
        (["x", "y", "z", "g1", "g2"], 0.0, 0.5),
        ([], 0.0, 0.0),
    ],
)
def test_filtered_recall_takes_the_other_gold_passages_out(ranked: list[str], at_two: float, at_five: float) -> None:
    gold = {"g1", "g2", "g3", "g4"}
    assert filtered_recall(gold, ranked, 2) == at_two
    assert filtered_recall(gold, ranked, 5) == at_five


def test_filtered_recall_is_never_lower_than_strict_recall() -> None:
    draw = random.Random(3)
    names = [f"p{i}" for i in range(12)]
    for _ in range(50):
        gold, ranked = set(draw.sample(names, draw.randint(1, 5))), draw.sample(names, 12)
        for k in (2, 5):
            assert filtered_recall(gold, ranked, k) >= len(gold & set(ranked[:k])) / len(gold)


def test_every_metric_is_defined() -> None:
    named = {m if m in DEFINITIONS else f"{m.split('@')[0]}@k" for m in (*METRICS, *FILTERED)}
    assert named == set(DEFINITIONS)
