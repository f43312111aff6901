"""The generation that is served."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gfm.index.index import GraphIndex
from gfm.index.store import CURRENT
from gfm.retrieve.bm25 import BM25Retriever
from gfm.serve.live import Live
from gfm.types import GfmError
from tests.conftest import write_jsonl

Rebuild = Callable[..., str]


@pytest.fixture
def rebuild(tmp_path: Path) -> Rebuild:
    """Builds ``tmp_path/index`` of the given texts; gives the generation's name."""

    def build(*texts: str) -> str:
        rows: list[dict[str, object]] = [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)]
        corpus = write_jsonl(tmp_path / "corpus.jsonl", rows)
        return GraphIndex.build(corpus, tmp_path / "index", encoder="hashing:64", extractor="none").generation

    return build


def test_a_new_generation_takes_the_old_ones_place_and_readers_keep_theirs(rebuild: Rebuild, tmp_path: Path) -> None:
    first = rebuild("winter")
    live = Live(lambda: BM25Retriever(GraphIndex.open(tmp_path / "index")))
    assert (live.generation, live.refresh(), live.reloads) == (first, False, 0)
    reader = live.retriever
    second = rebuild("winter", "winter sea")
    assert live.generation == first  # until somebody looks
    assert (live.refresh(), live.generation, live.reloads, live.stale) == (True, second, 1, False)
    assert len(reader.retrieve("winter").passages) == 1
    assert len(live.retriever.retrieve("winter").passages) == 2


def test_one_that_does_not_open_leaves_the_old_one_served(
    rebuild: Rebuild, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, opened = rebuild("winter"), []

    def load() -> BM25Retriever:
        opened.append(1)
        return BM25Retriever(GraphIndex.open(tmp_path / "index"))

    live = Live(load)
    (tmp_path / "index" / CURRENT).write_text("generation-" + "0" * 16 + "\n")
    assert [live.refresh(), live.refresh()] == [False, False]
    assert (live.generation, live.stale, len(opened)) == (first, True, 2)  # the bad one is tried once
    assert "still serving" in caplog.text
    assert live.retriever.retrieve("winter").passages
    (tmp_path / "index" / CURRENT).write_text(f"{first}\n")
    assert (live.refresh(), live.stale) == (False, False)
    second = rebuild("winter", "sea")
    assert (live.refresh(), live.generation, live.stale) == (True, second, False)


def test_an_index_that_is_taken_away_is_still_served(rebuild: Rebuild, tmp_path: Path) -> None:
    first = rebuild("winter")
    live = Live(lambda: BM25Retriever(GraphIndex.open(tmp_path / "index")))
    shutil.rmtree(tmp_path / "index")
    assert (live.refresh(), live.stale, live.generation) == (False, True, first)
    assert live.retriever.retrieve("winter").passages


def test_there_must_be_an_index_at_first(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="expected the folder of an index"):
        Live(lambda: BM25Retriever(GraphIndex.open(tmp_path / "none")))


def test_the_service_looks_by_itself(rebuild: Rebuild, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")
    from gfm.serve.app import make_app
    from gfm.serve.settings import ServeSettings
    from tests.serve.conftest import running

    rebuild("winter")
    app = make_app(lambda: BM25Retriever(GraphIndex.open(tmp_path / "index")), ServeSettings(reload=0.01))
    with running(app) as client:
        second = rebuild("winter", "winter sea")
        while (health := client.get("/health").json())["generation"] != second:
            pass
        assert (health["status"], health["reloads"], health["counts"]["passages"]) == ("ok", 1, 2)
        assert len(client.post("/search", json={"question": "winter"}).json()["passages"]) == 2
