"""The lexical side of an index: BM25 over passages (bm25s) and the tokens of entity names, one vocabulary for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gfm.graph.knowledge_graph import expand, pointers
from gfm.graph.occurrences import Numbers
from gfm.text.normalise import words
from gfm.types import GfmError

_EPSILON = 1e-6
WORDS = ("bm25_indptr", "bm25_indices", "bm25_count", "name_ptr", "name_token")  # arrays of `Words`, as they are stored


class Lexical:
    """Token statistics of an index.

    Attributes:
        vocabulary: Token → id.
        idf: float32[V], log(1 + (P - df + 0.5) / (df + 0.5)) over passages (Robertson and Zaragoza, 2009).
        name_ptr: int64[N+1], CSR pointers into `name_token`.
        name_token: int32[·], distinct tokens of each entity's name.
    """

    def __init__(self, vocabulary: dict[str, int], arrays: dict[str, np.ndarray], num_passages: int):
        self.vocabulary, self._arrays = vocabulary, arrays
        self.idf, self.name_ptr, self.name_token = arrays["idf"], arrays["name_ptr"], arrays["name_token"]
        self.num_passages = num_passages

    @cached_property
    def _bm25(self) -> Any:
        import bm25s

        made = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        made.scores = {name: self._arrays[f"bm25_{name}"] for name in ("data", "indices", "indptr")}
        made.scores["num_docs"] = self.num_passages
        made.nonoccurrence_array = None
        return made

    def part(self, moved: np.ndarray, old_names: Sequence[str], names: Sequence[str]) -> Lexical:
        """Statistics of some of the passages and of some of the names, as if there were no others.

        Args:
            moved: int[P], the new number of each passage, or -1.
            old_names: Names of all entities.
            names: Names of those that are left.

        Raises:
            GfmError: The index was built by a version that kept no counts.
        """
        if not set(WORDS) <= set(self._arrays):
            raise GfmError("expected an index that counts words, found one of an earlier version; build it again")
        columns = (self._arrays[name] for name in WORDS)
        words = merge_words(Words(list(self.vocabulary), *columns), moved, {}, old_names, names)
        num_passages = int(moved.max(initial=-1)) + 1
        vocabulary = {token: i for i, token in enumerate(words.vocabulary)}
        return Lexical(vocabulary, lexical_arrays(words, num_passages), num_passages)

    def token_ids(self, text: str) -> np.ndarray:
        """Distinct known token ids of a text, sorted, int64."""
        known = {self.vocabulary[t] for t in words(text) if t in self.vocabulary}
        return np.array(sorted(known), dtype=np.int64)

    def bm25(self, token_ids: np.ndarray) -> np.ndarray:
        """BM25 score of every passage, float32[P]; zeros where no token is known."""
        if not len(token_ids):
            return np.zeros(self.num_passages, dtype=np.float32)
        return np.asarray(self._bm25.get_scores_from_ids(token_ids), dtype=np.float32)

    def coverage(self, token_ids: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Idf-weighted share of the tokens that stand in each of the given passages, float32[len(passages)]."""
        ptr, rows = self._arrays["bm25_indptr"], self._arrays["bm25_indices"]
        found = np.zeros(self.num_passages, dtype=np.float32)
        for token in token_ids:
            found[rows[ptr[token] : ptr[token + 1]]] += self.idf[token]
        return np.asarray(found[passages] / max(float(self.idf[token_ids].sum()), _EPSILON), dtype=np.float32)

    @cached_property
    def _names_of(self) -> tuple[np.ndarray, np.ndarray]:
        """CSR of `name_token` by token: pointers int64[V+1], and the names that hold each token, ascending."""
        order = np.argsort(self.name_token, kind="stable")
        owner = np.repeat(np.arange(len(self.name_ptr) - 1), np.diff(self.name_ptr))
        return pointers(self.name_token, len(self.vocabulary)), owner[order]

    def named(self, token_ids: np.ndarray) -> np.ndarray:
        """Names whose tokens are all among the given ones, the rarest first (sum of idf, then number), int64[·].

        A name whose tokens are some of those of another such name is left out: "Mill" is not meant by "Tarn Mill".
        """
        ptr, names = self._names_of
        positions, _ = expand(ptr, token_ids)
        found, count = np.unique(names[positions], return_counts=True)
        whole = found[count == np.diff(self.name_ptr)[found]]
        left = self.longest(whole)
        return np.asarray(left[np.lexsort((left, -self.name_weight(left)))], dtype=np.int64)

    def longest(self, names: np.ndarray) -> np.ndarray:
        """Those names, in their order, whose tokens are not some of those of another one among them, int64[·]."""
        tokens = [frozenset(self.name_token[self.name_ptr[i] : self.name_ptr[i + 1]].tolist()) for i in names]
        kept = [n for n, own in enumerate(tokens) if not any(own < other for other in tokens)]
        return np.asarray(names[kept], dtype=np.int64)

    def name_weight(self, names: np.ndarray) -> np.ndarray:
        """Sum of the idf of each name's tokens, float64[len(names)]."""
        positions, owner = expand(self.name_ptr, names)
        weight: np.ndarray = np.bincount(owner, self.idf[self.name_token[positions]], minlength=len(names))
        return weight

    def name_overlap(self, entities: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Idf-weighted share of each name's tokens that are among the given ones, float32[len(entities)]."""
        positions, owner = expand(self.name_ptr, entities)
        token = self.name_token[positions]
        found = np.bincount(owner, weights=self.idf[token] * np.isin(token, token_ids), minlength=len(entities))
        share: np.ndarray = (found / np.maximum(self.name_weight(entities), _EPSILON)).astype(np.float32)
        return share


@dataclass(frozen=True)
class Words:
    """Which tokens stand in each passage and in each entity's name.

    Attributes:
        vocabulary: Tokens, sorted.
        ptr: int64[V+1], CSR pointers into the next two, by token.
        passage: int32[·], ascending for each token.
        count: int32[·], how often the token stands there.
        name_ptr: int64[N+1], CSR pointers into ``name_token``.
        name_token: int32[·], distinct tokens of each name, ascending.
    """

    vocabulary: list[str]
    ptr: np.ndarray
    passage: np.ndarray
    count: np.ndarray
    name_ptr: np.ndarray
    name_token: np.ndarray


NO_WORDS = Words([], *(np.zeros(n, dtype) for n, dtype in ((1, "i8"), (0, "i4"), (0, "i4"), (1, "i8"), (0, "i4"))))


def merge_words(
    old: Words, moved: np.ndarray, texts: Mapping[int, str], old_names: Sequence[str], names: Sequence[str]
) -> Words:
    """Words of P passages and N names, from those of others and from new ones.

    Args:
        old: Words of P' passages and N' names.
        moved: int[P'], the new number of each of those passages, or -1 where its text is gone.
        texts: By new number; together with ``moved`` they give each new number once.
        old_names: Those N' names.
        names: The N names.
    """
    known = Numbers(old.vocabulary)
    rows = [
        (known[token], number, count) for number, text in texts.items() for token, count in Counter(words(text)).items()
    ]
    new_token, new_passage, new_count = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    old_passage = moved[old.passage]
    kept = old_passage >= 0
    token = np.concatenate([np.repeat(np.arange(len(old.vocabulary)), np.diff(old.ptr))[kept], new_token])
    passage = np.concatenate([old_passage[kept], new_passage])
    count = np.concatenate([old.count[kept], new_count])
    owner, name_token = _name_tokens(old, known, old_names, names)
    every = list(known)
    counts = np.bincount(np.concatenate([token, name_token]), minlength=len(every))
    used = sorted(np.flatnonzero(counts).tolist(), key=every.__getitem__)
    place = np.full(len(every), -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    token, name_token = place[token], place[name_token]
    order = _by_pair(token, passage)
    return Words(
        [every[i] for i in used],
        pointers(token, len(used)),
        passage[order].astype(np.int32),
        count[order].astype(np.int32),
        pointers(owner, len(names)),
        name_token[_by_pair(owner, name_token)].astype(np.int32),
    )


def _by_pair(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The order of int64 pairs, int64[·]; what is nearly in order already takes next to no time."""
    return np.argsort(first * (second.max(initial=0) + 1) + second, kind="stable")


def _name_tokens(
    old: Words, known: Numbers, old_names: Sequence[str], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(name, token) of every distinct token of each name, by name, int64[·] each."""
    row = {name: i for i, name in enumerate(old_names)}
    at = np.array([row.get(name, -1) for name in names], dtype=np.int64)
    positions, owner = expand(old.name_ptr, at[at >= 0])
    new = [(i, known[token]) for i in np.flatnonzero(at < 0).tolist() for token in set(words(names[i]))]
    new_owner, new_token = np.array(new, dtype=np.int64).reshape(-1, 2).T
    owner = np.concatenate([np.flatnonzero(at >= 0)[owner], new_owner])
    token = np.concatenate([old.name_token[positions], new_token])
    order = np.argsort(owner, kind="stable")
    return owner[order], token[order]


def lexical_arrays(words: Words, num_passages: int, k1: float = 1.5, b: float = 0.75) -> dict[str, np.ndarray]:
    """Arrays of `Lexical`: idf, the score of each token in each of its passages, and the tokens of names.

    Source: the Lucene variant of Kamphuis et al., "Which BM25 Do You Mean?", ECIR 2020, which `bm25s` reads.
    """
    df = np.diff(words.ptr)
    idf = np.log1p((num_passages - df + 0.5) / (df + 0.5)).astype(np.float32)
    length = np.bincount(words.passage, weights=words.count, minlength=num_passages)
    average = length.sum() / max(num_passages, 1) or 1.0
    relative = b * length[words.passage] / average
    score = np.repeat(idf, df) * (words.count / (k1 * ((1 - b) + relative) + words.count))  # float64 until it is stored
    return {
        "idf": idf,
        "name_ptr": words.name_ptr,
        "name_token": words.name_token,
        "bm25_data": score.astype(np.float32),
        "bm25_indices": words.passage,
        "bm25_indptr": words.ptr,
        "bm25_count": words.count,
    }


def make_lexical(passages: Sequence[str], names: Sequence[str]) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Vocabulary (sorted) and arrays of `Lexical` for passage texts and entity names."""
    words = merge_words(NO_WORDS, np.zeros(0, np.int64), dict(enumerate(passages)), [], names)
    return {token: i for i, token in enumerate(words.vocabulary)}, lexical_arrays(words, len(passages))
