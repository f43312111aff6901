"""Question sets as batches of subgraphs: indexes built where they are missing, a fixed split, a seeded order."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Batch, Data

from gfm import __version__
from gfm.eval.answers import held_out, read_answer_questions
from gfm.eval.beir import Dataset as QuestionSet
from gfm.eval.beir import load_dataset
from gfm.index.documents import read_documents
from gfm.index.index import GraphIndex
from gfm.index.store import CURRENT, file_hash
from gfm.retrieve.signals import CandidateSettings
from gfm.train.augment import AugmentSettings, vary
from gfm.train.dataset import cached_subgraphs
from gfm.train.derive import one_hop_questions
from gfm.train.processes import rank, world_size
from gfm.train.questions import make_questions
from gfm.train.settings import DataSettings, SetSettings, TrainSettings
from gfm.types import GfmError, Query

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedSet:
    """One set, ready to train on.

    Attributes:
        name: Of the set.
        train: Labelled subgraphs to train on, see `gfm.train.dataset`; each also carries ``set_number``, (1,).
        validation: Those kept for validation.
        encoder: Name of the index's encoder.
        generation: Of the index.
    """

    name: str
    train: list[Data]
    validation: list[Data]
    encoder: str
    generation: str


class SubgraphData(L.LightningDataModule):
    """The sets of a run.

    Attributes:
        loaded: One entry a set, after `setup`.
    """

    def __init__(self, settings: TrainSettings):
        super().__init__()
        self.settings = settings
        self.loaded: list[LoadedSet] = []

    def prepare_data(self) -> None:
        """Build what is missing: indexes, then subgraphs; nothing where all are there.

        Raises:
            GfmError: A set is missing or broken, or its split is empty.
        """
        for wanted in self.settings.data.sets if not self.loaded else ():
            _load(wanted, self.settings.data, self.settings.candidates)

    def setup(self, stage: str | None = None) -> None:
        """Load all subgraphs; the loops of Lightning call it after `prepare_data`."""
        if self.loaded:
            return
        for number, wanted in enumerate(self.settings.data.sets):
            loaded = _load(wanted, self.settings.data, self.settings.candidates)
            for data in (*loaded.train, *loaded.validation):
                data.set_number = torch.tensor([number])
            self.loaded.append(loaded)
            log.info(
                "%s: %d questions to train, %d to validate", wanted.name, len(loaded.train), len(loaded.validation)
            )

    def train_dataloader(self) -> DataLoader[Any]:
        """Batches from the trainer's step to the next validation, so that each epoch of Lightning ends in one."""
        done = self.trainer.global_step if self.trainer else 0
        loop, data = self.settings.trainer, self.settings.data
        stop = min(done + loop.val_every - done % loop.val_every, loop.max_steps)
        chosen = batches(
            [len(s.train) for s in self.loaded],
            [s.weight for s in data.sets],
            seed=self.settings.seed,
            size=data.batch_size,
            start=done,
            stop=max(stop, done + 1),  # of a run that is already over Lightning wants to see one batch, and takes none
        )
        first = done * data.batch_size  # numbers the draws of the whole run, so that it can go on anywhere
        flat = [(first + i, question) for i, question in enumerate(q for batch in chosen for q in batch)]
        # Each process takes its share of every batch.
        order = [flat[i : i + data.batch_size][rank() :: world_size()] for i in range(0, len(flat), data.batch_size)]
        questions = _Varied([d for s in self.loaded for d in s.train], self.settings.augment, self.settings.seed)
        return DataLoader(questions, batch_sampler=order, collate_fn=Batch.from_data_list)

    def val_dataloader(self) -> DataLoader[Any]:
        """Every validation question once, set after set; of several processes, each takes its share.

        Raises:
            GfmError: There are fewer than processes.
        """
        questions = [d for s in self.loaded for d in s.validation]
        if len(questions) < world_size():
            raise GfmError(
                f"trainer.devices={world_size()}: expected as many validation questions, found {len(questions)}; raise "
                "data.val_share"
            )
        questions = questions[rank() :: world_size()]
        return DataLoader(questions, batch_size=self.settings.data.batch_size, collate_fn=Batch.from_data_list)  # type: ignore[arg-type]


class _Varied(Dataset[Data]):
    """Training subgraphs by (number of the draw, number of the question), varied by a seed of each draw."""

    def __init__(self, questions: Sequence[Data], settings: AugmentSettings, seed: int):
        self._questions, self._settings, self._seed = questions, settings, seed

    def __getitem__(self, key: tuple[int, int]) -> Data:
        draw, question = key
        return vary(self._questions[question], self._settings, np.random.default_rng([self._seed, draw]))


def split_questions(
    questions: Sequence[Query], wanted: SetSettings, val_share: float, seed: int
) -> tuple[list[Query], list[Query]]:
    """Training and validation questions: a seeded permutation of the sorted ids, cut at the limit, then at the share.

    Returns:
        Both sorted by id.

    Raises:
        GfmError: One of the two is empty.
    """
    ordered = sorted(questions, key=lambda q: q.id)
    chosen = np.random.default_rng(seed).permutation(len(ordered))[: wanted.limit]
    num_val = round(val_share * len(chosen))
    if not 0 < num_val < len(chosen):
        raise GfmError(
            f"set {wanted.name!r}: {len(chosen)} questions with gold and data.val_share={val_share} make "
            f"{len(chosen) - num_val} for training and {num_val} for validation, expected at least one of each; change "
            "data.val_share, raise or drop the set's limit, or leave the set out of data.sets"
        )
    validation = [ordered[i] for i in sorted(chosen[:num_val])]
    return [ordered[i] for i in sorted(chosen[num_val:])], validation


def batches(
    sizes: Sequence[int], weights: Sequence[float], *, seed: int, size: int, start: int, stop: int
) -> list[list[int]]:
    """Question numbers of steps ``start`` to ``stop``: a pure function of its arguments, so a run can go on anywhere.

    One pass after another makes the stream; a batch may hold the end of one and the beginning of the next.

    Args:
        sizes: Questions of each set; they are numbered set after set.
        weights: How often a set's questions stand in a pass: 2.5 is twice all, and a random half.
        seed: Of the order.
        size: Questions in a batch.
        start: First step, from 0.
        stop: One after the last step.
    """
    first = _pass(sizes, weights, seed, 0)
    number, skip = divmod(start * size, len(first))
    stream: list[int] = _pass(sizes, weights, seed, number)[skip:]
    needed = (stop - start) * size
    while len(stream) < needed:
        number += 1
        stream += _pass(sizes, weights, seed, number)
    return [stream[i : i + size] for i in range(0, needed, size)]


def _pass(sizes: Sequence[int], weights: Sequence[float], seed: int, number: int) -> list[int]:
    random = np.random.default_rng([seed, number])
    drawn, offset = [], 0
    for size, weight in zip(sizes, weights, strict=True):
        whole, part = divmod(weight, 1)
        drawn += [offset + np.arange(size)] * int(whole)
        if part:
            drawn.append(offset + random.permutation(size)[: max(1, round(part * size))])
        offset += size
    return [int(i) for i in random.permutation(np.concatenate(drawn))]


def _load(wanted: SetSettings, settings: DataSettings, candidates: CandidateSettings) -> LoadedSet:
    dataset = _read(wanted, wanted.path) if wanted.path else None
    candidates = replace(candidates, **wanted.candidates) if wanted.candidates else candidates
    split = partial(split_questions, wanted=wanted, val_share=settings.val_share, seed=settings.split_seed)
    if dataset:
        split(dataset.judged())  # an empty split is found before the index is built
    index = _index(wanted, dataset, settings)
    made = make_questions(index, wanted.made, settings.split_seed) if wanted.made else ([], {})
    asked, gold = (dataset.judged(), dataset.qrels) if dataset else made
    if wanted.answers:
        asked = [query for query in read_answer_questions(wanted.answers) if not held_out(query)]
        gold = {query.id: {} for query in asked}
    train, validation = split(asked)
    pools = [(train, gold)]
    if dataset and wanted.one_hop:
        pools.append(_one_hop(wanted, train, dataset, settings.split_seed))
    if dataset and wanted.made:
        pools.append(made)
    folder = Path(settings.work_dir) / "subgraphs"
    return LoadedSet(
        wanted.name,
        [
            d
            for queries, qrels in pools
            for d in cached_subgraphs(folder, index, queries, qrels, candidates, wanted.name)
        ],
        cached_subgraphs(folder, index, validation, gold, candidates, wanted.name),
        index.fingerprint.name,
        index.generation,
    )


def _one_hop(
    wanted: SetSettings, train: Sequence[Query], dataset: QuestionSet, seed: int
) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """Some of the steps of the training questions, see `gfm.train.derive`."""
    asked, gold = one_hop_questions(train, dataset.qrels, read_documents(dataset.corpus).documents)
    if not asked:
        raise GfmError(
            f"set {wanted.name!r}: expected questions with metadata.decomposition or metadata.evidences to derive "
            "one-hop questions from, found none; leave one_hop out"
        )
    chosen = np.random.default_rng(seed).permutation(len(asked))[: wanted.one_hop]
    return [asked[i] for i in sorted(chosen)], gold


def _read(wanted: SetSettings, path: str) -> QuestionSet:
    folder = Path(path)
    if not folder.is_dir():
        raise GfmError(
            f"set {wanted.name!r}: expected a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv at {folder}, "
            f"found none; say where the sets are with data.root=FOLDER, or where this one is with "
            f"data.sets=[{{name:{wanted.name},path:FOLDER}}]"
        )
    splits = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    if wanted.split is None and len(splits) > 1:
        raise GfmError(
            f"set {wanted.name!r}: {folder / 'qrels'} holds several splits: {', '.join(splits)}; choose one with "
            f"data.sets=[{{name:{wanted.name},split:{splits[0]}}}]"
        )
    return load_dataset(folder, wanted.split)


def _index(wanted: SetSettings, dataset: QuestionSet | None, settings: DataSettings) -> GraphIndex:
    """The set's index, built where it is missing, or where ours was made of another corpus or by other settings."""
    if dataset is None:
        return GraphIndex.open(wanted.index or "")
    work = Path(settings.work_dir)
    path = Path(wanted.index) if wanted.index else work / "index" / wanted.name
    stamp = path.with_name(f"{path.name}.source.json")
    triples = Path(wanted.triples) if wanted.triples else None
    encoder, extractor = wanted.encoder or settings.encoder, wanted.extractor or settings.extractor
    source = {
        "gfm": __version__,
        "corpus": file_hash(dataset.corpus),
        "triples": file_hash(triples) if triples and triples.is_file() else None,
        "encoder": encoder,
        "extractor": extractor,
    }
    text = json.dumps(source, indent=1, sort_keys=True) + "\n"
    is_current = wanted.index is not None or (stamp.is_file() and stamp.read_text(encoding="utf-8") == text)
    if (path / CURRENT).is_file() and is_current:
        return GraphIndex.open(path)
    log.info("%s: building the index %s", wanted.name, path)
    work.mkdir(parents=True, exist_ok=True)
    if wanted.index is None:  # a build that breaks off must not leave the old stamp
        stamp.unlink(missing_ok=True)
    index = GraphIndex.build(
        dataset.corpus,
        path,
        encoder=encoder,
        extractor=extractor,
        triples=triples,
        cache=work / "cache.sqlite",
    )
    if wanted.index is None:
        stamp.write_text(text, encoding="utf-8", newline="\n")
    return index
