from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gfm.index import recipe as recipe_module
from gfm.index.recipe import BuildSettings, Recipe, check_encoder
from gfm.text.encoder import HashingEncoder
from gfm.types import GfmError, Passage
from tests.index.fakes import Capitals, given_table

TABLE = given_table({"p1": [("A", "r", "B")]})
SETTINGS = BuildSettings(chunk_tokens=99)
PASSAGE = Passage("p1", "p1", "", "A met B.", 0, 8)


def manifest(*extractors: Any) -> dict[str, Any]:
    return Recipe(HashingEncoder(16), extractors, SETTINGS).as_json()


def test_the_manifest_makes_it_again() -> None:
    again = Recipe.of_index(Path("i"), manifest(TABLE), TABLE.rows)
    assert again.settings == SETTINGS
    assert again.encoder.fingerprint == HashingEncoder(16).fingerprint
    assert again.as_json() == manifest(TABLE)
    assert again.extractors[0].extract([PASSAGE])[0].triples == (("A", "r", "B"),)


def test_models_are_loaded_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(recipe_module, "load_encoder", lambda name: loaded.append(name) or HashingEncoder(16))
    monkeypatch.setattr(recipe_module, "restore_extractor", lambda name, rows: loaded.append(name) or Capitals())
    again = Recipe.of_index(Path("i"), manifest(Capitals()), [])
    assert again.as_json() == manifest(Capitals())
    assert loaded == []
    for _ in range(2):
        assert again.encoder.encode(["a"]).shape == (1, 16)
        assert (again.encoder.count_tokens("a b"), again.encoder.max_tokens) == (2, 256)
        assert again.extractors[0].extract([PASSAGE])[0].sentences == ((0, 8),)
    assert loaded == ["hashing:16", "capitals"]


def test_what_loads_must_be_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Capitals()
    other.settings = "capitals-2"
    monkeypatch.setattr(recipe_module, "load_encoder", lambda name: HashingEncoder(8))
    monkeypatch.setattr(recipe_module, "restore_extractor", lambda name, rows: other)
    again = Recipe.of_index(Path("i"), manifest(Capitals()), [])
    with pytest.raises(GfmError, match="was built with encoder 'hashing:16'"):
        again.encoder.encode(["a"])
    with pytest.raises(GfmError, match="with the extractors capitals-1, found capitals-2"):
        again.extractors[0].extract([PASSAGE])


def test_what_is_handed_in_must_be_what_it_was() -> None:
    made = manifest(Capitals(), TABLE)
    kept = Recipe.of_index(Path("i"), made, [], HashingEncoder(16), [Capitals(), TABLE])
    assert isinstance(kept.encoder, HashingEncoder)
    for extractors in ([TABLE, Capitals()], [Capitals()], [Capitals(), given_table({})]):
        with pytest.raises(GfmError, match="with the extractors capitals-1, given-3:"):
            Recipe.of_index(Path("i"), made, [], None, extractors)
    with pytest.raises(GfmError, match="the query encoder is 'hashing:8'"):
        check_encoder(Path("i"), HashingEncoder(16).fingerprint, HashingEncoder(8))
