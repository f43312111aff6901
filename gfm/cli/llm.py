"""What `gfm index` tells of a language model: the plan before, what became of the passages and the price after."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfm.doors import say

if TYPE_CHECKING:
    from gfm.extract.extraction import Extractor
    from gfm.extract.llm import LLMExtractor
    from gfm.index.recipe import BuildSettings
    from gfm.text.encoder import Encoder
    from gfm.types import Document


def _of_a_model(extractors: Sequence[Extractor]) -> LLMExtractor | None:
    if not any(e.settings.startswith("llm") for e in extractors):  # spares the import
        return None
    from gfm.extract.llm import LLMExtractor

    return next(e for e in extractors if isinstance(e, LLMExtractor))


def show_plan(
    extractors: Sequence[Extractor],
    documents: Sequence[Document],
    encoder: Encoder,
    settings: BuildSettings,
    cache: Path | None,
    out: Path,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tell what will be asked: on standard error before a build, as the whole output of a dry run."""
    model = _of_a_model(extractors)
    if model is None:
        if dry_run:
            print(json.dumps({"plan": None}) if as_json else "no language model is asked: no calls, no price")
        return
    from gfm.index.builder import CACHE
    from gfm.index.plan import plan_extraction

    plan = plan_extraction(documents, encoder, settings, model, cache or out / CACHE)
    if dry_run and as_json:
        print(json.dumps({"plan": plan.as_json()}, indent=1, sort_keys=True))
    else:
        print(plan.text(), file=sys.stdout if dry_run else sys.stderr, flush=True)


def asked(extractors: Sequence[Extractor]) -> dict[str, Any]:
    """What became of the passages that a model was asked about, and what was spent; nothing where none was asked."""
    model = _of_a_model(extractors)
    return {} if model is None else model.outcome()


def show_asked(extractors: Sequence[Extractor]) -> None:
    """The same for people."""
    model = _of_a_model(extractors)
    if model is not None:
        say("\n".join(model.outcome_lines()))
