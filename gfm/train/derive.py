"""One-hop questions that a benchmark's own annotations hold: the steps of its multi-hop questions, asked one by one.

They teach a network what multi-hop questions alone do not: to be content with one passage, and to tell apart passages
about one subject, of which just one holds the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gfm.text.normalise import name_key, strip_bracket
from gfm.types import Document, Query

_REFERENCE = re.compile(r"#(\d+)")


def one_hop_questions(
    queries: Sequence[Query], qrels: Mapping[str, Mapping[str, int]], documents: Sequence[Document]
) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """The steps of annotated questions, each with the one gold document that answers it.

    A step is taken from ``metadata["decomposition"]`` (MuSiQue: questions with ``#1`` for the answer of step 1) or from
    ``metadata["evidences"]`` (2WikiMultiHopQA: triples, worded "What is the RELATION of HEAD?"). Its gold document is
    the one among the question's own that is titled by the triple's head, or that holds the step's answer; a step for
    which that is not exactly one is passed over. Equal steps of several questions are asked once.
    """
    by_id = {d.id: d for d in documents}
    found: dict[str, Query] = {}
    gold: dict[str, dict[str, int]] = {}
    for query in queries:
        own = [by_id[d] for d, score in sorted(qrels.get(query.id, {}).items()) if score > 0 and d in by_id]
        for number, (text, subject, answer) in enumerate(_steps(query)):
            holders = _holders(own, subject, answer)
            key = name_key(text)
            if len(holders) == 1 and key not in found:
                step = Query(f"{query.id}-step{number}", text, {"answer": answer, "type": "one_hop"})
                found[key] = step
                gold[step.id] = {holders[0].id: 1}
    return list(found.values()), gold


def _steps(query: Query) -> Iterator[tuple[str, str, str]]:
    """(question, subject, answer) of each step; the subject is empty where the annotation does not single it out."""
    answers: list[str] = []
    for step in query.metadata.get("decomposition", []):
        text = _REFERENCE.sub(lambda m: answers[int(m[1]) - 1] if int(m[1]) <= len(answers) else m[0], step["question"])
        answers.append(str(step["answer"]))
        if " >> " in text:
            subject, _, relation = text.partition(" >> ")
            text = f"What is the {relation.strip()} of {subject.strip()}?"
        yield text, "", answers[-1]
    for head, relation, tail in query.metadata.get("evidences", []):
        yield f"What is the {relation} of {head}?", head, tail


def _holders(documents: Sequence[Document], subject: str, answer: str) -> list[Document]:
    """Documents titled by the subject, or where that is unknown those that hold the answer."""
    if subject:
        return [d for d in documents if name_key(subject) in (name_key(d.title), name_key(strip_bracket(d.title)))]
    wanted = name_key(answer)
    return [d for d in documents if wanted and wanted in name_key(f"{d.title} {d.text}")]
