"""A small question set of mills, their builders and their towns of birth; every question needs two passages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gfm.train.settings import DataSettings, OptimizerSettings, SetSettings, TrainerSettings, TrainSettings

MILLS = ["Tarn", "Quell", "Morrow", "Brack", "Fenn", "Ostler", "Harrow", "Vale", "Crag", "Dunmore", "Lythe", "Sorrel"]
PEOPLE = ["Orla", "Bram", "Cass", "Dorn", "Edda", "Finn", "Greta", "Hale", "Ines", "Jorg", "Kaia", "Lorn"]
TOWNS = ["Isk", "Aldby", "Corrie", "Drumm", "Elvan", "Forth", "Gask", "Hythe", "Inver", "Jarl", "Kelda", "Leith"]


def write_set(folder: Path, count: int = 12) -> Path:
    """A set of ``count`` questions and twice as many passages in BEIR layout, with triples.jsonl beside it."""
    corpus, questions, qrels, triples = [], [], ["query-id\tcorpus-id\tscore"], []
    for i, (mill, person, town) in enumerate(zip(MILLS[:count], PEOPLE, TOWNS, strict=False)):
        corpus.append({"_id": f"m{i:02}", "title": f"{mill} Mill", "text": f"{mill} Mill was built by {person} Venn."})
        corpus.append({"_id": f"p{i:02}", "title": f"{person} Venn", "text": f"{person} Venn was born in Port {town}."})
        question = f"Where was the builder of {mill} Mill born?"
        questions.append({"_id": f"q{i:02}", "text": question, "metadata": {"answer": f"Port {town}"}})
        qrels += [f"q{i:02}\tm{i:02}\t1", f"q{i:02}\tp{i:02}\t1"]
        for head, relation, tail, passage in (
            (f"{mill} Mill", "built by", f"{person} Venn", f"m{i:02}"),
            (f"{person} Venn", "born in", f"Port {town}", f"p{i:02}"),
        ):
            triples.append({"head": head, "relation": relation, "tail": tail, "passage_id": passage})
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", questions), ("triples", triples)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def mills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set, for reading only."""
    return write_set(tmp_path_factory.mktemp("sets") / "mills")


@pytest.fixture(scope="session")
def work_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder that all tests share: the index is built once."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def make_settings(mills: Path, work_dir: Path, tmp_path: Path) -> Callable[..., TrainSettings]:
    """Settings of a run of a few steps on the set; arguments replace some of them."""

    def make(**changes: object) -> TrainSettings:
        mill_set = SetSettings("mills", str(mills), triples=str(mills / "triples.jsonl"))
        data = DataSettings((mill_set,), str(work_dir), "hashing:64", "none", val_share=0.25, batch_size=4)
        rest: dict[str, object] = {
            "data": data,
            "output": str(tmp_path / "run"),
            "optimizer": OptimizerSettings(ema=0.5),
            "trainer": TrainerSettings(max_steps=6, val_every=2, log_every=1),
        }
        return TrainSettings(**{**rest, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def make_set() -> Callable[..., Path]:
    """`write_set`."""
    return write_set
