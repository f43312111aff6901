"""An index that lives: add, update and delete change the set of documents, and a new generation is made of it.

What a change makes is, byte for byte, what a fresh build of the same documents makes with the same cache; only what the
change touches is read, extracted, encoded and compared again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from itertools import chain
from pathlib import Path

from gfm.extract.extraction import Extractor
from gfm.extract.given import GivenGraph, GivenTriples
from gfm.graph.assemble import RULES
from gfm.index import store
from gfm.index.account import Account
from gfm.index.builder import Laps, by_id, open_cache, replace
from gfm.index.cache import Cache
from gfm.index.content import Content, metadata_json, read_content
from gfm.index.documents import Corpus, read_documents, sources
from gfm.index.lock import writer_lock
from gfm.index.recipe import Recipe
from gfm.text.chunk import split
from gfm.text.encoder import Encoder
from gfm.types import Document, GfmError, Passage


@dataclass(frozen=True, slots=True)
class Change:
    """What a change did.

    Attributes:
        added: Ids of documents that are new.
        updated: Ids of documents whose text, title, metadata or given triples are others than before.
        unchanged: Ids of documents that were handed in as they stand in the index already.
        deleted: Ids of documents that are gone.
        extracted: Passages that an extractor had to read; all others came from the index or the cache.
        encoded: Texts that the encoder had to read.
        counts: What the index holds now.
        seconds: Wall time by stage; empty where there was nothing to do.
        account: What became of every file that was read.
    """

    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    deleted: tuple[str, ...]
    extracted: int = 0
    encoded: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    account: Account = field(default_factory=lambda: Account(()))


def change_corpora(
    path: Path,
    corpora: Sequence[str | Path | Sequence[Document]],
    delete: Collection[str] = (),
    *,
    only_new: bool = False,
    delete_missing: bool = False,
    triples: str | Path | None = None,
    cache: str | Path | None = None,
    encoder: Encoder | None = None,
) -> Change:
    """Change an index by what files and folders hold; see `change_documents`.

    Args:
        path: Folder of the index.
        corpora: Each as for `read_documents`, or documents.
        delete: Ids of documents to delete.
        only_new: Refuse a document whose id stands for another content already.
        delete_missing: Delete all documents that the corpora do not have; a file that could not be read stays.
        triples: A triples.jsonl, for an index that was built with such.
        cache: The cache that the index was built with, where that is not its own.
        encoder: That of the index, where it is loaded already.

    Raises:
        GfmError: As `read_documents` and `change_documents`.
    """
    found = [read_documents(c) if isinstance(c, str | Path) else Corpus(list(c), Account(())) for c in corpora]
    files = tuple(record for corpus in found for record in corpus.account.files)
    change = change_documents(
        path,
        [d for corpus in found for d in corpus.documents],
        delete,
        only_new=only_new,
        keep=[f.name for f in files if f.state != "indexed"] if delete_missing else None,
        triples=None if triples is None else GivenTriples(Path(triples)),
        encoder=encoder,
        cache_path=None if cache is None else Path(cache),
    )
    return replace_fields(change, account=Account(files).with_unchanged(change.unchanged))


def change_documents(
    path: Path,
    put: Sequence[Document] = (),
    delete: Collection[str] = (),
    *,
    only_new: bool = False,
    keep: Collection[str] | None = None,
    triples: GivenGraph | None = None,
    encoder: Encoder | None = None,
    extractors: Sequence[Extractor] | None = None,
    cache_path: Path | None = None,
) -> Change:
    """Change the set of documents of an index, all at once or not at all.

    Args:
        path: Folder of the index.
        put: Documents to add, or to put in the place of those of the same ids.
        delete: Ids of documents to delete.
        only_new: Refuse a document whose id stands for another content already.
        keep: Where given, every other document that is not in ``put`` is deleted too.
        triples: Given triples, for an index that was built with such: all that holds from now on for the documents that
            they name. A document that is replaced or deleted takes its old ones along.
        encoder: That of the index; loaded by its name, once it is needed, unless given.
        extractors: Those of the index; made by their names, once they are needed, unless given.
        cache_path: The cache that the index was built with, where that is not its own.

    Raises:
        GfmError: Bad input, or encoder, extractors or triples other than those of the index, which stands as it was.
    """
    clock = Laps()
    if not (path / store.CURRENT).is_file():
        store.open_generation(path)  # tells what is missing; no lock is left in a folder that is no index
    with writer_lock(path):
        folder, manifest = store.open_generation(path)
        old = read_content(folder)
        recipe = Recipe.of_index(path, manifest, old.given, encoder, extractors)
        plan = _Plan(path, {d.id: d for d in old.documents}, put, delete, keep)
        recipe = plan.with_triples(recipe, triples)
        if only_new:
            plan.refuse_updates()
        if not plan.changes:
            return plan.done(manifest["counts"])
        if manifest["rules"] != RULES:
            old = Content()  # read by other rules: everything is read again
        clock.lap("open")
        passages = _passages(old, plan, recipe)
        clock.lap("split")
        with open_cache(path, cache_path) as cache:
            new = replace(path, old, list(plan.documents.values()), passages, recipe, cache, clock)
        return plan.done(new["counts"], cache, clock.seconds)


def _passages(old: Content, plan: _Plan, recipe: Recipe) -> list[Passage]:
    """All passages; only documents whose text or title is new are split."""
    same = {d.id for d in old.documents if d.id in plan.documents and _text(d) == _text(plan.documents[d.id])}
    fresh = (d for d in plan.documents.values() if d.id not in same)
    s = recipe.settings
    made = (p for d in fresh for p in split(d, recipe.encoder, s.chunk_tokens, s.chunk_overlap))
    return by_id(chain((p for p in old.passages if p.document_id in same), made))


def _text(document: Document) -> tuple[object, ...]:
    return document.title, document.text, document.sections


class _Plan:
    """What a change comes to.

    Args:
        path: Folder of the index, for messages.
        old: Documents of the index by id.
        put: As in `change_documents`; so are the others.

    Attributes:
        documents: All documents that there will be, by id.
        added: Ids of documents, in order; so are updated, unchanged and deleted.

    Raises:
        GfmError: They contradict each other, or the index.
    """

    def __init__(
        self,
        path: Path,
        old: dict[str, Document],
        put: Sequence[Document],
        delete: Collection[str],
        keep: Collection[str] | None,
    ):
        self._path, self._old = path, old
        new = {d.id: d for d in put}
        twice = [identifier for identifier, count in Counter(d.id for d in put).items() if count > 1]
        if twice:
            raise GfmError(f"two documents have the id {min(twice)!r}; ids must be unique: rename one of them")
        unknown = sorted(set(delete) - set(old))
        if unknown:
            raise GfmError(
                f"{path}: expected ids of documents of the index, found {unknown[0]!r} ({len(unknown)} such); nothing "
                "was deleted: correct the id (a file's id is its path in the folder that was indexed)"
            )
        if both := sorted(set(delete) & set(new)):
            raise GfmError(f"document {both[0]!r} is to be put and to be deleted; choose one")
        gone = set(delete)
        if keep is not None:
            gone |= {i for i in set(old) - set(new) if not {i, *sources(old[i])} & set(keep)}
        self.documents = {**{i: d for i, d in old.items() if i not in gone}, **new}
        if not self.documents:
            raise GfmError(f"{path}: expected at least one document to be left, found none; delete the folder instead")
        self.added = sorted(set(new) - set(old))
        self.deleted = sorted(gone)
        self.updated = sorted(i for i in set(new) & set(old) if not _alike(new[i], old[i]))
        self.unchanged = sorted(set(new) & set(old) - set(self.updated))
        self._retold = [i for i in self.updated if _text(new[i]) != _text(old[i])]

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.added or self.updated or self.deleted)

    def with_triples(self, recipe: Recipe, triples: GivenGraph | None) -> Recipe:
        """The recipe with the given triples that there will be; documents whose triples change count as updated.

        Raises:
            GfmError: The index has none and some are given, or the other way round; or they name unknown documents.
        """
        at = next((i for i, e in enumerate(recipe.extractors) if isinstance(e, GivenGraph)), None)
        if at is None:
            if triples is None:
                return recipe
            raise GfmError(
                f"{self._path}: expected no triples, as when the index was built, found some; leave them out, or build "
                f"the index again with all triples: gfm index PATH --out {self._path} --triples FILE"
            )
        if triples is None and (self.added or self._retold):
            raise GfmError(
                f"{self._path}: expected triples for what is added, as when the index was built, found none; give "
                "them: --triples FILE (one for the whole corpus will do)"
            )
        known = recipe.extractors[at]
        assert isinstance(known, GivenGraph)
        ids = {*self._old, *self.documents}
        made = known.without({*self.deleted, *self._retold}, ids)
        if triples is not None:
            triples.check(self.documents)
            others = {i for i in triples.documents(ids) & set(self._old) if triples.of(i, ids) != known.of(i, ids)}
            made = made.united(triples, ids)
            self.updated = sorted({*self.updated, *others})
            self.unchanged = [i for i in self.unchanged if i not in others]
        extractors = [made if i == at else e for i, e in enumerate(recipe.extractors)]
        return recipe.with_extractors(extractors)

    def refuse_updates(self) -> None:
        """Prove that nothing is replaced.

        Raises:
            GfmError: Something is.
        """
        if self.updated:
            raise GfmError(
                f"{self._path}: expected new documents, found another content for {self.updated[0]!r} "
                f"({len(self.updated)} such); to replace them: gfm update {self._path} PATH"
            )

    def done(
        self, counts: dict[str, int], cache: Cache | None = None, seconds: dict[str, float] | None = None
    ) -> Change:
        """What is reported."""
        return Change(
            added=tuple(self.added),
            updated=tuple(self.updated),
            unchanged=tuple(self.unchanged),
            deleted=tuple(self.deleted),
            extracted=cache.extracted if cache else 0,
            encoded=cache.encoded if cache else 0,
            counts=counts,
            seconds=seconds or {},
        )


def _alike(a: Document, b: Document) -> bool:
    return _text(a) == _text(b) and metadata_json(a) == metadata_json(b)
