from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from gfm.nn.model import ModelSettings
from gfm.train.settings import DataSettings, OptimizerSettings, SetSettings, TrainerSettings, from_config
from gfm.types import GfmError


def config(repository: Path, *overrides: str) -> dict[str, Any]:
    from omegaconf import OmegaConf

    with initialize_config_dir(str(repository / "configs"), version_base="1.3"):
        composed = OmegaConf.to_container(compose("train", overrides=list(overrides)), resolve=True)
    assert isinstance(composed, dict)
    return composed  # type: ignore[return-value]


def choices(folder: Path) -> list[str]:
    root = folder / "configs"
    return [
        f"{group}={path.stem}"
        for group in ("data", "model", "trainer", "experiment")
        for path in sorted((root / group).glob("*.yaml"))
    ] + [f"experiment=ablation/{path.stem}" for path in sorted((root / "experiment" / "ablation").glob("*.yaml"))]


def test_every_configuration_composes(repository: Path) -> None:
    names = choices(repository)
    assert {"data=demo", "data=multihop", "model=base", "trainer=base", "experiment=base"} <= set(names)
    assert {f"experiment=ablation/{name}" for name in ("rounds", "seeds", "hops", "inputs")} <= set(names)
    for name in names:
        more = ["data.index=notes"] if name in {"data=self", "experiment=adapt"} else []
        settings = from_config(config(repository, name, *more), "out")
        assert settings.output == "out"
        assert settings.model.node_inputs


def test_the_files_state_the_defaults_of_the_code(repository: Path) -> None:
    settings = from_config(config(repository), "out")
    assert settings.optimizer == OptimizerSettings()
    assert settings.trainer == TrainerSettings()
    inputs = (settings.model.node_inputs, settings.model.edge_inputs)
    assert asdict(settings.model) == asdict(ModelSettings(*inputs))
    assert settings.data == DataSettings(settings.data.sets)
    assert settings.data.sets[0].path == str(repository / "data" / "demo")


def test_sets_by_name_and_by_mapping(repository: Path) -> None:
    settings = from_config(
        config(repository, "data=multihop", "data.root=far", "data.sets=[2wiki,{name:worlds/one,path:near,weight:2}]"),
        "o",
    )
    assert [(s.name, Path(s.path), s.weight) for s in settings.data.sets] == [
        ("2wiki", Path("far/2wiki"), 1.0),
        ("worlds/one", Path("near"), 2.0),
    ]


def test_an_index_of_ones_own(repository: Path) -> None:
    found = from_config(config(repository, "experiment=adapt", "data.index=notes", "data.made=20"), "out")
    assert found.data.sets == (SetSettings("self", index="notes", made=20),)
    assert found.init_from == "shipped"
    with pytest.raises(GfmError, match=r"data=self: expected an index .* data.index=INDEX"):
        from_config(config(repository, "data=self"), "out")


def test_an_experiment_changes_only_what_it_names(repository: Path) -> None:
    plain, named = config(repository), config(repository, "experiment=base")
    assert named["trainer"]["max_steps"] == 1500
    assert named["optimizer"] == plain["optimizer"]
    assert named["data"]["sets"] == [
        {"name": "2wiki", "one_hop": 100},
        "hotpotqa",
        {"name": "musique", "one_hop": 200},
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.max_steps=many", r"trainer\.max_steps: expected a whole number, found 'many'"),
        ("trainer.max_steps=0", r"trainer\.max_steps: expected 1 or more, found 0"),
        ("trainer.max_steps=1.5", r"trainer\.max_steps: expected a whole number, found 1\.5"),
        ("trainer.threads=0", r"trainer\.threads: expected 1 or more, or null"),
        ("trainer.logger=paper", r"trainer\.logger: expected csv or tensorboard, found paper"),
        ("trainer.accelerator=tpu", r"trainer\.accelerator: expected cpu, gpu or auto"),
        ("+trainer.epochs=3", r"trainer\.epochs: no such setting; expected some of accelerator"),
        ("+candidates.seed=3", r"candidates\.seed: no such setting; expected some of .*seeds"),
        ("+candidates.seeds=0", r"candidates\.seeds: expected 1 or more"),
        ("model.width=wide", r"model\.width: expected a whole number"),
        ("optimizer.ema=1", r"optimizer\.ema: expected 0 or more, below 1"),
        ("optimizer.lr=0", r"optimizer\.lr: expected a number above 0"),
        ("data.val_share=1", r"data\.val_share: expected a share between 0 and 1"),
        ("data.sets=[]", r"data\.sets: expected at least one set"),
        ("data.sets=2wiki", r"data\.sets: expected a list"),
        ("data.sets=[2wiki]", r"set '2wiki': expected the folder that holds it.*data\.root=FOLDER"),
        ("data.sets=[{path:x}]", r"data\.sets: expected a name, or \{name:NAME"),
        ("data.sets=[{name:a,path:x,weight:0}]", r"set 'a': weight: expected a number above 0"),
        ("data.sets=[{name:a,path:x,limit:1}]", r"set 'a': limit: expected 2 or more"),
        ("data.sets=[{name:a,path:x,wight:2}]", r"set 'a'\.wight: no such setting"),
        ("seed=-1", r"seed: expected 0 or more"),
        ("seed=true", r"^seed: expected a whole number, found True"),
    ],
)
def test_a_wrong_setting_is_named(repository: Path, override: str, message: str) -> None:
    with pytest.raises(GfmError, match=message):
        from_config(config(repository, override), "out")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rounds", [0, 1, 2, 3, 4]),
        ("seeds", [8, 16, 32, 64, 128]),
        ("hops", [1, 2, 3]),
        ("inputs", ["question", "rest", "parts", "facts", "words", "pagerank", "hops", "degree", "kind"]),
    ],
)
def test_an_ablation_changes_one_thing_of_the_base(repository: Path, name: str, values: list[Any]) -> None:
    plain = config(repository, "experiment=base", "data.root=far")
    with initialize_config_dir(str(repository / "configs"), version_base="1.3"):
        composed = compose("train", overrides=[f"experiment=ablation/{name}"], return_hydra_config=True)
        ((key, text),) = composed.hydra.sweeper.params.items()
    assert text == ",".join(map(str, values))
    for value in (values[0], values[-1]):
        changed = config(repository, f"experiment=ablation/{name}", "data.root=far", f"{key}={value}")
        settings, base = from_config(changed, "o"), from_config(plain, "o")
        found = {
            "rounds": settings.model.rounds,
            "seeds": settings.candidates.seeds,
            "hops": settings.candidates.hops,
            "inputs": settings.leave_out,
        }
        assert found[name] == value
        assert (settings.data, settings.trainer, settings.optimizer) == (base.data, base.trainer, base.optimizer)


def test_every_group_of_inputs_is_left_out_once(repository: Path) -> None:
    from gfm.train.inputs import GROUPS

    with initialize_config_dir(str(repository / "configs"), version_base="1.3"):
        composed = compose("train", overrides=["experiment=ablation/inputs"], return_hydra_config=True)
    assert composed.hydra.sweeper.params.leave_out.split(",") == list(GROUPS)
