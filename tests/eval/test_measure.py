"""What is measured of a retriever, on one whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gfm.eval.beir import load_dataset
from gfm.eval.measure import Job, _networks, _weights_hash, measure, measure_apart
from gfm.eval.run import EncodedQueries
from gfm.index.index import GraphIndex
from gfm.types import GfmError


@pytest.fixture
def make_job(z_set: Path, z_index: Path) -> Callable[..., Job]:
    def make(**changes: object) -> Job:
        dataset, index = load_dataset(z_set), GraphIndex.open(z_index)
        asked = tuple(dataset.judged())
        row: dict[str, object] = {
            "index": z_index,
            "generation": index.generation,
            "encoded": EncodedQueries(index.encoder, [q.text for q in asked]),
            "label": "x",
            "retriever": {"name": "fixed"},
            "queries": asked,
            "gold": {q.id: frozenset(dataset.qrels[q.id]) for q in asked},
            "depth": 20,
            "max_tokens": 2000,
        }
        return Job(**{**row, **changes})  # type: ignore[arg-type]

    return make


def test_a_result_counts_once_and_the_first_question_is_asked_beforehand(
    fixed: type, make_job: Callable[..., Job], caplog: pytest.LogCaptureFixture
) -> None:
    job = make_job()
    found = measure(job)
    assert caplog.records == []  # a fallback is counted below, not told for each question
    assert fixed.asked == ["q1", "q1", "q2", "q4"]  # type: ignore[attr-defined]
    assert list(found.run) == ["q1", "q2", "q4"]
    assert list(found.run["q1"]) == ["p1", "p2", "p3", "p4", "p5"]
    assert found.run["q1"]["p1"] == 1.0  # of its two places the better
    assert found.repeated == 3
    assert found.fallbacks == {"dense": 1}
    assert found.trace == {"hubs": 6.0}
    assert (found.weights, found.reached, found.peak_bytes) == (None, None, None)
    assert len(found.retrieval) == len(found.context_seconds) == 3


def test_a_question_bears_its_share_of_the_batch(fixed: type, make_job: Callable[..., Job]) -> None:
    job = make_job()
    found = measure(job)
    assert found.uses_vectors
    assert found.seconds == {
        "search": [0.001] * 3,
        "rank": [0.002] * 3,
        "encode": pytest.approx([job.encoded.seconds] * 3),
    }
    plain = measure(make_job(retriever={"name": "fixed", "encodes": False}))
    assert not plain.uses_vectors
    assert plain.seconds == {"search": [0.001] * 3, "rank": [0.002] * 3}


def test_gold_within_the_context(fixed: type, make_job: Callable[..., Job]) -> None:
    whole = measure(make_job())
    assert whole.in_context == [1.0, 1.0, 1.0]
    small = measure(make_job(max_tokens=max(whole.tokens) // 2))
    assert small.in_context[0] == 1.0
    assert small.in_context[2] < 1.0
    assert max(small.tokens) <= max(whole.tokens) // 2


def test_the_learnt_retriever_tells_its_weights_and_its_candidates(
    make_job: Callable[..., Job], untrained: Path
) -> None:
    found = measure(make_job(retriever={"name": "gfm", "path": str(untrained)}))
    assert found.reached == [1.0, 1.0, 1.0]  # five passages, all of them candidates
    capped = measure(make_job(retriever={"name": "gfm", "path": str(untrained), "max_passages": 1}))
    assert capped.reached is not None
    assert sum(capped.reached) < 3
    assert capped.weights == found.weights is not None


def test_networks_are_found_inside_other_retrievers() -> None:
    network = torch.nn.Linear(2, 2)
    learnt = SimpleNamespace(model=network, retrieve=None)
    fused = SimpleNamespace(lists={"a": [learnt], "b": SimpleNamespace(retrieve=None)}, retrieve=None, index="gfm")
    assert list(_networks(fused)) == [network]
    assert _weights_hash(fused) == _weights_hash(learnt)  # type: ignore[arg-type]
    assert _weights_hash(SimpleNamespace(retrieve=None, index=network)) is not None  # type: ignore[arg-type]
    assert _weights_hash(SimpleNamespace(retrieve=None, other=SimpleNamespace(model=network))) is None  # type: ignore[arg-type]


def test_an_index_that_was_replaced_is_told(make_job: Callable[..., Job]) -> None:
    with pytest.raises(GfmError, match="was built again during the comparison"):
        measure(make_job(generation="generation-9", retriever={"name": "bm25"}))


def test_another_process_needs_no_encoder(make_job: Callable[..., Job]) -> None:
    import pickle

    job = make_job()
    copy = pickle.loads(pickle.dumps(job))
    assert copy.encoded._encoder is None
    texts = [q.text for q in job.queries]
    assert (copy.encoded.encode(texts, is_query=True) == job.encoded.encode(texts, is_query=True)).all()
    assert copy.encoded._encoder is None
    assert copy.encoded.encode(["other"], is_query=True).shape == (1, 64)


@pytest.mark.slow
def test_a_process_of_its_own_tells_its_peak_and_the_same_results(make_job: Callable[..., Job]) -> None:
    job = make_job(retriever={"name": "dense"})
    apart, here = measure_apart(job), measure(job)
    assert apart.run == here.run
    assert apart.peak_bytes is not None
    assert apart.peak_bytes > 20e6
