from __future__ import annotations

from pathlib import Path
from typing import Any

from gfm.extract.llm import LLMExtractor
from gfm.index.builder import split_all
from gfm.index.cache import Cache
from gfm.index.plan import plan_extraction
from gfm.index.recipe import BuildSettings
from gfm.llm.port import LLM
from gfm.llm.settings import LLMSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import Document
from tests.conftest import CORPUS_Z, CorpusZ
from tests.fake_llm import FakeLLM, facts

ENCODER = HashingEncoder(64)


def extractor(fake: FakeLLM, **settings: Any) -> LLMExtractor:
    return LLMExtractor(LLM(LLMSettings(**{"model": "m", "base_url": fake.url, **settings})))


def test_a_plan_asks_nothing_and_writes_nothing(fake_llm: FakeLLM, corpus_z: CorpusZ, tmp_path: Path) -> None:
    asks = extractor(fake_llm, price_input=1.0, price_output=2.0, reply_tokens=60)
    documents = [*corpus_z.documents, Document("copy", "", CORPUS_Z["p1"])]
    plan = plan_extraction(documents, ENCODER, BuildSettings(), asks, tmp_path / "cache.sqlite")
    assert (plan.passages, plan.calls) == (6, 5)
    assert plan.input_tokens == sum(map(asks.input_tokens, CORPUS_Z.values()))
    assert 5 * 50 < plan.output_tokens <= 5 * 60
    assert plan.usd == (plan.input_tokens + 2 * plan.output_tokens) / 1e6
    assert plan.most_usd == (2 * plan.input_tokens + 300 + 2 * 600) / 1e6
    assert fake_llm.requests == []
    assert not (tmp_path / "cache.sqlite").exists()


def test_what_is_known_is_not_planned(fake_llm: FakeLLM, corpus_z: CorpusZ, tmp_path: Path) -> None:
    fake_llm.behave = lambda body, n: "bad" if "Quince" in str(body) else facts()
    cache = Cache(tmp_path / "cache.sqlite")
    cache.extractions(split_all(corpus_z.documents, ENCODER, BuildSettings()), extractor(fake_llm))
    cache.close()
    plan = plan_extraction(corpus_z.documents, ENCODER, BuildSettings(), extractor(fake_llm), tmp_path / "cache.sqlite")
    assert plan.calls == 1
    assert plan.usd is None
    assert "1 calls (4 of 5 passages are known)" in plan.text()
    assert "price unknown" in plan.text()
