"""The default encoder, run by torch alone, so that its first vector need not wait for a library of models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from gfm.progress import track


class MiniLM:
    """A BERT and the mean of its outputs: the model in the folder of all-MiniLM-L6-v2.

    sentence-transformers makes the same vectors of the same folder, up to rounding; only its imports take longer than
    all else that a question needs. The methods are those of its models that `SentenceEncoder` calls.

    Args:
        folder: With model.safetensors, tokenizer.json, config.json and sentence_bert_config.json.
        device: A torch device.

    Sources: Devlin et al., "BERT", NAACL 2019; Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
    """

    def __init__(self, folder: Path, device: str = "cpu"):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._eps = float(config["layer_norm_eps"])
        limits = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        self._most = int(limits["max_seq_length"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(self._most)
        self.tokenizer.no_padding()
        self._weights = load_file(folder / "model.safetensors", device=device)

    def eval(self) -> None:
        """Nothing here behaves otherwise in training."""

    def get_max_seq_length(self) -> int:
        """Most tokens of a text, special tokens counted."""
        return self._most

    def encode_query(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        """The same as for documents: this model has no prompts."""
        return self.encode_document(texts, **options)

    def encode_document(
        self, texts: Sequence[str], batch_size: int = 32, show_progress_bar: bool = False, convert_to_numpy: bool = True
    ) -> np.ndarray:
        """Vectors, float32, (len(texts), dim), not scaled to any length."""
        tokens = [row.ids for row in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda i: -len(tokens[i]))  # texts of like length share a batch
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        found = np.empty((len(texts), self._weights["embeddings.LayerNorm.weight"].shape[0]), dtype=np.float32)
        for batch in track(batches, len(batches), "Batches" if show_progress_bar else ""):
            found[batch] = self._means([tokens[i] for i in batch]).cpu().numpy()
        return found

    @torch.inference_mode()
    def _means(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        longest = max(map(len, tokens))
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in tokens])  # (B, n)
        real = torch.arange(longest) < torch.tensor([len(row) for row in tokens])[:, None]  # (B, n)
        device = self._weights["embeddings.LayerNorm.weight"].device
        outputs, real = self._bert(padded.to(device), real.to(device)), real.to(device)  # (B, n, D)
        return (outputs * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)  # (B, D)

    def _bert(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Outputs of the last layer, (B, n, D), for token numbers and which of them are no padding, both (B, n)."""
        x = F.embedding(tokens, self._weights["embeddings.word_embeddings.weight"])  # (B, n, D)
        x = x + self._weights["embeddings.token_type_embeddings.weight"][0]
        x = x + self._weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in (f"encoder.layer.{i}." for i in range(self._layers)):
            q, k, v = (
                self._linear(x, f"{layer}attention.self.{name}").view(*tokens.shape, self._heads, -1).transpose(1, 2)
                for name in ("query", "key", "value")
            )  # (B, heads, n, D / heads)
            heard = F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None, :])
            heard = heard.transpose(1, 2).flatten(2)  # (B, n, D)
            x = self._norm(
                x + self._linear(heard, f"{layer}attention.output.dense"), f"{layer}attention.output.LayerNorm"
            )
            inner = F.gelu(self._linear(x, f"{layer}intermediate.dense"))  # (B, n, 4 D)
            x = self._norm(x + self._linear(inner, f"{layer}output.dense"), f"{layer}output.LayerNorm")
        return x

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return F.layer_norm(x, (x.shape[-1],), weight, bias, self._eps)
