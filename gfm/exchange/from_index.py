"""An index as rows."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np

from gfm.exchange.tables import GraphTables
from gfm.extract.given import description_text
from gfm.graph.entity_table import EntityTable, make_aliases
from gfm.index.index import GraphIndex
from gfm.text.normalise import best_form, name_key, statement_text, strip_bracket
from gfm.types import Document, GivenEntity, GivenTriple, Passage, Section


def tables_of(index: GraphIndex, whole_documents: bool = True) -> GraphTables:
    """Documents, entities and triples of an index; building from them gives the same again.

    Args:
        index: Any index.
        whole_documents: Otherwise each passage becomes a document of its own, for formats that know no longer texts.

    Raises:
        GfmError: The index was built by a version that kept no texts of documents.
    """
    names, mentioned = _full_names(index), _mentioning(index)
    entities = _entities(index, names, mentioned)
    said = {description_text(entity) for entity in entities if entity.description}
    triples = _triples(index, names, [set(passages) for passages in mentioned], said)
    return GraphTables(_documents(index, whole_documents), entities, triples).ordered()


def entity_table(index: GraphIndex) -> EntityTable:
    """The aliases that an index was built with."""
    forms, names = index.table("aliases", "alias", "name")
    return EntityTable({}, make_aliases(zip(forms, names, strict=True)))


def forms_of(index: GraphIndex) -> dict[int, dict[str, int]]:
    """Spellings with their counts, of every entity that has another one than its name."""
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for entity, form, count in zip(*index.table("forms", "entity", "form", "count"), strict=True):
        found[entity][form] = count
    return found


def _full_names(index: GraphIndex) -> list[str]:
    """For each entity a name that means the same wherever it is read.

    That is the name shown, where its key is the entity's or where it is the title without its bracket; otherwise a
    spelling with the entity's key.
    """
    keys, names = index.table("entities", "key", "name")
    forms, taken = forms_of(index), set(keys)
    out = []
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        shown = name_key(name)
        if shown != key and (shown in taken or shown != name_key(strip_bracket(key))):
            exact = {form: n for form, n in forms.get(number, {}).items() if name_key(form) == key}
            name = best_form(exact) if exact else key
        out.append(name)
    return out


def _documents(index: GraphIndex, whole: bool) -> list[Document]:
    columns = index.table("documents", "id", "title", "text", "metadata")
    documents = [Document(i, title, text, json.loads(more)) for i, title, text, more in zip(*columns, strict=True)]
    passages = [index.passage(number) for number in range(index.graph.num_passages)]
    if whole:
        return _with_sections(documents, passages)
    by_id = {document.id: document for document in documents}
    return [Document(p.id, p.title, p.text, by_id[p.document_id].metadata) for p in passages]


def _with_sections(documents: list[Document], passages: list[Passage]) -> list[Document]:
    """The documents, and a section for each passage of those whose passages have titles of their own."""
    of: dict[str, list[Section]] = defaultdict(list)
    for p in sorted(passages, key=lambda p: (p.document_id, p.start, p.end)):
        of[p.document_id].append(Section(p.title, p.start, p.end))
    return [replace(d, sections=tuple(of[d.id])) if any(s.title != d.title for s in of[d.id]) else d for d in documents]


def _entities(index: GraphIndex, names: list[str], mentioned: list[list[int]]) -> list[GivenEntity]:
    passages = index.passage_ids
    (keys,) = index.table("entities", "key")
    number = {name_key(name): i for i, name in enumerate(names)} | {key: i for i, key in enumerate(keys)}
    table = entity_table(index)
    aliases: dict[int, set[str]] = defaultdict(set)
    for form, alias in table.aliases.items():
        for name in alias.names:
            entity = number.get(table.canonical(name_key(name)))
            if entity is not None and name_key(names[entity]) != form:
                aliases[entity].add(alias.form)
    rows = zip(names, *index.table("entities", "id", "type", "description"), strict=True)
    return [
        GivenEntity(
            name,
            identifier,
            kind,
            description,
            tuple(sorted(aliases[i])),
            tuple(passages[p] for p in mentioned[i]),
        )
        for i, (name, identifier, kind, description) in enumerate(rows)
    ]


def _mentioning(index: GraphIndex) -> list[list[int]]:
    """Passages that mention each entity, ascending."""
    graph = index.graph
    source, target = graph.edge_index
    rows = (source < graph.num_entities) & (target >= graph.num_entities)  # the inverse of mentions and subjects
    found: list[list[int]] = [[] for _ in range(graph.num_entities)]
    for entity, passage in zip(source[rows].tolist(), target[rows].tolist(), strict=True):
        found[entity].append(passage - graph.num_entities)
    return found


def _triples(index: GraphIndex, names: list[str], mentioned: list[set[int]], described: set[str]) -> list[GivenTriple]:
    """Triples with the passages that mention both ends, and a row for each fact that this leaves a passage of out."""
    graph, passages = index.graph, index.passage_ids
    relations, descriptions = index.table("triples", "relation", "description")
    covered: list[set[int]] = [set() for _ in range(graph.num_facts)]
    out = []
    ends = zip(graph.triple_head.tolist(), graph.triple_tail.tolist(), graph.triple_fact.tolist(), strict=True)
    for t, (head, tail, fact) in enumerate(ends):
        stated = [p for p in _sources(index, fact) if p in mentioned[head] and p in mentioned[tail]]
        covered[fact].update(stated)
        text, description = index.fact_texts[fact], descriptions[t]
        plain = statement_text(names[head], relations[t], names[tail], description)
        weight = float(str(np.float32(graph.triple_weight[t])))  # the shortest number that reads back the same
        out.append(
            GivenTriple(
                names[head],
                relations[t],
                names[tail],
                tuple(passages[p] for p in stated),
                None if weight == 1 else weight,
                description,
                "" if text == plain else text,
            )
        )
    for fact, text in enumerate(index.fact_texts):
        rest = [p for p in _sources(index, fact) if p not in covered[fact]]
        if rest and text not in described:
            out.append(GivenTriple("", "", "", tuple(passages[p] for p in rest), text=text))
    return out


def _sources(index: GraphIndex, fact: int) -> list[int]:
    ptr = index.graph.fact_passage_ptr
    numbers: list[int] = index.graph.fact_passage[ptr[fact] : ptr[fact + 1]].tolist()
    return numbers
