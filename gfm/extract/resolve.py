"""Which given names are one entity: ids and types tell homonyms apart, aliases join what a table says is one.

A pure function of the set of rows: their order plays no part.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gfm.graph.entity_table import EntityTable, make_aliases
from gfm.text.normalise import best_form, name_key, plain_name
from gfm.types import GfmError, GivenEntity, GivenTriple


@dataclass(frozen=True, slots=True)
class Resolved:
    """Given rows in which a name stands for one entity alone.

    Attributes:
        entities: One row an entity, sorted by name; homonyms are named with their type or id in brackets.
        triples: As given, their ends by those names.
        table: The same entities, and the aliases.
        unnamed: Number of entities that came without a name and got a stand-in ("unnamed place 1").
        homonyms: Names that several entities share.
    """

    entities: list[GivenEntity]
    triples: list[GivenTriple]
    table: EntityTable
    unnamed: int
    homonyms: list[str]


@dataclass(eq=False)
class _Sense:
    """One entity while rows are put together."""

    id: str = ""
    names: Counter[str] = field(default_factory=Counter)
    forms: set[str] = field(default_factory=set)
    types: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    descriptions: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)
    declared: bool = False
    place: str = ""
    name: str = ""

    def add(self, row: GivenEntity) -> None:
        """Put a row's fields in; sources accumulate."""
        if row.name:
            self.names[row.name] += 1
        self.add_type(row.type)
        self.forms.update(row.aliases)
        self.descriptions.update([row.description] if row.description else [])
        self.passages.update(row.passage_ids)
        self.declared = True

    def add_end(self, name: str, kind: str, place: str) -> None:
        """Put in how an end of a triple without an id speaks of it."""
        self.add_type(kind)
        if not self.id:
            self.names[name] += 1
            self.place = self.place or place

    def add_type(self, name: str) -> None:
        """One more type; blank for none."""
        if name:
            self.types[name_key(name)][name] += 1

    def absorb(self, other: _Sense) -> None:
        """Put all of another entity of the same name in."""
        if other is not self:
            self.names += other.names
            self.forms |= other.forms
            self.descriptions |= other.descriptions
            self.passages |= other.passages
            for key, spelt in other.types.items():
                self.types[key] += spelt

    @property
    def type(self) -> str:
        """All its types."""
        return ", ".join(sorted(map(best_form, self.types.values())))

    def entity(self) -> GivenEntity:
        """The row that says all of it."""
        key = name_key(self.name)
        aliases = {name_key(form): form for form in sorted({*self.forms, *self.names}, reverse=True)}
        return GivenEntity(
            name=self.name,
            id=self.id,
            type=self.type,
            description=" ".join(sorted(self.descriptions)),
            aliases=tuple(sorted(form for k, form in aliases.items() if k and k != key)),
            passage_ids=tuple(sorted(self.passages)),
            place=self.place,
        )


def resolve(entities: Sequence[GivenEntity], triples: Sequence[GivenTriple]) -> Resolved:
    """Tell entities of one name apart, and join names that are one entity.

    Two ids are two entities, whatever their names. Rows without an id are one entity where their names have one key,
    unless both give a type and the types differ. A name that several entities share and that comes without id or type
    stands for none of them.

    Args:
        entities: Rows of an entity table; may be empty.
        triples: Their ends name entities by name, by id, or by name and type.

    Raises:
        GfmError: An id without a name and without a row, two rows of one id with two names, or aliases in a circle.
    """
    if not entities and not any(t.head_id or t.tail_id or t.head_type or t.tail_type for t in triples):
        return Resolved([], list(triples), EntityTable(), 0, [])
    senses = _Senses(entities, triples)
    named = [senses.named(t) for t in triples]
    rows = sorted((sense.entity() for sense in senses.declared()), key=lambda e: (e.name, e.id))
    return Resolved(rows, named, table_of(rows), senses.unnamed, sorted(senses.homonyms))


def table_of(rows: Sequence[GivenEntity]) -> EntityTable:
    """What the graph has to know of entities, each of which has a name of its own."""
    return EntityTable({name_key(row.name): row for row in rows}, make_aliases(_aliases(rows)))


def _aliases(rows: Sequence[GivenEntity]) -> list[tuple[str, str]]:
    """(form, name) of every other name; a form that is the name of another row stands for that one too."""
    names = {name_key(row.name): row.name for row in rows}
    pairs = [(form, row.name) for row in rows for form in row.aliases]
    return pairs + [(form, names[name_key(form)]) for form, _ in pairs if name_key(form) in names]


class _Senses:
    """The entities of all rows, each with a name of its own."""

    def __init__(self, entities: Sequence[GivenEntity], triples: Sequence[GivenTriple]):
        self._ids: dict[str, _Sense] = {}
        self._typed: dict[tuple[str, str], list[_Sense]] = {}
        self._plain: dict[str, _Sense] = {}
        self._by_key: dict[str, list[_Sense]] = defaultdict(list)
        self.homonyms: dict[str, list[_Sense]] = {}
        self.unnamed = 0
        self._add_ids(entities, triples)
        self._name_ids()
        self._add_types(entities, triples)
        for row in entities:
            if not row.id:
                self._sense(row.name, row.type).add(row)
        for triple in triples:
            for name, identifier, kind in _ends(triple):
                if not identifier:
                    self._sense(name, kind).add_end(name, kind, triple.place)
        self._name_homonyms()

    def all(self) -> list[_Sense]:
        """Every entity once."""
        return [*(sense for found in self._by_key.values() for sense in found), *self._plain.values()]

    def declared(self) -> list[_Sense]:
        """Every entity that a row, an id or a type speaks of; what came to have one name is one."""
        found: dict[str, _Sense] = {}
        for sense in sorted(self.all(), key=lambda s: (not s.id, s.type)):
            if sense.declared:
                found.setdefault(name_key(sense.name), sense).absorb(sense)
        return list(found.values())

    def named(self, triple: GivenTriple) -> GivenTriple:
        """The triple with its ends by names that are unique; a spelling of such a name stays."""
        ends = []
        for spelt, identifier, kind in _ends(triple):
            name = (self._ids[identifier] if identifier else self._sense(spelt, kind)).name
            ends.append(spelt if name_key(spelt) == name_key(name) else name)
        head, tail = ends or ("", "")
        return replace(triple, head=head, tail=tail, head_id="", tail_id="", head_type="", tail_type="")

    def _add_ids(self, entities: Sequence[GivenEntity], triples: Sequence[GivenTriple]) -> None:
        first: dict[str, GivenEntity] = {}
        for row in entities:
            if row.id:
                known = first.setdefault(row.id, row)
                if name_key(known.name) != name_key(row.name):
                    raise GfmError(
                        f"{row.place}: the id {row.id!r} stands for {known.name!r} at {known.place} and for "
                        f"{row.name!r} here; an id stands for one entity: correct one of them"
                    )
                self._ids.setdefault(row.id, _Sense(row.id, place=row.place)).add(row)
        for triple in triples:
            for name, identifier, kind in _ends(triple):
                if identifier and name:
                    sense = self._ids.setdefault(identifier, _Sense(identifier, place=triple.place, declared=True))
                    sense.add_type(kind)
                    if identifier in first and first[identifier].name:
                        sense.forms.add(name)
                    else:
                        sense.names[name] += 1
                elif identifier and identifier not in self._ids:
                    self._ids[identifier] = _Sense(identifier, place=triple.place)
        for identifier, sense in self._ids.items():
            if not sense.declared:
                raise GfmError(
                    f"{sense.place}: unknown node {identifier!r}: expected the id of an entity; add it to the "
                    "entities, or correct it"
                )

    def _name_ids(self) -> None:
        """Give everything with an id a name, and a readable stand-in where nobody gave one."""
        for _, sense in sorted(self._ids.items()):
            names = Counter({n: c for n, c in sense.names.items() if name_key(n)})
            forms = {form for form in sense.forms if name_key(form)}
            if not names and not forms:
                self.unnamed += 1
            sense.name = (
                plain_name(best_form(names))
                if names
                else min(forms, default=f"unnamed {sense.type or 'entity'} {self.unnamed}")
            )
            self._by_key[name_key(sense.name)].append(sense)

    def _add_types(self, entities: Sequence[GivenEntity], triples: Sequence[GivenTriple]) -> None:
        """Say what each (name, type) without an id means: an entity with an id that fits, or one of its own."""
        found = {(name_key(row.name), name_key(row.type)) for row in entities if not row.id}
        found |= {(name_key(name), name_key(kind)) for t in triples for name, i, kind in _ends(t) if not i}
        kinds: dict[str, list[str]] = defaultdict(list)
        for key, kind in sorted(found):
            if kind:
                kinds[key].append(kind)
        for key, types in kinds.items():
            with_id = list(self._by_key.get(key, ()))
            fitting = {kind: [s for s in with_id if kind in s.types] for kind in types}
            rest = [kind for kind, senses in fitting.items() if not senses]
            untyped = [s for s in with_id if not s.types]
            for kind in types:
                if not fitting[kind] and len(untyped) == len(rest) == 1:
                    fitting[kind] = untyped
                if not fitting[kind]:
                    fitting[kind] = [_Sense(declared=True)]
                    self._by_key[key] += fitting[kind]
                self._typed[key, kind] = fitting[kind]

    def _sense(self, name: str, kind: str) -> _Sense:
        """The entity of a name without an id; one of its own where the name may mean several."""
        key = name_key(name)
        senses = self._typed[key, name_key(kind)] if kind else self._by_key.get(key, [])
        return senses[0] if len(senses) == 1 else self._plain.setdefault(key, _Sense())

    def _name_homonyms(self) -> None:
        for sense in self.all():
            sense.name = sense.name or plain_name(best_form(sense.names))
        taken = {name_key(sense.name) for sense in self.all()}
        for _, group in sorted(self._by_key.items()):
            if len(group) < 2:
                continue
            self.homonyms[min(sense.name for sense in group)] = group
            types = Counter(name_key(sense.type) for sense in group)
            for sense in sorted(group, key=lambda s: (s.id, s.type)):
                sense.forms.add(sense.name)
                sense.name = _unique(sense, types[name_key(sense.type)] == 1, taken)
                taken.add(name_key(sense.name))


def _ends(triple: GivenTriple) -> list[tuple[str, str, str]]:
    """(name, id, type) of head and tail; nothing for a sentence that links no two entities."""
    if not (triple.head or triple.tail or triple.head_id or triple.tail_id):
        return []
    return [(triple.head, triple.head_id, triple.head_type), (triple.tail, triple.tail_id, triple.tail_type)]


def _unique(sense: _Sense, by_type: bool, taken: set[str]) -> str:
    """The name with what tells it from the others of its name in brackets: its type, its id, or both."""
    marks = [sense.type] if sense.type and by_type else []
    if not sense.id:  # what is called so already is the same
        return f"{sense.name} ({marks[0]})"
    marks += [sense.id, ", ".join(filter(None, (sense.type, sense.id)))]
    names = [f"{sense.name} ({mark})" for mark in marks]
    free = next((name for name in names if name_key(name) not in taken), None)
    if free is None:
        raise GfmError(
            f"{sense.place}: {sense.name!r} is several entities, and {' and '.join(map(repr, names))} are names of "
            "others; give them names that differ"
        )
    return free
