from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch

from gfm.eval.answers import held_out
from gfm.train import data as data_module
from gfm.train import module as module_module
from gfm.train.data import SubgraphData, batches, split_questions
from gfm.train.module import Row
from gfm.train.run import new_module
from gfm.train.settings import DataSettings, SetSettings, TrainerSettings, TrainSettings
from gfm.types import GfmError, Query
from tests.train.conftest import MILLS, TOWNS

PLACES = list(enumerate(zip(MILLS, TOWNS, strict=True)))
Settings = Callable[..., TrainSettings]


def questions(count: int) -> list[Query]:
    return [Query(f"q{i:03}", "Where?") for i in reversed(range(count))]


# --- the split


def test_the_split_depends_on_the_ids_and_the_seed_alone() -> None:
    wanted = SetSettings("mills", "mills")
    train, validation = split_questions(questions(20), wanted, 0.15, 0)
    assert (len(train), len(validation)) == (17, 3)
    assert [q.id for q in [*train, *validation]] == [*sorted(q.id for q in train), *sorted(q.id for q in validation)]
    assert not {q.id for q in train} & {q.id for q in validation}
    assert split_questions(questions(20)[::-1], wanted, 0.15, 0) == (train, validation)
    assert split_questions(questions(20), wanted, 0.15, 1) != (train, validation)


def test_a_limit_counts_training_and_validation_together() -> None:
    train, validation = split_questions(questions(20), SetSettings("mills", "mills", limit=10), 0.2, 0)
    assert (len(train), len(validation)) == (8, 2)


@pytest.mark.parametrize(("count", "share"), [(3, 0.15), (3, 0.9), (0, 0.15)])
def test_an_empty_split_is_an_error_with_a_mend(count: int, share: float) -> None:
    with pytest.raises(GfmError, match=rf"set 'mills': {count} questions with gold.*change data\.val_share"):
        split_questions(questions(count), SetSettings("mills", "mills"), share, 0)


# --- the order


def test_one_pass_holds_every_question_once() -> None:
    order = batches([5, 3], [1.0, 1.0], seed=7, size=4, start=0, stop=2)
    assert [len(b) for b in order] == [4, 4]
    assert sorted(chain(*order)) == list(range(8))


def test_weights_say_how_often_a_question_stands_in_a_pass() -> None:
    drawn = Counter(chain(*batches([4, 4, 4], [2.0, 0.5, 1.0], seed=0, size=2, start=0, stop=7)))
    assert [drawn[i] for i in range(4)] == [2] * 4
    assert sum(drawn[i] for i in range(4, 8)) == 2
    assert [drawn[i] for i in range(8, 12)] == [1] * 4


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(0, 40),
    st.integers(0, 2**31 - 1),
)
def test_a_stream_can_be_gone_on_from_anywhere(sizes: list[int], size: int, start: int, seed: int) -> None:
    weights = [1.0] * len(sizes)
    whole = batches(sizes, weights, seed=seed, size=size, start=0, stop=start + 5)
    assert batches(sizes, weights, seed=seed, size=size, start=start, stop=start + 5) == whole[start:]
    assert all(len(b) == size and all(0 <= i < sum(sizes) for i in b) for b in whole)


def test_the_seed_changes_the_order() -> None:
    first, second = (batches([20], [1.0], seed=seed, size=4, start=0, stop=5) for seed in (0, 1))
    assert first != second


# --- loading


def test_the_loaders_give_batches_up_to_the_next_validation(make_settings: Settings) -> None:
    data = SubgraphData(make_settings(trainer=TrainerSettings(max_steps=5, val_every=3)))
    data.prepare_data()
    data.setup()
    (loaded,) = data.loaded
    assert (loaded.name, len(loaded.train), len(loaded.validation)) == ("mills", 9, 3)
    assert loaded.encoder == "hashing:64"
    assert [b.num_graphs for b in data.train_dataloader()] == [4, 4, 4]
    (validation,) = data.val_dataloader()
    assert validation.num_graphs == 3
    assert validation.set_number.tolist() == [0, 0, 0]
    assert validation.num_gold.tolist() == [2, 2, 2]


def test_several_sets_with_nested_names(make_settings: Settings, mills: Path, tmp_path: Path) -> None:
    one = SetSettings("worlds/one", str(mills), triples=str(mills / "triples.jsonl"))
    sets = (one, replace(one, name="worlds/two", limit=8))
    settings = make_settings()
    data = SubgraphData(replace(settings, data=replace(settings.data, sets=sets, work_dir=str(tmp_path))))
    data.setup()
    assert [len(s.train) for s in data.loaded] == [9, 6]
    assert [d.set_number.item() for d in data.loaded[1].train] == [1] * 6
    assert (tmp_path / "index" / "worlds" / "two" / "CURRENT").is_file()
    assert (tmp_path / "cache.sqlite").is_file()
    assert len(list((tmp_path / "subgraphs").iterdir())) == 4  # to train on and to validate, of each


def test_an_index_is_built_once_and_again_when_the_corpus_changes(
    make_settings: Settings, make_set: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_set(tmp_path / "set")
    settings = make_settings()
    own = replace(settings.data, sets=(SetSettings("own", str(folder)),), work_dir=str(tmp_path / "work"))
    built = []
    build = data_module.GraphIndex.build
    monkeypatch.setattr(data_module.GraphIndex, "build", lambda *a, **k: (built.append(a), build(*a, **k))[1])

    def generation() -> str:
        data = SubgraphData(replace(settings, data=own))
        data.prepare_data()
        data.setup()
        return data.loaded[0].generation

    first = generation()
    assert (len(built), generation()) == (1, first)
    extra = json.dumps({"_id": "z", "title": "Quince", "text": "Quince jam keeps for a year."}) + "\n"
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(extra)
    assert generation() != first
    assert len(built) == 2


def test_an_index_that_is_named_is_opened_as_it_is(make_settings: Settings, tmp_path: Path) -> None:
    settings = make_settings()
    usual = SubgraphData(settings)
    usual.setup()
    named = replace(settings.data.sets[0], name="other", index=f"{settings.data.work_dir}/index/mills")
    data = SubgraphData(replace(settings, data=replace(settings.data, sets=(named,), encoder="hashing:8")))
    data.setup()
    assert data.loaded[0].generation == usual.loaded[0].generation
    assert data.loaded[0].encoder == "hashing:64"


def test_a_set_may_have_an_encoder_and_an_extractor_of_its_own(
    make_settings: Settings, mills: Path, tmp_path: Path
) -> None:
    settings = make_settings()
    plain = SetSettings("plain", str(mills), triples=str(mills / "triples.jsonl"))
    other = SetSettings("other", str(mills), encoder="hashing:32", extractor="none")
    data = SubgraphData(replace(settings, data=replace(settings.data, sets=(plain, other), work_dir=str(tmp_path))))
    data.setup()
    assert [s.encoder for s in data.loaded] == ["hashing:64", "hashing:32"]
    stated = [bool((d.edge_triple >= 0).any()) for s in data.loaded for d in s.train[:1]]
    assert stated == [True, False]  # without an extractor there are titles, and no facts


def only(settings: TrainSettings, wanted: SetSettings) -> SubgraphData:
    return SubgraphData(replace(settings, data=replace(settings.data, sets=(wanted,))))


def test_a_missing_folder_names_the_override(make_settings: Settings, tmp_path: Path) -> None:
    data = only(make_settings(), SetSettings("2wiki", str(tmp_path / "nowhere")))
    with pytest.raises(GfmError, match=r"set '2wiki': expected a folder with corpus.jsonl.*data\.root=FOLDER"):
        data.prepare_data()


def test_several_splits_name_the_override(
    make_settings: Settings, make_set: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_set(tmp_path / "set")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq00\tm00\t1\n", encoding="utf-8")
    with pytest.raises(
        GfmError, match=r"several splits: dev, test; choose one with data.sets=\[{name:own,split:dev}\]"
    ):
        only(make_settings(), SetSettings("own", str(folder))).prepare_data()


def test_an_empty_validation_split_is_found_before_the_index_is_built(
    make_settings: Settings, make_set: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_set(tmp_path / "set", 1)
    with pytest.raises(GfmError, match="1 questions with gold"):
        only(make_settings(), SetSettings("single", str(folder))).prepare_data()
    assert not (Path(make_settings().data.work_dir) / "index" / "single").exists()


@pytest.mark.parametrize("name", ["", "../up", "a//b", "/root", "a\\b", "."])
def test_names_that_leave_the_work_folder_are_refused(name: str) -> None:
    with pytest.raises(GfmError, match=r"data\.sets: expected a name"):
        SetSettings(name, "folder")


@pytest.mark.parametrize("names", [("a", "a"), ("a/b", "a"), ("a", "a/b/c")])
def test_sets_inside_each_other_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(GfmError, match="none is the start of another"):
        DataSettings(tuple(SetSettings(name, "folder") for name in names))


# --- answers


def test_questions_for_entities_are_learnt_from_a_graph_alone(make_settings: Settings, tmp_path: Path) -> None:
    """Half of the questions stay out of training; gold are entities, and of passages and facts nothing is known."""
    settings = make_settings()
    usual = SubgraphData(settings)
    usual.setup()
    text = "Where was the builder of {} Mill born?"
    rows = [{"_id": f"a{i}", "text": text.format(mill), "answers": [f"Port {town}"]} for i, (mill, town) in PLACES]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    index = f"{settings.data.work_dir}/index/mills"
    wanted = SetSettings("places", index=index, answers=str(file), candidates={"named": 1, "max_start": 1})
    data = only(settings, wanted)
    data.setup()
    asked = [*data.loaded[0].train, *data.loaded[0].validation]
    assert len(asked) == sum(not held_out(Query(row["_id"], "")) for row in rows)
    for graph in asked:
        assert (graph.y[graph.node_kind == 1] == -1).all()
        assert (graph.edge_y == -1).all()
        assert int((graph.y == 1).sum()) == int(graph.num_gold) == 1
        assert int((graph.node_kind == 0).sum()) < 9  # the named mill, its builder, the town, and near names


def test_such_a_set_is_trained_and_validated_by_its_entities(
    make_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything but the entity Port Isk unknown, whatever is ranked for it is an entity."""
    settings = make_settings()
    seen = []

    def figures(scores: Tensor, y: Tensor, item: Tensor, num_gold: int) -> Row:
        seen.append((len(scores), int((y == 1).sum()), len(item.unique()), num_gold))
        return Row(1.0, 1.0, 1.0)

    monkeypatch.setattr(module_module, "document_figures", figures)
    data = SubgraphData(settings)
    data.setup()
    (graph, *_) = data.loaded[0].validation
    graph.y[graph.node_kind == 1] = -1
    module = new_module(settings)
    module.validation_step(Batch.from_data_list([graph]), 0)
    entities = int((graph.node_kind == 0).sum())
    assert seen == [(entities, int((graph.y == 1).sum()), entities, int(graph.num_gold))]


@pytest.mark.parametrize("more", [{"path": "folder"}, {"index": None}, {"made": 3}, {"one_hop": 3}])
def test_questions_for_entities_need_an_index_and_nothing_else(more: dict[str, Any]) -> None:
    with pytest.raises(GfmError, match=r"set 'films': answers: expected an index beside it, and no path, one_hop"):
        SetSettings(**{"name": "films", "index": "index", "answers": "file", **more})
