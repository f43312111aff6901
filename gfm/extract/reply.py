"""The schema of what a language model finds in a passage, and how a reply that is nearly so is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gfm.extract.rows import HEAD, NAME, RELATION, TAIL
from gfm.llm.json_reply import read_json
from gfm.types import GfmError

_TRIPLES = ("triples", "facts", "relations", "relationships", "statements", "edges", "triplets")
_ENTITIES = ("entities", "named_entities", "nodes", "names")
_EVIDENCE = ("evidence", "sentence", "quote", "source_text", "support", "source_sentence", "text")
_NO_WORD = re.compile(r"[^\w]+")
_DEEPEST = 3  # wrappers round the lists, such as {"result": {"data": …}}


class ReplyError(GfmError):
    """A reply of which nothing can be used; the message says why."""


def _as_text(value: Any) -> Any:
    """What is safe to take for a text: a number, the only item of a list, the name of an object."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping):
        row = _plain_keys(value)
        value = next((row[name] for name in (*NAME, "entity", "value") if name in row), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


_Text = Annotated[str, BeforeValidator(_as_text)]


class FoundEntity(BaseModel):
    """A named thing, as the passage spells it."""

    model_config = ConfigDict(frozen=True)

    name: _Text = Field(validation_alias=AliasChoices(*NAME, "entity", "text"), min_length=1)
    type: _Text = Field(default="", validation_alias=AliasChoices("type", "label", "category", "entity_type"))


class FoundTriple(BaseModel):
    """A statement of the passage with the sentence that makes it."""

    model_config = ConfigDict(frozen=True)

    head: _Text = Field(validation_alias=AliasChoices(*HEAD, "head_entity", "source_entity"), min_length=1)
    relation: _Text = Field(
        default="", validation_alias=AliasChoices(*RELATION, "relationship", "relation_type", "verb")
    )
    tail: _Text = Field(validation_alias=AliasChoices(*TAIL, "tail_entity", "target_entity"), min_length=1)
    evidence: _Text = Field(default="", validation_alias=AliasChoices(*_EVIDENCE))


class FoundFacts(BaseModel):
    """All that a reply holds."""

    model_config = ConfigDict(frozen=True)

    entities: tuple[FoundEntity, ...] = ()
    triples: tuple[FoundTriple, ...] = ()


def reply_schema() -> dict[str, Any]:
    """The JSON Schema that a server is shown: the names that we ask for, all of them due."""

    def rows(*names: str) -> dict[str, Any]:
        fields = {name: {"type": "string"} for name in names}
        row = {"type": "object", "properties": fields, "required": list(names), "additionalProperties": False}
        return {"type": "array", "items": row}

    lists = {"entities": rows("name", "type"), "triples": rows("head", "relation", "tail", "evidence")}
    return {"type": "object", "properties": lists, "required": list(lists), "additionalProperties": False}


def read_reply(text: str) -> tuple[FoundFacts, Counter[str]]:
    """What a reply holds, and how many items of it were dropped for what reason.

    Safe repairs are made: code fences, reasoning and polite words round the JSON are passed over, renamed keys and bare
    lists understood, broken JSON mended, numbers taken for texts. An item that does not fit is dropped alone.

    Raises:
        ReplyError: The reply is empty, or holds no such JSON.
    """
    if not text.strip():
        raise ReplyError("an empty reply")
    found = read_json(text, lambda value: -1 if (lists := _lists(value)) is None else sum(map(len, lists)))
    if found is None:
        raise ReplyError(f"expected JSON with entities and triples, found: {_shown(text)}")
    entities, triples = _lists(found.value) or ([], [])
    dropped: Counter[str] = Counter()
    if found.cut:  # the last item of each list may be half of one
        dropped["cut off"] = bool(entities) + bool(triples)
        entities, triples = entities[:-1], triples[:-1]
    facts = FoundFacts(
        entities=tuple(_valid(FoundEntity, map(_entity_row, entities), dropped)),
        triples=tuple(_valid(FoundTriple, map(_triple_row, triples), dropped)),
    )
    if (entities or triples) and not (facts.entities or facts.triples):
        raise ReplyError(f"none of {len(entities) + len(triples)} items is an entity or a triple: {_shown(text)}")
    return facts, dropped


def _valid(model: type[Any], rows: Any, dropped: Counter[str]) -> list[Any]:
    found = []
    for row in rows:
        try:
            found.append(model.model_validate(row))
        except ValidationError:
            dropped["malformed"] += 1
    return found


def _lists(value: Any, depth: int = 0) -> tuple[list[Any], list[Any]] | None:
    """The lists of entities and of triples that a value holds under whatever names; None where it has neither."""
    if isinstance(value, list):
        if not value:
            return [], []
        if all(_is_triple(item) for item in value[:3]):
            return [], value
        if all(isinstance(item, Mapping) and _has(item, NAME) for item in value[:3]):
            return value, []
        return _lists(value[0], depth + 1) if len(value) == 1 and depth < _DEEPEST else None
    if not isinstance(value, Mapping):
        return None
    row = _plain_keys(value)
    entities, triples = _first(row, _ENTITIES), _first(row, _TRIPLES)
    if entities is not None or triples is not None:
        return _items(entities), _items(triples)
    if _is_triple(value):
        return [], [value]
    inner = [found for item in row.values() if depth < _DEEPEST and (found := _lists(item, depth + 1)) is not None]
    return inner[0] if len(inner) == 1 and len(row) == 1 else None


def _items(value: Any) -> list[Any]:
    """A list; of an object that maps names to types, its pairs."""
    if isinstance(value, Mapping):
        if all(isinstance(kind, str) for kind in value.values()) and not _is_triple(value):
            return [{"name": name, "type": kind} for name, kind in value.items()]
        return [value] if _is_triple(value) or _has(value, NAME) else list(value.values())
    return value if isinstance(value, list) else []


def _is_triple(item: Any) -> bool:
    if isinstance(item, Mapping):
        return _has(item, HEAD) and _has(item, TAIL)
    return isinstance(item, list) and len(item) in (3, 4) and all(isinstance(part, str) for part in item)


def _has(item: Mapping[Any, Any], names: Sequence[str]) -> bool:
    return any(name in names for name in _plain_keys(item))


def _entity_row(item: Any) -> Any:
    return {"name": item} if isinstance(item, str) else _plain_keys(item) if isinstance(item, Mapping) else item


def _triple_row(item: Any) -> Any:
    if isinstance(item, list) and len(item) in (3, 4):
        return dict(zip(("head", "relation", "tail", "evidence"), item, strict=False))
    return _plain_keys(item) if isinstance(item, Mapping) else item


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _plain_keys(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Keys in small letters with underscores; an empty value counts as missing."""
    plain = {_NO_WORD.sub("_", str(key).strip()).strip("_").casefold(): value for key, value in row.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _shown(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= 80 else f"{words[:80]}…")
