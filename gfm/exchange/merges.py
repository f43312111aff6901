"""Which names of an index share one entity, and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gfm.exchange.from_index import entity_table, forms_of
from gfm.graph.entity_table import EntityTable
from gfm.index.index import GraphIndex
from gfm.text.normalise import name_key


@dataclass(frozen=True, slots=True)
class Merge:
    """Names that share one entity for one reason.

    Attributes:
        key: Of the entity.
        name: Of the entity, as it is shown.
        why: ``spelling`` (case, spaces, accents stored otherwise), ``bracket`` (a title without its bracket, or the
            other way round), ``alias`` (a line of a table), or ``context`` (a name that several entities share, and
            the passage says which).
        forms: The names, with how often each was found.
    """

    key: str
    name: str
    why: str
    forms: dict[str, int]


def merges_of(index: GraphIndex) -> list[Merge]:
    """All merges, by entity and reason; an alias that was never found is none.

    Raises:
        GfmError: The index was built by a version that kept no spellings.
    """
    table = entity_table(index)
    found = []
    for number, forms in sorted(forms_of(index).items()):
        entity = index.entity(number)
        by_reason: dict[str, dict[str, int]] = defaultdict(dict)
        for form, count in sorted(forms.items()):
            if form != entity.name:
                by_reason[_why(name_key(form), name_key(entity.name), table)][form] = count
        found += [Merge(entity.key, entity.name, why, names) for why, names in sorted(by_reason.items())]
    return found


def _why(form: str, shown: str, table: EntityTable) -> str:
    if form == shown:
        return "spelling"
    alias = table.aliases.get(form) or table.aliases.get(shown)
    if alias is None:
        return "bracket"
    return "alias" if len(alias.names) == 1 else "context"
