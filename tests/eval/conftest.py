"""A question set of four questions over Corpus Z in BEIR layout, and a retriever whose answers are known."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from gfm.index.index import GraphIndex
from gfm.types import Hit, Query, Retrieval

QUERIES = (
    '{"_id": "q1", "text": "who built it?", "metadata": {"type": "one_hop"}}\n'
    '{"_id": "q2", "text": "which sea?", "metadata": {"type": "bridge"}}\n'
    '{"_id": "q3", "text": "no gold", "metadata": {"type": "bridge"}}\n'
    '{"_id": "q4", "text": "which winter?", "metadata": {"type": "bridge"}}\n'
)
QRELS = "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq2\tp2\t1\nq2\tp3\t1\nq2\tp3\t1\nq4\tp4\t1\nq4\tp5\t1\n"


@pytest.fixture(scope="session")
def z_set(tmp_path_factory: pytest.TempPathFactory, z_files: Path) -> Path:
    """The set; q3 has no gold, q4 none within the first two of `Fixed`; a line of the qrels stands there twice."""
    folder = tmp_path_factory.mktemp("sets") / "z"
    (folder / "qrels").mkdir(parents=True)
    shutil.copy(z_files / "corpus.jsonl", folder)
    (folder / "queries.jsonl").write_text(QUERIES, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(QRELS, encoding="utf-8")
    return folder


class Fixed:
    """Always p1, p1, p2, p3, p4, p5 (the first twice, as no retriever should), in 3 ms by its own account."""

    asked: list[str] = []  # noqa: RUF012 (of the last one made)

    def __init__(self, index: GraphIndex, encodes: bool = True):
        self.index, self._encodes = index, encodes
        Fixed.asked = []

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        assert isinstance(query, Query)
        Fixed.asked.append(query.id)
        logging.getLogger("gfm.fixed").warning("query %r: another one answers", query.id)
        numbers = [0, *range(min(top_k, 5))]
        hits = [Hit(self.index.passage(n), 1.0 - 0.1 * i, i + 1) for i, n in enumerate(numbers)]
        if self._encodes:
            self.index.encode([query.text])
        seconds = {"search": 0.001, "rank": 0.002} | ({"encode": 0.0} if self._encodes else {})
        trace = {"hubs": 2, "told": True, "fallback": "dense" if query.id == "q4" else None}
        return Retrieval(query, [], [], hits, "cosine", trace=trace, seconds=seconds)


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> type[Fixed]:
    """Makes `Fixed` known as the retrievers ``fixed`` and ``other``."""
    from gfm import retrievers
    from gfm.eval import settings

    for name in ("fixed", "other"):
        monkeypatch.setitem(retrievers._MAKERS, name, ("fixed_retriever", "Fixed"))
    monkeypatch.setattr(settings, "NAMES", ("fixed", "other", *settings.NAMES))
    monkeypatch.setattr(retrievers, "_maker", lambda name, real=retrievers._maker: _fixed_or(name, real))
    return Fixed


def _fixed_or(name: str, real: object) -> object:
    return Fixed if name in {"fixed", "other"} else real(name)  # type: ignore[operator]
