"""What is known of entities beside the texts: other names, types, descriptions, and what of one name is two things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gfm.text.normalise import name_key, plain_name
from gfm.types import GfmError, GivenEntity


@dataclass(frozen=True, slots=True)
class Alias:
    """A form of a name and the names that it may stand for.

    One name: the form is merged with it. Several: the form stands for none of them, is an entity of its own where a
    text says no more, is tied to each as a synonym, and the names are never taken for near-equal.
    """

    form: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class EntityTable:
    """Entities by the key of their name, and their aliases by the key of the form.

    Attributes:
        entities: What was handed in of each; their names are unique.
        aliases: Every form once.

    Raises:
        GfmError: An alias leads back to itself.
    """

    entities: Mapping[str, GivenEntity] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, alias in self.aliases.items():
            seen = {key}
            while (target := self._step(key)) is not None:
                if target in seen:
                    raise GfmError(
                        f"alias {alias.form!r}: expected it to lead to a name, found that it leads back to itself; "
                        "delete one line of the circle from the aliases"
                    )
                seen.add(target)
                key = target

    def with_aliases(self, pairs: Iterable[tuple[str, str]]) -> EntityTable:
        """The same with (alias, name) pairs that come before what it says of those forms.

        Raises:
            GfmError: An alias leads back to itself.
        """
        return EntityTable(self.entities, {**self.aliases, **make_aliases(pairs)})

    def _step(self, key: str) -> str | None:
        """The key that a key is merged into, where there is one."""
        alias = self.aliases.get(key)
        if alias is None or len(alias.names) != 1:
            return None
        target = name_key(alias.names[0])
        return None if target == key else target

    def canonical(self, key: str) -> str:
        """The key under which the entity of ``key`` stands, all aliases followed."""
        while (target := self._step(key)) is not None:
            key = target
        return key

    def shared(self) -> dict[str, tuple[str, ...]]:
        """For each form that stands for none of several names, their keys."""
        return {
            key: tuple(sorted({self.canonical(name_key(name)) for name in alias.names}))
            for key, alias in self.aliases.items()
            if len(alias.names) > 1
        }

    def spellings(self) -> dict[str, str]:
        """By key, the name to show of every entity that the table names."""
        named = {name_key(name): plain_name(name) for alias in self.aliases.values() for name in alias.names}
        return named | {key: plain_name(entity.name) for key, entity in self.entities.items()}


def make_aliases(pairs: Iterable[tuple[str, str]]) -> dict[str, Alias]:
    """Aliases of (form, name) pairs, by the key of the form; a form of the name's own key is none.

    Args:
        pairs: In any order; what is said twice counts once.
    """
    names: dict[str, dict[str, str]] = {}
    forms: dict[str, str] = {}
    for form, name in sorted(set(pairs)):
        key = name_key(form)
        forms.setdefault(key, plain_name(form))
        names.setdefault(key, {}).setdefault(name_key(name), plain_name(name))
    return {
        key: Alias(forms[key], tuple(found.values())) for key, found in sorted(names.items()) if set(found) != {key}
    }
