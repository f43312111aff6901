"""The passages about which a language model said nothing usable, asked about again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gfm.extract.extraction import CostlyExtractor
from gfm.extract.llm import LLMExtractor
from gfm.index import store
from gfm.index.builder import Laps, open_cache, replace
from gfm.index.content import Content, read_content
from gfm.index.lock import writer_lock
from gfm.index.plan import Plan, plan_unread
from gfm.index.recipe import Recipe
from gfm.types import GfmError


@dataclass(frozen=True, slots=True)
class Retry:
    """What came of it.

    Attributes:
        plan: What there was to ask.
        model: The extractor, with its report and what was spent.
        counts: What the index holds now; empty where nothing was asked.
    """

    plan: Plan
    model: LLMExtractor
    counts: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return {"plan": self.plan.as_json(), "counts": self.counts, **self.model.outcome()}

    def lines(self) -> list[str]:
        """For people."""
        if not self.counts:
            return [self.plan.text()]
        held = f"the index holds: {', '.join(f'{name} {n:,}' for name, n in self.counts.items())}"
        return [*self.model.outcome_lines(), held]


def retry_failed(
    path: Path,
    cache_path: Path | None = None,
    dry_run: bool = False,
    before: Callable[[Plan], None] = lambda plan: None,
) -> Retry:
    """Make the index anew of its own documents; the model is asked about what no cache has.

    Args:
        path: Folder of the index.
        cache_path: The cache that it was built with, where that is not its own.
        dry_run: Only plan.
        before: Gets the plan before anything is asked.

    Raises:
        GfmError: No index, none whose facts a language model found, or another model; the index stands as it was.
    """
    if not (path / store.CURRENT).is_file():
        store.open_generation(path)  # tells what is missing; no lock is left in a folder that is no index
    with writer_lock(path), open_cache(path, cache_path) as cache:
        folder, manifest = store.open_generation(path)
        old = read_content(folder)
        recipe = Recipe.of_index(path, manifest, old.given)
        model = _model(path, recipe)
        plan = plan_unread(len(old.passages), cache.unread(old.passages, model), model)
        if dry_run or not plan.calls:
            return Retry(plan, model)
        before(plan)
        new = replace(path, Content(), old.documents, old.passages, recipe, cache, Laps())
        return Retry(plan, model, new["counts"])


def _model(path: Path, recipe: Recipe) -> LLMExtractor:
    for extractor in recipe.extractors:
        made = getattr(extractor, "made", extractor) if isinstance(extractor, CostlyExtractor) else None
        if isinstance(made, LLMExtractor):
            return made
    found = ", ".join(e.name for e in recipe.extractors) or "none"
    raise GfmError(f"{path}: expected an index whose facts a language model found, found extractors: {found}")
