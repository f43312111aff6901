"""What is known of a language model's server: from a YAML file, and where it says nothing from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from yaml import YAMLError

from gfm.types import GfmError

# The names that the openai library and most servers' guides use.
_ENVIRONMENT = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY", "model": "OPENAI_MODEL"}
HOSTED = "https://api.openai.com/v1"


class ExtractionSettings(BaseModel):
    """What the extractor looks for.

    Attributes:
        entity_types: Only entities of these types; of any type where it is empty.
        relation_types: Only these relations; any where it is empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    entity_types: tuple[str, ...] = ()
    relation_types: tuple[str, ...] = ()


class LLMSettings(BaseModel):
    """A model behind a server that speaks OpenAI's chat protocol.

    Attributes:
        model: Its name at the server.
        base_url: The server; OpenAI's own unless given.
        api_key: Never shown; a server on your own machine mostly needs none.
        temperature: Of the draw; left out of the request where it is null.
        seed: Of the draw; left out where it is null.
        reply_tokens: Most tokens of a reply.
        reply_tokens_name: Under which name the server takes them.
        response_format: How the server is told to reply in JSON; ``text`` where it takes no such wish.
        extra: Further fields of the request's body, as they are.
        timeout: Seconds that the server may take to answer.
        concurrency: Most requests at a time.
        tries: Most requests for one reply, where the server fails or asks to wait.
        max_wait: The longest pause in seconds that is waited for when the server asks for one.
        requests_per_minute: Limit to keep; none unless given.
        tokens_per_minute: So, of tokens read and written.
        price_input: US dollars per million tokens read.
        price_output: US dollars per million tokens written.
        budget_usd: Most to spend in one run; needs the prices.
        budget_tokens: Most tokens to read and write in one run.
        extraction: What the extractor looks for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    base_url: str = HOSTED
    api_key: SecretStr = SecretStr("")
    temperature: float | None = Field(default=0.0, ge=0)
    seed: int | None = 0
    reply_tokens: int = Field(default=2048, ge=1)
    reply_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    response_format: Literal["json_object", "json_schema", "text"] = "json_object"
    extra: dict[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=120.0, gt=0)
    concurrency: int = Field(default=4, ge=1)
    tries: int = Field(default=6, ge=1)
    max_wait: float = Field(default=120.0, gt=0)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    price_input: float | None = Field(default=None, ge=0)
    price_output: float | None = Field(default=None, ge=0)
    budget_usd: float | None = Field(default=None, gt=0)
    budget_tokens: int | None = Field(default=None, gt=0)
    extraction: ExtractionSettings = ExtractionSettings()

    @model_validator(mode="after")
    def _budget_has_prices(self) -> LLMSettings:
        if self.budget_usd is not None and self.usd(1, 1) is None:
            raise ValueError("budget_usd needs price_input and price_output (US dollars per million tokens)")
        return self

    def usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Price of so many tokens in US dollars; None where the prices are not known."""
        if self.price_input is None or self.price_output is None:
            return None
        return (input_tokens * self.price_input + output_tokens * self.price_output) / 1e6

    @property
    def server(self) -> str:
        """The server's address for messages, without a password that may stand in it."""
        parts = urlsplit(self.base_url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"

    def drawn_by(self) -> dict[str, Any]:
        """What a reply depends on besides the messages: the model and how it draws, not where it runs or who pays."""
        names = ("model", "temperature", "seed", "reply_tokens", "response_format", "extra")
        return {name: getattr(self, name) for name in names}


def read_settings(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None, **changed: Any
) -> LLMSettings:
    """Settings from a file and the environment.

    Args:
        path: A YAML file of names and values; ``${oc.env:NAME}`` in it is read from the environment.
        environment: Where OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL stand; that of the process unless given.
        changed: Settings that go before those of the file; None counts as not given.

    Raises:
        GfmError: No such file, an unknown name, a value that does not fit, or no model.
    """
    environment = os.environ if environment is None else environment
    row: dict[str, Any] = {
        name: environment[variable] for name, variable in _ENVIRONMENT.items() if environment.get(variable)
    }
    row |= _file(Path(path)) if path else {}
    row |= {name: value for name, value in changed.items() if value is not None}
    place = str(path) if path else "language model"
    if not row.get("model"):
        raise GfmError(
            f"{place}: expected the name of a model, found none; write `model: NAME` into a file and name it, as in "
            "--extractor llm:FILE or --llm FILE, or set OPENAI_MODEL"
        )
    try:
        settings = LLMSettings(**row)
        urlsplit(settings.base_url).port  # noqa: B018 - reading it is the check
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]  # a value may be a key
        name = ".".join(map(str, problem["loc"])) or "settings"
        raise GfmError(f"{place}: {name}: {problem['msg']}; see docs/llm.md") from None
    except ValueError:
        raise GfmError(f"{place}: base_url: expected an address such as http://localhost:11434/v1") from None
    if not settings.server.startswith(("http://", "https://")):
        raise GfmError(f"{place}: base_url: expected an address that begins with http:// or https://")
    return settings


def _file(path: Path) -> dict[str, Any]:
    try:
        value = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except OSError as error:
        raise GfmError(f"{path}: expected a YAML file with a language model's settings; {error.strerror}") from error
    except (YAMLError, OmegaConfBaseException) as error:
        found = " ".join(str(error).split()[:40])
        raise GfmError(f"{path}: expected a YAML file of names and values, found: {found}") from None
    if not isinstance(value, dict):
        raise GfmError(f"{path}: expected a YAML file of names and values, found a list")
    return {str(name): item for name, item in value.items()}
