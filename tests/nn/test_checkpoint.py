from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from gfm.index.index import GraphIndex
from gfm.nn.checkpoint import CONFIG, SHIPPED, WEIGHTS, load_model, save_model
from gfm.nn.model import GraphRetrieverModel, ModelSettings
from gfm.retrieve.features import EDGE_INPUTS, NODE_INPUTS
from gfm.retrieve.gnn import GNNRetriever
from gfm.types import GfmError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of random weights."""
    path = tmp_path / "проба é"
    save_model(GraphRetrieverModel(ModelSettings(("a", "b"), ("c",), width=8)), path, candidates={"seeds": 3}, note="é")
    return path


def test_what_is_written_is_json_and_safetensors(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == [CONFIG, WEIGHTS]
    text = (folder / CONFIG).read_text(encoding="utf-8")
    assert json.loads(text)["model"]["node_inputs"] == ["a", "b"]
    assert "é" in text
    assert text.endswith("}\n")
    model, config = load_model(folder)
    assert (config["candidates"], config["note"]) == ({"seeds": 3}, "é")
    assert model.state_dict().keys() == load_file(folder / WEIGHTS).keys()


def test_the_same_model_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    model, _ = load_model(folder)
    save_model(model, tmp_path / "again", candidates={"seeds": 3}, note="é")
    for name in (CONFIG, WEIGHTS):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_a_missing_file_is_named_with_the_mend(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(GfmError, match=rf"проба é: .*found no {name}; train one with train\.py"):
        load_model(folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"nowhere: .*found no config\.json"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_weights_cut_off(folder: Path, keep: int) -> None:
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[:keep])
    with pytest.raises(GfmError, match=r"проба é: .*train one with train\.py"):
        load_model(folder)


def lying_header(length: int, header: bytes) -> bytes:
    return length.to_bytes(8, "little") + header


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04" + b"\x00" * 64,  # a zip, as torch.save writes
        lying_header(1 << 60, b"{}"),
        lying_header(2, b"{}"),  # no tensor at all
        lying_header(64, b'{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4]}}'),
    ],
)
def test_weights_that_lie(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(GfmError, match="expected a checkpoint that this version reads"):
        load_model(folder)


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def dumped(value: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(value))


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
@pytest.mark.parametrize("write", [dumped, torch.save], ids=["pickle", "torch.save"])
def test_a_pickle_is_refused_and_never_run(
    folder: Path, tmp_path: Path, name: str, write: Callable[[object, Path], None]
) -> None:
    """D11."""
    marker = tmp_path / "marker"
    write(Harmful(marker), folder / name)
    with pytest.raises(GfmError, match="expected a checkpoint that this version reads"):
        load_model(folder)
    assert not marker.exists()


def test_an_unknown_setting_is_named(folder: Path) -> None:
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    config["model"]["heads"] = 4
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(GfmError, match=r"config\.json: unknown model settings \['heads'\].*another version of gfm"):
        load_model(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"model": []}',
        '{"model": 3}',
        '{"model": [["width"]]}',
        '{"model": {"node_inputs": ["a"]}}',
        '{"model": {"node_inputs": 3, "edge_inputs": 4}}',
        '{"model": {"node_inputs": ["a", "b"], "edge_inputs": ["c"], "width": "8"}}',
        '{"model": {"node_inputs": ["a", "b"], "edge_inputs": ["c"], "width": 16}}',
        '{"model": {"node_inputs": ["a", "b"], "edge_inputs": ["c"], "width": -8}}',
    ],
)
def test_settings_that_make_no_network(folder: Path, text: str) -> None:
    (folder / CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(GfmError, match="проба é: expected a checkpoint that this version reads"):
        load_model(folder)


def test_settings_that_are_no_utf8(folder: Path) -> None:
    (folder / CONFIG).write_bytes(b'{"model": "\xe9"}')
    with pytest.raises(GfmError, match="expected a checkpoint that this version reads"):
        load_model(folder)


@pytest.mark.parametrize("change", ["less", "more", "shape"])
def test_weights_of_another_design(folder: Path, change: str) -> None:
    weights = load_file(folder / WEIGHTS)
    name = sorted(weights)[0]
    if change == "less":
        del weights[name]
    else:
        weights["more" if change == "more" else name] = torch.zeros(3, 3, 3)
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(GfmError, match="expected a checkpoint that this version reads"):
        load_model(folder)


@pytest.mark.parametrize(
    ("node_inputs", "edge_inputs"),
    [(NODE_INPUTS[:-1], EDGE_INPUTS), (NODE_INPUTS[::-1], EDGE_INPUTS), (NODE_INPUTS, (*EDGE_INPUTS, "colour"))],
)
def test_a_network_of_other_inputs_is_refused(
    z_index: Path, tmp_path: Path, node_inputs: tuple[str, ...], edge_inputs: tuple[str, ...]
) -> None:
    save_model(GraphRetrieverModel(ModelSettings(node_inputs, edge_inputs, width=8)), tmp_path)
    with pytest.raises(GfmError, match=r"the checkpoint reads the inputs .* this version computes .*train\.py"):
        GNNRetriever.from_pretrained(GraphIndex.open(z_index), tmp_path)


def test_the_shipped_checkpoint_is_small_and_fits_this_version(z_index: Path) -> None:
    assert sum(p.stat().st_size for p in SHIPPED.iterdir()) < 2_000_000
    model, _ = load_model()
    assert all(p.isfinite().all() for p in model.parameters())
    result = GNNRetriever.from_pretrained(GraphIndex.open(z_index)).retrieve("Where was Orla Venn born?", 3)
    assert len(result.passages) == 3
    assert result.trace["fallback"] is None
