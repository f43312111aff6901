"""The service, asked over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")

import httpx

from gfm.context import build_context
from gfm.index.index import GraphIndex
from gfm.llm.port import LLM
from gfm.llm.settings import LLMSettings
from gfm.report import as_json
from gfm.retrieve.base import Retriever
from gfm.retrieve.bm25 import BM25Retriever
from gfm.types import GfmError, Retrieval
from tests.fake_llm import Answer as Reply
from tests.fake_llm import FakeLLM
from tests.serve.conftest import Serve, Waiting

QUESTION = "Which sea is near the birthplace of the builder of Tarn Mill?"
BUILT = "Who built Tarn Mill?"


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "seconds"}


def test_search_gives_what_the_command_gives(serve: Serve, loader: Callable[[], Retriever]) -> None:
    with serve() as client:
        response = client.post("/search", json={"question": QUESTION, "top_k": 3, "max_tokens": 300})
    found = loader().retrieve(QUESTION, 3)
    expected = json.loads(json.dumps(as_json(found, build_context(found, 300))))
    assert response.status_code == 200
    assert without_times(response.json()) == without_times(expected)
    assert response.headers["content-type"] == "application/json"
    assert "access-control-allow-origin" not in response.headers


def test_explain_has_the_graph(serve: Serve) -> None:
    with serve() as client:
        row = client.post("/explain", json={"question": QUESTION}).json()
    assert len(row["graph"]["nodes"]) == 10
    assert row["passages"][0]["rank"] == 1


@pytest.mark.parametrize("path", ["search", "ask", "explain"])
def test_filters_limit_the_search(serve: Serve, path: str) -> None:
    with serve() as client:

        def ask(filters: Any) -> httpx.Response:
            return client.post(f"/{path}", json={"question": "On which sea does Port Isk lie?", "filters": filters})

        text = ask({"document_id": "p3"}).text
        none, wrong, whole = ask({"document_id": "p99"}), ask({"year": 1}), ask(None)
        described = client.get("/openapi.json").json()["components"]["schemas"][path.capitalize()]
    assert "Halder" in text
    assert "Orla Venn was born" not in text
    assert (none.status_code, wrong.status_code, whole.status_code) == (404, 404, 200)
    assert "found none; widen the filters" in none.json()["error"]
    assert "expected some of document_id" in wrong.json()["error"]
    assert "filters" in described["properties"]


def test_only_a_learnt_retriever_explains(serve: Serve, loader: Callable[[], Retriever]) -> None:
    with serve(lambda: BM25Retriever(loader().index)) as client:
        assert client.post("/search", json={"question": QUESTION}).json()["score_unit"] == "BM25"
        assert client.post("/explain", json={"question": QUESTION}).status_code == 404
        assert "/explain" not in client.get("/openapi.json").json()["paths"]


def test_ask_without_a_model_quotes_the_sources(serve: Serve) -> None:
    with serve() as client:
        row = client.post("/ask", json={"question": BUILT}).json()
    assert row["kind"] in ("extractive", "no evidence")
    assert row["question"] == BUILT


def test_ask_with_a_model(serve: Serve, fake_llm: FakeLLM, loader: Callable[[], Retriever]) -> None:
    fake_llm.answers("Orla Venn built Tarn Mill [1].", Reply("no", status=401))
    with serve(llm=LLM(LLMSettings(model="m", base_url=fake_llm.url, api_key="secret"))) as client:
        done, failed, small = (
            client.post("/ask", json={"question": "Tarn Mill was built by Orla Venn in 1911.", **more})
            for more in ({}, {}, {"max_tokens": 1})
        )
    assert done.json()["text"] == "Orla Venn built Tarn Mill [1]."
    assert (failed.status_code, small.status_code) == (502, 422)
    assert "secret" not in failed.text
    assert fake_llm.url not in failed.text
    assert "room for at least one passage" in small.json()["error"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "body.question: Field required"),
        ({"question": ""}, "body.question: String should have at least 1 character"),
        ({"question": " \u200b"}, "body.question: Value error, expected a question"),
        ({"question": "x" * 21}, "body.question: String should have at most 20 characters"),
        ({"question": "x", "top_k": 8}, "body.top_k: Input should be less than or equal to 7"),
        ({"question": "x", "top_k": "5"}, "body.top_k: Input should be a valid integer"),
        ({"question": "x", "max_tokens": 0}, "body.max_tokens: Input should be greater than or equal to 1"),
        ({"question": "x", "question2": "y"}, "body.question2: Extra inputs are not permitted"),
        ([], "body: Input should be"),
    ],
)
def test_what_is_wrong_with_a_request_is_told(serve: Serve, body: Any, said: str) -> None:
    with serve(max_question=20, max_top_k=7) as client:
        response = client.post("/search", json=body)
    assert response.status_code == 422
    assert set(response.json()) == {"error"}
    assert response.json()["error"].startswith(said)


def test_a_whole_number_may_be_written_with_a_point(serve: Serve) -> None:
    with serve() as client:
        assert len(client.post("/search", json={"question": QUESTION, "top_k": 2.0}).json()["passages"]) == 2
        for top_k in (2.5, True, "2", 1e400):
            data = json.dumps({"question": QUESTION, "top_k": top_k})
            response = client.post("/search", content=data, headers={"content-type": "application/json"})
            assert response.status_code == 422


def test_bytes_that_are_no_request(serve: Serve) -> None:
    kind = {"content-type": "application/json"}
    with serve() as client:
        for data in (b"{", b"\xff", b'{"question": "\\ud800"}', b'{"\\ud800": 1}', b"[" * 60_000, b"1e999", b""):
            response = client.post("/search", content=data, headers=kind)
            assert response.status_code in (400, 422), data[:20]
            assert set(response.json()) == {"error"}
        plain = client.post("/search", content=b'{"question": "x"}', headers={"content-type": "text/plain"})
        assert plain.status_code == 422  # what a page of a browser may send without asking
        unknown, wrong = client.get("/nothing"), client.get("/search")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "Not Found"})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert set(wrong.json()) == {"error"}


@pytest.mark.parametrize("error", [GfmError("/secret/place: not finite"), ZeroDivisionError("/secret/place")])
def test_a_defect_shows_nothing_of_the_machine(
    serve: Serve, z_index: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        index = GraphIndex.open(z_index)

        def retrieve(self, *_: Any) -> Retrieval:
            raise error

    with serve(Broken) as client:
        response = httpx.post(f"{client.base_url}/search", json={"question": QUESTION}, trust_env=False)
        counted = client.get("/metrics").text
    assert (response.status_code, "secret" in response.text) == (500, False)
    assert set(response.json()) == {"error"}
    assert 'gfm_requests_total{path="/search",status="500"} 1.0' in counted
    assert "/secret/place" in caplog.text


def test_a_full_queue_sends_away_and_everybody_else_is_served(serve: Serve, waiting: Waiting) -> None:
    with serve(lambda: waiting, concurrency=1, queue=2) as client, ThreadPoolExecutor(3) as pool:

        def ask(_: int) -> httpx.Response:
            return client.post("/search", json={"question": QUESTION})

        first = pool.submit(ask, 0)
        assert waiting.begun.acquire(timeout=30)
        others = [pool.submit(ask, n) for n in (1, 2)]
        while 'gfm_waiting{gate="search"} 2.0' not in client.get("/metrics").text:
            pass
        refused = client.post("/search", json={"question": QUESTION})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert set(refused.json()) == {"error"}
        assert client.get("/health").json()["status"] == "ok"  # never waits
        assert not waiting.begun.acquire(blocking=False)  # one at a time
        waiting.go.set()
        assert [done.result().status_code for done in (first, *others)] == [200, 200, 200]
        counted = client.get("/metrics").text
    assert 'gfm_requests_total{path="/search",status="503"} 1.0' in counted
    assert 'gfm_requests_total{path="/search",status="200"} 3.0' in counted


def test_a_request_is_given_up_but_its_thread_keeps_its_place(serve: Serve, waiting: Waiting) -> None:
    with serve(lambda: waiting, concurrency=1, queue=0, timeout=0.2) as client:
        slow = client.post("/search", json={"question": QUESTION})
        assert (slow.status_code, set(slow.json())) == (504, {"error"})
        assert client.post("/search", json={"question": QUESTION}).status_code == 503
        waiting.go.set()
        while 'gfm_working{gate="search"} 1.0' in client.get("/metrics").text:
            pass


def test_a_stop_lets_what_is_under_way_finish(serve: Serve, waiting: Waiting) -> None:
    with ThreadPoolExecutor(1) as pool:
        with serve(lambda: waiting) as client:
            asked = pool.submit(httpx.post, f"{client.base_url}/search", json={"question": QUESTION}, trust_env=False)
            assert waiting.begun.acquire(timeout=30)
            threading.Timer(0.3, waiting.go.set).start()  # after the server was told to stop
        assert asked.result().status_code == 200


def test_metrics_are_prometheus_text(serve: Serve) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    with serve() as client:
        client.post("/search", json={"question": QUESTION})
        client.get("/" + "x" * 50)
        response = client.get("/metrics")
        generation = client.get("/health").json()["generation"]
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    assert response.headers["content-type"].startswith("text/plain; version=")
    paths = {sample.labels["path"] for sample in families["gfm_requests"].samples}
    assert paths == {"/search", "other"}
    stages = {sample.labels["stage"] for sample in families["gfm_stage_seconds"].samples}
    assert {"encode", "network"} <= stages
    assert families["gfm_index"].samples[0].labels["generation"] == generation
    assert re.search(r"^gfm_working\{gate=\"search\"\} 0.0$", response.text, re.MULTILINE)
