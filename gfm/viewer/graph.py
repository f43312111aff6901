"""A scored candidate subgraph as plain values: nodes, links, facts, paths, and where their words stand in the texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gfm import report
from gfm.exchange.from_index import forms_of
from gfm.graph.knowledge_graph import EDGE_KINDS, FACT, INVERSE_FACT, INVERSE_MENTION, INVERSE_SUBJECT, MIRROR, SYNONYM
from gfm.index.index import GraphIndex
from gfm.retrieve.gnn import Explained
from gfm.text.normalise import clean
from gfm.types import GfmError, Retrieval
from gfm.viewer.marks import name_pattern, name_spans, sentence_span

Row = dict[str, Any]


def explanation(index: GraphIndex, explained: Explained, against: Retrieval | None = None) -> Row:
    """Everything that explains a result, ready for `json.dumps`: what `as_json` has, ``graph`` and ``against``.

    ``graph`` has ``nodes`` (entities, then passages), ``links`` (each connection once, from head to tail or from
    passage to entity, with its better score), ``facts`` (the sentences, with their passages), ``paths`` (by passage id,
    as [link, whether it is gone from its source to its target]), and ``texts`` (by passage id; those of all passage
    nodes and returned passages, and of one source of each fact). Spans count characters of these texts.

    Args:
        index: Where it was found.
        explained: What was found.
        against: Another retriever's result for the same question.
    """
    links, link_of = _links(index, explained)
    facts = sorted({int(f) for f in links["fact"] if f >= 0})
    place = {fact: i for i, fact in enumerate(facts)}
    nodes = _nodes(index, explained)
    texts = _texts(index, explained, against, facts)
    graph = {
        "nodes": nodes,
        "links": _link_rows(index, explained, links, place, nodes, texts),
        "facts": _fact_rows(index, facts, texts),
        "paths": _paths(explained, links, link_of, nodes),
        "texts": texts,
    }
    other = None if against is None else report.as_json(against)
    return {**report.as_json(explained.result), "graph": graph, "against": other}


def _nodes(index: GraphIndex, explained: Explained) -> list[Row]:
    """Entities, then passages, as the subgraph numbers them."""
    found, n_e = explained.found, len(explained.found.entities)
    seen: list[Row] = []
    for entity, hop in zip(index.entities(found.entities), found.hop[:n_e].tolist(), strict=True):
        more = {name: value for name in ("type", "description") if (value := getattr(entity, name))}
        seen.append({"kind": "entity", "id": entity.key, "name": clean(entity.name) or entity.key, "hop": hop, **more})
    for passage in index.passages(found.passages):
        seen.append({"kind": "passage", "id": passage.id, "name": clean(passage.title) or passage.id})
    scores, kept = explained.node.tolist(), explained.kept.node.tolist()
    return [{**row, "score": s, "kept": k} for row, s, k in zip(seen, scores, kept, strict=True)]


def _links(index: GraphIndex, explained: Explained) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Each connection once, though its edges run both ways, and for each edge its link, int64[e].

    Returns:
        ``source``, ``target``, ``kind``, ``triple``, ``fact`` (-1 where there is none), ``score`` and ``kept``, each of
        one value a link; and the links of the edges.
    """
    found, graph = explained.found, index.graph
    kind, triple = found.edge_kind.astype(np.int64), graph.edge_triple[found.edge].astype(np.int64)
    source, target = found.edge_index.astype(np.int64)
    back = np.isin(kind, (INVERSE_FACT, INVERSE_MENTION, INVERSE_SUBJECT)) | ((kind == SYNONYM) & (source > target))
    ends = np.where(back, np.stack([target, source]), np.stack([source, target]))  # (2, e)
    rows = np.stack([*ends, np.where(back, MIRROR[kind], kind), triple])  # (4, e)
    distinct, link_of = np.unique(rows, axis=1, return_inverse=True)  # (4, links)
    link_of = link_of.reshape(-1)
    score, kept = np.full(distinct.shape[1], -np.inf), np.zeros(distinct.shape[1], dtype=bool)
    np.maximum.at(score, link_of, explained.edge)
    np.logical_or.at(kept, link_of, explained.kept.edge)
    names = ("source", "target", "kind", "triple")
    links = dict(zip(names, distinct, strict=True))
    fact = np.full(len(score), -1, dtype=np.int64)
    fact[links["triple"] >= 0] = graph.triple_fact[links["triple"][links["triple"] >= 0]]
    return {**links, "fact": fact, "score": score, "kept": kept}, link_of


def _link_rows(
    index: GraphIndex,
    explained: Explained,
    links: dict[str, np.ndarray],
    place: dict[int, int],
    nodes: list[Row],
    texts: dict[str, Row],
) -> list[Row]:
    stated = np.flatnonzero(links["triple"] >= 0)
    relation = dict(zip(stated.tolist(), index.triples(links["triple"][stated]), strict=True))
    patterns = _patterns(index, explained.found.entities, nodes)
    out = []
    for i, (s, t, kind, fact, score, kept) in enumerate(
        zip(*(links[name].tolist() for name in ("source", "target", "kind", "fact", "score", "kept")), strict=True)
    ):
        row: Row = {"source": s, "target": t, "kind": EDGE_KINDS[kind], "kept": kept}
        if kind == FACT:
            row |= {"relation": clean(relation[i].relation), "fact": place[fact], "score": score}
        elif kind != SYNONYM:  # a passage and the entity that it names
            row["spans"] = name_spans(patterns[t], texts[nodes[s]["id"]]["text"])
        out.append(row)
    return out


def _patterns(index: GraphIndex, entities: np.ndarray, nodes: list[Row]) -> list[Any]:
    """For each entity what finds its spellings."""
    try:
        forms = forms_of(index)
    except GfmError:  # an index of an earlier version kept no spellings: the names alone are looked for
        forms = {}
    return [name_pattern({nodes[i]["name"], *forms.get(number, ())}) for i, number in enumerate(entities.tolist())]


def _fact_rows(index: GraphIndex, facts: list[int], texts: dict[str, Row]) -> list[Row]:
    """Each sentence with its passages, and its place in those whose text is here."""
    graph, ids, sentences = index.graph, index.passage_ids, index.fact_texts
    out = []
    for fact in facts:
        sources = [ids[p] for p in graph.fact_passage[slice(*graph.fact_passage_ptr[fact : fact + 2])]]
        spans = {p: span for p in sources if p in texts and (span := sentence_span(sentences[fact], texts[p]["text"]))}
        out.append({"text": clean(sentences[fact]), "passages": sources, "spans": spans})
    return out


def _paths(
    explained: Explained, links: dict[str, np.ndarray], link_of: np.ndarray, nodes: list[Row]
) -> dict[str, list[tuple[int, bool]]]:
    source = explained.found.edge_index[0]
    return {
        nodes[node]["id"]: [(int(link_of[e]), bool(source[e] == links["source"][link_of[e]])) for e in path]
        for node, path in explained.paths.items()
    }


def _texts(index: GraphIndex, explained: Explained, against: Retrieval | None, facts: Iterable[int]) -> dict[str, Row]:
    """The passages that the page can open, by id."""
    graph = index.graph
    first = graph.fact_passage_ptr[np.fromiter(facts, dtype=np.int64)]
    numbers = np.union1d(explained.found.passages, graph.fact_passage[first])
    opened = index.passages(numbers.astype(np.int64))
    for result in (explained.result, against):
        opened += [hit.item for hit in result.passages] if result else []
    return {p.id: {"title": clean(p.title), "document_id": p.document_id, "text": p.text} for p in opened}
