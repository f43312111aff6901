"""The walk against a second implementation, as plain as can be: lists, sets and loops, for any graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfm.compat import band_quota as module
from gfm.compat.band_quota import BandQuotaRetriever

World = Callable[..., SimpleNamespace]
Row = tuple[int, str, str, float, float]  # number, head, tail, distance, weight


def plain_search(
    rows: list[Row], walk: tuple[set[int], set[str]], rank_n: int, band: Any, limits: tuple[int, int], degree: bool
) -> dict[int, float]:
    triples, entities = walk
    kept = []
    for row in sorted(rows, key=lambda r: (r[3], r[0]))[: limits[0] * limits[1]]:
        number, head, _, distance, weight = row
        fits = band is None or band[0] <= distance <= band[1]
        if weight >= 0 and number not in triples and fits and (not entities or head in entities):
            kept.append(row)
    incoming, outgoing = Counter(r[2] for r in rows), Counter(r[1] for r in rows)
    scored = []
    for number, head, tail, distance, weight in kept[: limits[0]]:
        steps = [min(weight, 100), min(max(weight - 100, 0), 900), min(max(weight - 1000, 0), 9000)]
        worth = steps[0] * 0.01 + steps[1] * 0.001 + steps[2] * 0.0001 + max(weight - 10000, 0) * 0.00001
        extra = (incoming[head] - outgoing[tail]) * 0.001 if degree else 0.0
        scored.append((number, head, tail, 1.0 / max(distance, 1e-6) + worth + extra))
    if len(scored) > rank_n:
        scored = sorted(scored, key=lambda r: -round(r[3], 9))[:rank_n]
    for number, head, tail, _ in scored:
        triples.add(number)
        entities.update((head, tail))
    return {r[0]: r[3] for r in scored}


def plain_walk(rows: list[Row], depth: int, limits: tuple[int, int], degree: bool) -> dict[int, float]:
    walk: tuple[set[int], set[str]] = (set(), set())
    out = plain_search(rows, walk, 10, None, limits, degree)
    for _ in range(depth - 1):
        a, p = 0, 0.0
        for (lo, hi), r in {(0.0, 0.25): 1.0, (0.25, 0.35): 0.7, (0.35, 0.45): 0.2, (0.45, 0.55): 0.1}.items():
            rem = 10 - a
            e = int((r + p) * 10 - a) if p * 10 > a else int(r * 10)
            e = min(e, rem)
            if rem <= 0:
                break
            found = plain_search(rows, walk, e, (lo, hi), limits, degree)
            out |= found
            a += len(found)
            p += r if r != 1 else 0
    return out


DISTANCES = st.sampled_from([0.0, 0.1, 0.25, 0.26, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.56, 0.9, 1.3])
LINKS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), DISTANCES, st.sampled_from([-1.0, 0.0, 1.0, 1.0, 150.0, 5000.0])),
    min_size=1,
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(LINKS, st.integers(0, 4), st.booleans(), st.sampled_from([(100, 10), (12, 3), (4, 2)]))
def test_it_finds_what_the_plain_implementation_finds(
    world: World, links: list[tuple[int, int, float, float]], depth: int, degree: bool, limits: tuple[int, int]
) -> None:
    rows = [(i, f"E{h}", f"E{t}", d, w) for i, (h, t, d, w) in enumerate(x for x in links if x[0] != x[1])]
    if not rows:
        return
    index = world(*[row[1:4] for row in rows], weights=[row[4] for row in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LIMIT", limits[0])
        patch.setattr(module, "OVERSAMPLE", limits[1])
        result = BandQuotaRetriever(index, depth=depth, with_degree=degree).retrieve("?!")
    scores = {int(hit.item.relation[1:]): hit.score for hit in result.triples}
    assert scores == {n: pytest.approx(s, rel=1e-6) for n, s in plain_walk(rows, depth, limits, degree).items()}
    assert [h.score for h in result.triples] == sorted((h.score for h in result.triples), reverse=True)
    assert {h.item.name for h in result.entities} >= {row[k] for row in rows for k in (1, 2) if row[0] in scores}
