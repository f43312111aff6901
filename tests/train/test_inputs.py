"""Networks that are not to see some of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from gfm.nn.checkpoint import load_model
from gfm.nn.model import GraphRetrieverModel, ModelSettings
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS
from gfm.train.inputs import GROUPS, blind, group_of, parse_groups
from gfm.train.run import train
from gfm.train.settings import TrainSettings
from gfm.types import GfmError


def test_every_input_is_in_one_group_and_no_group_is_empty() -> None:
    assert {group_of(name) for name in (*NODE_INPUTS, *EDGE_INPUTS)} == set(GROUPS)
    with pytest.raises(GfmError, match=r"'new': expected one group .* found none"):
        group_of("new")


def test_groups_of_a_setting() -> None:
    assert parse_groups(None) == parse_groups("") == ()
    assert parse_groups("words+facts") == ("words", "facts")
    with pytest.raises(GfmError, match=r"leave_out: expected question, .* found 'words\+bm25'"):
        parse_groups("words+bm25")


def test_a_blind_network_has_no_weights_for_what_it_does_not_see_and_gets_none() -> None:
    model = GraphRetrieverModel(ModelSettings(("cosine", "bm25"), ("fact_cosine", "weight"), width=4, edge_width=3))
    blind(model, ("words", "degree"))
    first, edge = model.node_net[0].weight, model.edge_net.weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (model.node_net(torch.ones(5, 2)).sum() + model.edge_net(torch.ones(5, 2)).sum()).backward()
        optimizer.step()
    assert bool((first[:, 1] == 0).all())
    assert bool((edge[:, 1] == 0).all())
    assert bool((first[:, 0] != 0).all())
    assert bool((edge[:, 0] != 0).all())


def test_a_trained_blind_network_gives_the_same_whatever_stands_there(
    make_settings: Callable[..., TrainSettings],
) -> None:
    settings = make_settings()
    result = train(replace(settings, leave_out="words", optimizer=replace(settings.optimizer, input_dropout=0.0)))
    model, config = load_model(result.checkpoint)
    unseen = [i for i, name in enumerate(NODE_INPUTS) if group_of(name) == "words"]
    assert config["training"]["leave_out"] == "words"
    assert bool((model.node_net[0].weight[:, unseen] == 0).all())
    assert bool((model.node_net[0].weight != 0).any())
