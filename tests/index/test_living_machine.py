"""Random lives of an index: whatever was added, updated, deleted, renamed or cut short, it is what a fresh build gives.

300 lives by default, always the same; other ones, and more:

    GFM_LIVES=5000 python -m pytest tests/index/test_living_machine.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from gfm.extract.extraction import Extractor
from gfm.index import store
from gfm.index.builder import build_index
from gfm.index.cache import Cache
from gfm.index.content import read_documents_of
from gfm.index.index import GraphIndex
from gfm.index.living import Change, change_documents
from gfm.index.recipe import BuildSettings
from gfm.text.encoder import HashingEncoder
from gfm.types import Document
from tests.index.fakes import Capitals, Triple, triples_of

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk is at stake
LIVES = int(os.environ.get("GFM_LIVES", "300"))
ENCODER = HashingEncoder(16)  # so few dimensions that names are near each other
SETTINGS = BuildSettings(chunk_tokens=40, synonym_cosine=0.6, synonym_neighbours=2)

NAMES = [
    *("Tarn Mill", "TARN MILL", "Mercury (planet)", "Mercury (god)", "Mercury", "C", "C++", "李明", "Orla Venn"),
    *("Orla Venn (cook)", "Port Isk", "Mill", "Mill 7", "Mill 8", "<i>Mill</i>"),
]
IDS = st.sampled_from(list("abcdef"))
WORDS = st.sampled_from([*NAMES, "met", "saw", "the mill at", "and", "He sat.", "It burned.", "Then"])
TEXTS = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: f"{' '.join(words)}.")
TITLES = st.sampled_from(["", *NAMES])
TRIPLES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "r"]), st.sampled_from(NAMES)), max_size=2)
Entry = tuple[Document, list[Triple]]


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    metadata = draw(st.sampled_from([{}, {"page": 1}]))
    return Document(draw(IDS), draw(TITLES), draw(TEXTS), metadata), draw(TRIPLES)


class CutShort(BaseException):
    """What a kill looks like from inside: nothing after it happens."""


@contextmanager
def killed_at(moment: int) -> Iterator[None]:
    """Stops at the given call, from 0, of anything that writes; a negative one stops nothing."""
    calls = iter(range(10**9))

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(calls) == moment:
                raise CutShort
            return real(*args, **kwargs)

        return call

    steps = [(Path, "replace"), (Path, "rename"), (shutil, "rmtree"), (Cache, "_store")]
    steps += [(store, name) for name in ("write_arrays", "write_table", "_install")]
    with ExitStack() as stack:
        stack.enter_context(patch.object(store, "_sync", lambda path: None))  # no disk is at stake
        for owner, name in steps:
            stack.enter_context(patch.object(owner, name, watched(getattr(owner, name))))
        yield


class Life(RuleBasedStateMachine):
    """An index and the documents that it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="gfm-life-", dir=MEMORY))
        self.path = self.root / "index"

    def teardown(self) -> None:
        try:
            if self.path.exists():
                self.compare()
        finally:
            shutil.rmtree(self.root)

    # --- the index and a fresh one

    def build(self, path: Path) -> None:
        """A fresh build with a cache of its own."""
        with killed_at(-1):
            build_index([d for d, _ in self.held.values()], path, ENCODER, self.extractors(self.held), SETTINGS)

    def extractors(self, held: dict[str, Entry]) -> list[Extractor]:
        given = [triples_of(self.root, {i: t for i, (_, t) in held.items()})] if self.given else []
        return [Capitals(), *given]

    def compare(self) -> None:
        """Every byte of the generation is that of a fresh one (whose name is the hash of all of them)."""
        shutil.rmtree(self.root / "fresh", ignore_errors=True)
        self.build(self.root / "fresh")
        generation = store.current(self.path)
        if generation != store.current(self.root / "fresh"):
            ours, fresh = (
                {p.name: p.read_bytes() for p in (folder / store.current(folder)).iterdir()}
                for folder in (self.path, self.root / "fresh")
            )
            assert [name for name in ours if ours[name] != fresh.get(name)] == []
            assert sorted(ours) == sorted(fresh)
            raise AssertionError("two generations of the same files have two names")

    def change(self, put: list[Entry], delete: list[str], moment: int = -1) -> Change | None:
        """Change the index, or be killed at a moment; either way it is the old one or the new one."""
        after = {i: e for i, e in self.held.items() if i not in delete} | {d.id: (d, t) for d, t in put}
        given = triples_of(self.root, {d.id: t for d, t in put}) if self.given and put else None
        done = None
        try:
            with killed_at(moment):
                done = change_documents(
                    self.path,
                    [d for d, _ in put],
                    delete,
                    triples=given,
                    encoder=ENCODER,
                    extractors=self.extractors(self.held),
                )
        except CutShort:
            if self.documents() != [d for _, (d, _) in sorted(self.held.items())]:
                assert self.documents() == [d for _, (d, _) in sorted(after.items())]
                self.held = after
        else:
            self.held = after
            assert self.documents() == [d for _, (d, _) in sorted(after.items())]
        return done

    def documents(self) -> list[Document]:
        return read_documents_of(store.open_generation(self.path)[0])[0]

    # --- what happens to it

    @initialize(first=st.lists(entries(), min_size=1, max_size=4), given=st.booleans())
    def begin(self, first: list[Entry], given: bool) -> None:
        self.given = given
        self.held = {d.id: (d, t) for d, t in first}
        self.build(self.path)

    @rule(entry=entries())
    def put(self, entry: Entry) -> None:
        """Add a document, or update the one of its id."""
        new = entry[0].id not in self.held
        done = self.change([entry], [])
        assert done is not None
        assert done.added == ((entry[0].id,) if new else ())

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.held)))
        done = self.change([], [gone])
        assert done is not None
        assert done.deleted == (gone,)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), new=IDS)
    def rename(self, data: st.DataObject, new: str) -> None:
        """A document goes, and comes back under another id: nothing has to be read or encoded for that."""
        old = data.draw(st.sampled_from(sorted(self.held)))
        if new not in self.held:
            document, triples = self.held[old]
            self.change([(Document(new, document.title, document.text, document.metadata), triples)], [old])

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data(), put=st.lists(entries(), max_size=3, unique_by=lambda e: e[0].id))
    def change_many(self, data: st.DataObject, put: list[Entry]) -> None:
        free = sorted(set(self.held) - {d.id for d, _ in put})
        gone = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
        if put or len(gone) < len(self.held):
            self.change(put, gone)

    @rule(entry=entries(), moment=st.integers(0, 30))
    def crash(self, entry: Entry, moment: int) -> None:
        self.change([entry], [], moment)

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data(), moment=st.integers(0, 30))
    def crash_while_deleting(self, data: st.DataObject, moment: int) -> None:
        self.change([], [data.draw(st.sampled_from(sorted(self.held)))], moment)

    @rule()
    def forget_the_cache(self) -> None:
        """It is safe to delete."""
        for file in self.path.glob("cache.sqlite*"):
            file.unlink()

    @rule()
    def reopen(self) -> None:
        index = GraphIndex.open(self.path, ENCODER)
        assert index.manifest["counts"]["documents"] == len(self.held)
        assert set(index.document_ids) == set(self.held)


def test_a_living_index_is_a_fresh_build() -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=LIVES,
            stateful_step_count=8,
            deadline=None,
            derandomize="GFM_LIVES" not in os.environ,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
