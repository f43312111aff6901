from __future__ import annotations

from pathlib import Path

import pytest

from gfm.llm.settings import HOSTED, LLMSettings, read_settings
from gfm.types import GfmError


def write(folder: Path, text: str) -> Path:
    path = folder / "llm.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_environment_is_enough() -> None:
    found = read_settings(None, {"OPENAI_MODEL": "m", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1"})
    assert (found.model, found.base_url, found.api_key.get_secret_value()) == ("m", "http://h/v1", "k")
    assert read_settings(None, {"OPENAI_MODEL": "m"}).base_url == HOSTED


def test_a_file_goes_before_the_environment_and_an_argument_before_both(tmp_path: Path) -> None:
    path = write(tmp_path, "model: f\nseed: null\nextraction:\n  entity_types: [person, place]\n")
    found = read_settings(path, {"OPENAI_MODEL": "e", "OPENAI_BASE_URL": "http://h/v1"})
    assert (found.model, found.base_url, found.seed) == ("f", "http://h/v1", None)
    assert found.extraction.entity_types == ("person", "place")
    assert read_settings(path, {}, model="a", base_url=None).model == "a"


def test_a_key_may_come_from_any_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    found = read_settings(write(tmp_path, "model: m\napi_key: ${oc.env:MY_KEY}\n"), {})
    assert found.api_key.get_secret_value() == "sk-1"
    assert "sk-1" not in repr(found) + str(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a model, found none"),
        ("seed: 1", "expected the name of a model, found none"),
        ("[1]", "names and values, found a list"),
        ("model: [", "expected a YAML file"),
        ("model: m\nmodle: x", "modle: Extra inputs"),
        ("model: m\nconcurrency: 0", "concurrency: Input should be greater than or equal to 1"),
        ("model: m\nbudget_usd: 1", "budget_usd needs price_input and price_output"),
        ("model: m\nbase_url: localhost:11434", "expected an address that begins with http"),
        ("model: m\nbase_url: http://host:port/v1", "expected an address such as"),
        ("model: m\nextraction: {types: [a]}", r"extraction\.types: Extra inputs"),
        ("model: m\napi_key: [sk-secret]", "api_key: "),
    ],
)
def test_what_is_wrong_is_named_and_no_value_shown(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(GfmError, match=message) as error:
        read_settings(path, {})
    assert str(error.value).startswith(str(path))
    assert "sk-secret" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match=r"none\.yaml: expected a YAML file"):
        read_settings(tmp_path / "none.yaml", {})


def test_what_draws_a_reply_holds_neither_server_nor_key() -> None:
    one = LLMSettings(model="m", base_url="http://a/v1", api_key="k1", timeout=1.0, concurrency=2, price_input=1.0)
    assert one.drawn_by() == LLMSettings(model="m").drawn_by()
    for changed in ({"model": "n"}, {"seed": 1}, {"temperature": 1.0}, {"reply_tokens": 1}, {"extra": {"a": 1}}):
        assert LLMSettings(**{"model": "m", **changed}).drawn_by() != one.drawn_by()


def test_an_address_is_shown_without_its_password() -> None:
    assert LLMSettings(model="m", base_url="https://me:secret@host:8/v1?key=1").server == "https://host:8/v1"


def test_prices() -> None:
    assert LLMSettings(model="m", price_input=2.0, price_output=10.0).usd(1_000_000, 100_000) == 3.0
    assert LLMSettings(model="m", price_input=2.0).usd(1, 1) is None
