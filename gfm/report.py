"""A `Retrieval` for people (text) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gfm.text.normalise import clean
from gfm.types import Context, Hit, Passage, PathStep, Retrieval

_SNIPPET = 110
_MOST_CUT = 8  # ids of what did not fit, named in the heading of a context
_ARROWS = {"fact": "—fact→", "inverse fact": "←fact—"}


def as_text(retrieval: Retrieval, context: Context | None = None) -> str:
    """What a person reads: the ranked passages, how they were reached, the context, and where the time went.

    Args:
        retrieval: From any retriever.
        context: Printed whole where it is given.
    """
    parts = [ranking(retrieval), evidence(retrieval), notes(retrieval)]
    if context is not None:
        parts.insert(2, context_text(context))
    return "\n\n".join(part for part in parts if part)


def ranking(retrieval: Retrieval, gold: Sequence[str] = ()) -> str:
    """One block a passage: rank, score, title and id, and the beginning of its text.

    Args:
        retrieval: What was found.
        gold: Ids of documents to mark with a star.
    """
    if not retrieval.passages:
        return f"No passage found for: {retrieval.query.text}"
    head = f"Passages (score: {retrieval.score_unit})"
    return "\n".join([head, *(_passage(hit, hit.item.document_id in gold) for hit in retrieval.passages)])


def _passage(hit: Hit[Passage], marked: bool) -> str:
    name = f"{clean(hit.item.title)} [{hit.item.id}]" if clean(hit.item.title) else f"[{hit.item.id}]"
    text = clean(hit.item.text)
    short = text if len(text) <= _SNIPPET else f"{text[:_SNIPPET].rstrip()}…"
    return f"{hit.rank:>3}. {hit.score:.4f}  {name}{' *' if marked else ''}\n     {short}"


def evidence(retrieval: Retrieval, only: Sequence[str] = ()) -> str:
    """The evidence paths of the passages, best first; empty where the retriever has none.

    Args:
        retrieval: What was found.
        only: Documents whose passages are shown; all unless given.
    """
    shown = [
        (hit, retrieval.paths[hit.item.id])
        for hit in retrieval.passages
        if retrieval.paths.get(hit.item.id) and (not only or hit.item.document_id in only)
    ]
    if not shown:
        return ""
    return "\n".join(["Evidence paths", *(line for hit, path in shown for line in _path(hit, path))])


def contribution(hit: Hit[PathStep]) -> str:
    """A link and what it adds to a score, on one line, and under it the sentence of a fact."""
    step = hit.item
    chain = f"{hit.score:+.2f}  {_end(step, step.source)} {_ARROWS.get(step.kind, f'—{step.kind}→')} "
    return f"  {chain}{_end(step, step.target)}" + (f"\n         {clean(step.text)}" if step.text else "")


def _path(hit: Hit[Passage], path: Sequence[PathStep]) -> Iterator[str]:
    """The chain on one line, then each fact of it with the passage that states it."""
    chain = "".join(f" {_ARROWS.get(s.kind, f'—{s.kind}→')} {_end(s, s.target)}" for s in path)
    yield f"{hit.rank:>3}. {_end(path[0], path[0].source)}{chain}"
    for step in path:
        if step.text:
            yield f"     “{clean(step.text)}” [{step.passage_id}]"


def _end(step: PathStep, name: str) -> str:
    """A node of a path: an entity by its name, a passage by its id in brackets."""
    is_passage = step.kind not in _ARROWS and name == step.passage_id
    return f"[{name}]" if is_passage else clean(name)


def context_text(context: Context) -> str:
    """The context under a heading with its size and what was cut."""
    if not context.text:
        return "Context: empty (nothing was found, or the first passage alone is over the budget)"
    shown = ", ".join(context.cut[:_MOST_CUT]) + (", …" if len(context.cut) > _MOST_CUT else "")
    cut = f"; cut: {len(context.cut)} ({shown})" if context.cut else ""
    return f"Context ({context.num_tokens} tokens{cut})\n{context.text}"


def notes(retrieval: Retrieval) -> str:
    """A fallback by its name, the reach of the subgraph, and the milliseconds by stage."""
    lines = []
    if retrieval.trace.get("fallback"):
        lines.append(f"Fallback: {retrieval.trace['fallback']} (the graph told nothing about this question)")
    if "evidence" in retrieval.trace:
        score, least = retrieval.trace["evidence"], retrieval.trace["least_evidence"]
        verdict = "" if score >= least else f", below {least:.2f}: nothing here has to do with the question"
        lines.append(f"Evidence: {score:.2f} (cosine of the question and the best passage){verdict}")
    if retrieval.trace.get("reach"):
        lines.append(f"Reach: {retrieval.trace['reach']}")
    stages = ", ".join(f"{name} {1000 * s:.1f}" for name, s in retrieval.seconds.items())
    lines.append(f"Milliseconds: {stages}")
    return "\n".join(lines)


def as_json(retrieval: Retrieval, context: Context | None = None) -> dict[str, Any]:
    """Everything that a result holds, ready for `json.dumps`; under ``context`` the context where it is given."""
    query = retrieval.query
    row = {
        "query": {"id": query.id, "text": query.text, "metadata": query.metadata},
        "score_unit": retrieval.score_unit,
        "passages": [_row(hit) for hit in retrieval.passages],
        "entities": [_row(hit) for hit in retrieval.entities],
        "facts": [_row(hit) for hit in retrieval.triples],
        "paths": {
            passage: [{name: getattr(step, name) for name in PathStep.__slots__} for step in path]
            for passage, path in retrieval.paths.items()
        },
        "trace": retrieval.trace,
        "seconds": retrieval.seconds,
    }
    return row if context is None else {**row, "context": context_json(context)}


def _row(hit: Hit[Any]) -> dict[str, Any]:
    """Rank and score, and the fields of the item; type and description of an entity only where somebody gave them."""
    fields = {name: getattr(hit.item, name) for name in hit.item.__slots__}
    shown = {name: value for name, value in fields.items() if value or name not in ("type", "description")}
    return {"rank": hit.rank, "score": hit.score, **shown}


def context_json(context: Context) -> dict[str, Any]:
    """A context, ready for `json.dumps`."""
    return {
        "text": context.text,
        "num_tokens": context.num_tokens,
        "cut": context.cut,
        "sources": [{name: getattr(source, name) for name in source.__slots__} for source in context.sources],
    }
