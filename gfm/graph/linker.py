"""Finds the titles of passages in the text of other passages: the longest match wins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gfm.graph.entity_table import EntityTable
from gfm.memory import without_collector
from gfm.text.normalise import name_key, strip_bracket, tokens, words


class TitleLinker:
    """Longest-match dictionary of titles over folded tokens.

    A title is found under its full form and without its bracketed suffix. A bare form that several titles share stands
    for none of them: it is an entity of its own, tied to each as a synonym (`aliases`); so does one that a table knows
    as an entity beside the title's. Aliases that somebody gave are found like titles, and come before bare forms.

    Args:
        titles: The titles of all passages; blank ones are passed over.
        table: What was given of the entities.

    Attributes:
        table: The same.
        aliases: (form, key) pairs that are one name with more or less said; their entities are synonyms.
    """

    @without_collector()
    def __init__(self, titles: Iterable[str], table: EntityTable | None = None):
        self.table = table or EntityTable()
        names: dict[str, list[str]] = defaultdict(list)
        bare: dict[str, set[str]] = defaultdict(set)
        spelt: dict[str, list[str]] = defaultdict(list)
        self._titles: dict[str, list[str]] = defaultdict(list)
        for title in sorted(set(titles)):
            if key := name_key(title):
                names[key].append(title)
                short = strip_bracket(title)
                form = key if short == title else name_key(short)
                bare[form].add(key)
                spelt[form].append(short)
                for shared in {form, key}:
                    self._titles[shared].append(title)
        self._key_of_name: dict[str, str] = {}
        self._key_of: dict[tuple[str, ...], str] = {}
        self.aliases: set[tuple[str, str]] = set()
        self._shared_by: dict[str, list[str]] = defaultdict(list)
        self._add_table()
        for form, keys in bare.items():
            alone = len(keys) == 1 and not self._apart(form, *keys)
            self._add(form, spelt[form], next(iter(keys)) if alone else form)
            self.aliases.update((form, key) for key in keys if not alone and key != form)
        for key, spellings in names.items():
            if not set(spellings) <= set(spelt.get(key, ())):  # else they were entered above
                self._add(key, spellings, key)
            self._key_of_name[key] = self.table.canonical(key)
        self._lengths = _lengths(self._key_of)
        self._resolved: dict[str, str] = {}

    def _add_table(self) -> None:
        """Enter what was given: aliases and the names that they stand for, and whatever has an id, as itself."""
        for form, alias in self.table.aliases.items():
            self._add(form, [alias.form], form)
            for name in alias.names:
                self._add(name_key(name), [name], name_key(name))
        for key, entity in self.table.entities.items():
            if entity.id:
                self._key_of_name.setdefault(key, self.table.canonical(key))
        for form, keys in self.table.shared().items():
            self.aliases.update((form, key) for key in keys if key != form)
            for key in keys:
                self._shared_by[key].append(form)

    def _apart(self, form: str, key: str) -> bool:
        """Whether the table has both a bare form and the title that it would stand for."""
        return form != key and form in self.table.entities and key in self.table.entities

    def _add(self, form: str, spellings: Sequence[str], key: str) -> None:
        """Enter a form by its key and as texts spell it: in some scripts folding moves the borders of tokens."""
        key = self.table.canonical(key)
        self._key_of_name.setdefault(form, key)
        for spelling in (form, *spellings):
            if spelling is not form and spelling.isascii() and spelling.lower() == form:
                continue  # the same tokens
            if parts := tuple(words(spelling)):
                self._key_of.setdefault(parts, key)

    def short(self, title: str) -> str:
        """A title without its bracketed suffix, unless titles that differ in it alone would then read the same."""
        bare = strip_bracket(title)
        return bare if self._key_of_name.get(name_key(bare)) == self.subject(title) else title

    def subject(self, title: str) -> str:
        """The key of the entity that a passage with this title is about; empty without a title."""
        return self.table.canonical(name_key(title))

    def senses(self, keys: Iterable[str]) -> dict[str, str]:
        """What shared forms mean where the entities ``keys`` are at hand: for each form the only one that it may be."""
        if not self._shared_by:
            return {}
        found: dict[str, set[str]] = defaultdict(set)
        for key in keys:
            for form in self._shared_by.get(key, ()):
                found[form].add(key)
        return {form: next(iter(names)) for form, names in found.items() if len(names) == 1}

    def resolve(self, name: str) -> str:
        """The entity key of a name found in text: that of the one title it stands for, else its own key."""
        if name not in self._resolved:
            self._resolved[name] = self._key_of.get(tuple(words(name))) or name_key(name)
        return self._resolved[name]

    def resolve_exactly(self, name: str) -> str:
        """As `resolve`, but punctuation counts: a given ``C++`` is not the title ``C``."""
        key = name_key(name)
        return self._key_of_name.get(key, key)

    def touched(self, titles: Iterable[str]) -> tuple[set[tuple[str, ...]], set[str]]:
        """Every lookup that may be answered otherwise once ``titles`` have come or gone.

        Args:
            titles: Those that this linker knows and an earlier one did not, or the other way round.

        Returns:
            Token sequences (which `find` and `resolve` look up) and keys (`short` and `resolve_exactly`).
        """
        titles = set(titles)
        shared = {name_key(name) for title in titles for name in (title, strip_bracket(title))}
        these = TitleLinker({*titles, *chain.from_iterable(self._titles.get(key, ()) for key in shared)})
        return set(these._key_of), set(these._key_of_name)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Longest matches from left to right as (start, end, entity key); each starts with a capital or a digit.

        Letters of scripts without capitals count as capitals.
        """
        found = tokens(text)
        end = 0
        for i, (word, start, _) in enumerate(found):
            if i >= end and word in self._lengths and not text[start].islower():
                for n in self._lengths[word]:
                    form = tuple([token for token, _, _ in found[i : i + n]])
                    if len(form) == n and (key := self._key_of.get(form)):
                        end = i + n
                        yield start, found[end - 1][2], key
                        break


def _lengths(forms: Iterable[tuple[str, ...]]) -> dict[str, list[int]]:
    """For each first token the lengths of the forms that start with it, longest first."""
    lengths: dict[str, set[int]] = defaultdict(set)
    for form in forms:
        lengths[form[0]].add(len(form))
    return {first: sorted(found, reverse=True) for first, found in lengths.items()}
