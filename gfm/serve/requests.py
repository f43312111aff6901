"""What clients send, within the limits."""

# No `from __future__ import annotations`: the limits are values of the moment.
from types import SimpleNamespace
from typing import Annotated, Any, Literal

from gfm.extras import extra
from gfm.index.filters import ABOUT
from gfm.serve.settings import ServeSettings
from gfm.text.reading import is_blank

with extra("serve"):
    from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Health(BaseModel):
    """What is served.

    Attributes:
        status: ``stale`` where the generation in force does not open and the one before it is served.
        generation: Of the index.
        reloads: How often a new generation took the old one's place.
        version: Of gfm.
        counts: What the index holds.
    """

    status: Literal["ok", "stale"]
    generation: str
    reloads: int
    version: str
    counts: dict[str, int]


def _visible(text: str) -> str:
    if is_blank(text):
        raise ValueError("expected a question, found nothing that can be seen")
    return text


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 5.0 is a whole one, "5" and true are none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def request_models(settings: ServeSettings) -> SimpleNamespace:
    """Models of the requests: ``Search``, ``Ask`` and ``Explain``.

    Args:
        settings: The limits.
    """
    most, few = settings.max_tokens, min(5, settings.max_top_k)

    class Explain(BaseModel):
        model_config = ConfigDict(extra="forbid")

        question: Annotated[
            str, Field(min_length=1, max_length=settings.max_question, pattern=r"\S"), AfterValidator(_visible)
        ]
        top_k: Annotated[int, Field(ge=1, le=settings.max_top_k, strict=True), BeforeValidator(_whole)] = few
        filters: Annotated[dict[str, Any] | None, Field(description=ABOUT)] = None

    class Search(Explain):
        max_tokens: Annotated[int, Field(ge=1, le=most, strict=True), BeforeValidator(_whole)] = min(2000, most)

    class Ask(Explain):
        max_tokens: Annotated[int, Field(ge=1, le=most, strict=True), BeforeValidator(_whole)] = min(3000, most)

    return SimpleNamespace(Explain=Explain, Search=Search, Ask=Ask)
