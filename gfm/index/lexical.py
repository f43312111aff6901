"""The lexical side of an index: BM25 over passages (bm25s) and the tokens of entity names, one vocabulary for both."""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np

from gfm.graph.knowledge_graph import expand
from gfm.text.normalise import tokens

_EPSILON = 1e-6


class Lexical:
    """Token statistics of an index.

    Attributes:
        vocabulary: Token → id.
        idf: float32[V], log(1 + (P - df + 0.5) / (df + 0.5)) over passages (Robertson and Zaragoza, 2009).
        name_ptr: int64[N+1], CSR pointers into `name_token`.
        name_token: int32[·], distinct tokens of each entity's name.
    """

    def __init__(self, vocabulary: dict[str, int], arrays: dict[str, np.ndarray], num_passages: int):
        self.vocabulary = vocabulary
        self.idf, self.name_ptr, self.name_token = arrays["idf"], arrays["name_ptr"], arrays["name_token"]
        self._bm25 = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self._bm25.scores = {
            "data": arrays["bm25_data"],
            "indices": arrays["bm25_indices"],
            "indptr": arrays["bm25_indptr"],
            "num_docs": num_passages,
        }
        self._bm25.nonoccurrence_array = None
        self.num_passages = num_passages

    def token_ids(self, text: str) -> np.ndarray:
        """Distinct known token ids of a text, sorted, int64."""
        known = {self.vocabulary[t] for t, _, _ in tokens(text) if t in self.vocabulary}
        return np.array(sorted(known), dtype=np.int64)

    def bm25(self, token_ids: np.ndarray) -> np.ndarray:
        """BM25 score of every passage, float32[P]; zeros where no token is known."""
        if not len(token_ids):
            return np.zeros(self.num_passages, dtype=np.float32)
        return np.asarray(self._bm25.get_scores_from_ids(token_ids), dtype=np.float32)

    def coverage(self, token_ids: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Idf-weighted share of the tokens that stand in each of the given passages, float32[len(passages)]."""
        ptr, rows = self._bm25.scores["indptr"], self._bm25.scores["indices"]
        found = np.zeros(self.num_passages, dtype=np.float32)
        for token in token_ids:
            found[rows[ptr[token] : ptr[token + 1]]] += self.idf[token]
        return np.asarray(found[passages] / max(float(self.idf[token_ids].sum()), _EPSILON), dtype=np.float32)

    def name_overlap(self, entities: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Idf-weighted share of each name's tokens that are among the given ones, float32[len(entities)]."""
        positions, owner = expand(self.name_ptr, entities)
        token = self.name_token[positions]
        idf = self.idf[token]
        total = np.bincount(owner, weights=idf, minlength=len(entities))
        found = np.bincount(owner, weights=idf * np.isin(token, token_ids), minlength=len(entities))
        return (found / np.maximum(total, _EPSILON)).astype(np.float32)


def make_lexical(passages: Sequence[str], names: Sequence[str]) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Vocabulary (sorted) and arrays of `Lexical` for passage texts and entity names."""
    passage_tokens = [[t for t, _, _ in tokens(text)] for text in passages]
    name_tokens = [sorted({t for t, _, _ in tokens(name)}) for name in names]
    vocabulary = {t: i for i, t in enumerate(sorted({t for row in (*passage_tokens, *name_tokens) for t in row}))}
    ids = [[vocabulary[t] for t in row] for row in passage_tokens]
    df = np.bincount([i for row in ids for i in set(row)], minlength=len(vocabulary))
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    if vocabulary and any(ids):
        model.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        scores = model.scores
    else:
        empty = np.zeros(0)
        scores = {"data": empty, "indices": empty, "indptr": np.zeros(len(vocabulary) + 1)}
    counts = [len(row) for row in name_tokens]
    return vocabulary, {
        "idf": np.log1p((len(passages) - df + 0.5) / (df + 0.5)).astype(np.float32),
        "name_ptr": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "name_token": np.array([vocabulary[t] for row in name_tokens for t in row], dtype=np.int32),
        "bm25_data": np.asarray(scores["data"], dtype=np.float32),
        "bm25_indices": np.asarray(scores["indices"], dtype=np.int32),
        "bm25_indptr": np.asarray(scores["indptr"], dtype=np.int64),
    }
