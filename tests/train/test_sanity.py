from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gfm.train import sanity as sanity_module
from gfm.train.sanity import sanity, shuffled
from gfm.train.settings import SetSettings, TrainSettings
from gfm.types import GfmError


def test_labels_are_shuffled_among_passages_only() -> None:
    kind = torch.tensor([0] * 10 + [1] * 30)
    data = Data(node_kind=kind, y=torch.tensor([1] * 5 + [0] * 5 + [1] * 3 + [0] * 27), num_nodes=40)
    out = shuffled(data, 0)
    assert torch.equal(out.y[:10], data.y[:10])
    assert int(out.y[10:].sum()) == 3
    assert not torch.equal(out.y, data.y)
    assert data.y[10:13].tolist() == [1, 1, 1]
    assert torch.equal(shuffled(data, 0).y, out.y)
    assert not torch.equal(shuffled(data, 1).y, out.y)


def test_eight_questions_are_learnt_and_shuffled_labels_are_not(make_settings: Callable[..., TrainSettings]) -> None:
    result = sanity(make_settings())
    assert result.mrr >= 0.95
    assert result.shuffled_mrr < result.mrr - 0.2
    assert result.seconds < 60
    assert "8 questions reach MRR" in result.text()


@pytest.mark.parametrize(
    ("figures", "message"),
    [([0.9, 0.1], "Eight questions are not learnt"), ([1.0, 0.85], "Shuffled labels are learnt as well")],
)
def test_either_failure_is_an_error_with_both_figures(
    make_settings: Callable[..., TrainSettings], monkeypatch: pytest.MonkeyPatch, figures: list[float], message: str
) -> None:
    rest = iter(figures)
    monkeypatch.setattr(sanity_module, "_overfit", lambda *_: next(rest))
    with pytest.raises(GfmError, match=rf"MRR {figures[0]:.3f}.*shuffled labels {figures[1]:.3f}.*{message}"):
        sanity(make_settings())


def test_broken_labels_fail(make_settings: Callable[..., TrainSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    """A label bug: what is trained on are not the labels that are measured."""
    monkeypatch.setattr(sanity_module, "STEPS", 20)
    load = sanity_module._learnable
    monkeypatch.setattr(sanity_module, "_learnable", lambda s: [shuffled(d, i) for i, d in enumerate(load(s))])
    with pytest.raises(GfmError, match="Eight questions are not learnt"):
        sanity(make_settings())


def test_too_few_questions(
    make_settings: Callable[..., TrainSettings], make_set: Callable[..., Path], tmp_path: Path
) -> None:
    settings = make_settings()
    few = SetSettings("few", str(make_set(tmp_path / "set", 6)))
    with pytest.raises(
        GfmError, match=r"set 'few': expected 8 questions .* found 6 of 6; try the demo set with data=demo"
    ):
        sanity(replace(settings, data=replace(settings.data, sets=(few,))))
