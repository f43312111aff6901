"""A result as text and as JSON, on one made by hand."""

from __future__ import annotations

import json

from gfm.report import as_json, as_text, context_json, context_text, evidence, notes, ranking
from gfm.types import Context, Entity, Hit, Passage, PathStep, Query, Retrieval, Source, Triple

MILL = Passage("p1", "p1", "Tarn Mill", "Tarn Mill was built by Orla Venn in 1911.", 0, 41)
LONG = Passage("p2#1", "p2", "", "word " * 60, 10, 310)
FACT = Triple("Tarn Mill", "built by", "Orla Venn", "Tarn Mill was built by Orla Venn.", 1.0, ("p1",))


def result(**changes: object) -> Retrieval:
    fields: dict[str, object] = {
        "query": Query("q1", "Who built Tarn Mill?", {"type": "one_hop"}),
        "entities": [Hit(Entity("tarn mill", "Tarn Mill"), 0.9, 1)],
        "triples": [Hit(FACT, 0.8, 1)],
        "passages": [Hit(MILL, 0.75, 1), Hit(LONG, 0.25, 2)],
        "score_unit": "relevance",
        "paths": {
            "p1": [
                PathStep("Orla Venn", "inverse fact", "Tarn Mill was\nbuilt by Orla Venn.", "Tarn Mill", "p1"),
                PathStep("Tarn Mill", "mention", "", "p1", "p1"),
            ],
            "p2#1": [PathStep("Orla Venn", "synonym", "", "O. Venn", "")],
        },
        "trace": {"fallback": None, "reach": "2 of 5 passages, 3 of 5 entities"},
        "seconds": {"encode": 0.0125, "network": 0.002},
    }
    return Retrieval(**{**fields, **changes})  # type: ignore[arg-type]


def test_ranking_shows_rank_score_title_id_and_the_beginning_of_the_text() -> None:
    lines = ranking(result(), gold=["p2"]).split("\n")
    assert lines[0] == "Passages (score: relevance)"
    assert lines[1:3] == ["  1. 0.7500  Tarn Mill [p1]", "     Tarn Mill was built by Orla Venn in 1911."]
    assert lines[3] == "  2. 0.2500  [p2#1] *"
    assert lines[4].endswith("word…")
    assert len(lines[4]) <= 5 + 110 + 1


def test_evidence_is_a_chain_with_the_sentence_and_its_passage() -> None:
    assert evidence(result()).split("\n") == [
        "Evidence paths",
        "  1. Orla Venn ←fact— Tarn Mill —mention→ [p1]",
        "     “Tarn Mill was built by Orla Venn.” [p1]",
        "  2. Orla Venn —synonym→ O. Venn",
    ]


def test_evidence_keeps_to_the_documents_asked_for() -> None:
    assert "  1." not in evidence(result(), only=["p2"])
    assert "  2." in evidence(result(), only=["p2"])
    assert evidence(result(paths={})) == ""
    assert evidence(result(paths={"p1": []})) == ""


def test_notes_name_a_fallback_the_reach_and_the_time() -> None:
    assert notes(result()) == "Reach: 2 of 5 passages, 3 of 5 entities\nMilliseconds: encode 12.5, network 2.0"
    assert notes(result(trace={"fallback": "dense"})).startswith("Fallback: dense")


def test_a_result_without_passages_says_so() -> None:
    text = as_text(result(passages=[], paths={}), Context("", [], 0, []))
    assert text.startswith("No passage found for: Who built Tarn Mill?")
    assert "Context: empty" in text


def test_text_has_its_parts_in_reading_order() -> None:
    context = Context("<context>\nx\n</context>", [], 9, ["F2", "p7"])
    text = as_text(result(), context)
    places = [
        text.index(part) for part in ("Passages (", "Evidence paths", "Context (9 tokens; cut: 2 (F2, p7))", "Reach:")
    ]
    assert places == sorted(places)
    assert context_text(Context("x", [], 1, [])) == "Context (1 tokens)\nx"


def test_json_holds_everything_and_survives_a_round_trip() -> None:
    row = json.loads(json.dumps(as_json(result()), allow_nan=False))
    assert row["query"] == {"id": "q1", "text": "Who built Tarn Mill?", "metadata": {"type": "one_hop"}}
    assert row["passages"][0] == {
        "rank": 1,
        "score": 0.75,
        "id": "p1",
        "document_id": "p1",
        "title": "Tarn Mill",
        "text": "Tarn Mill was built by Orla Venn in 1911.",
        "start": 0,
        "end": 41,
    }
    assert row["entities"] == [{"rank": 1, "score": 0.9, "key": "tarn mill", "name": "Tarn Mill"}]
    assert row["facts"][0]["passage_ids"] == ["p1"]
    assert row["facts"][0]["relation"] == "built by"
    assert row["paths"]["p1"][1] == {
        "source": "Tarn Mill",
        "kind": "mention",
        "text": "",
        "target": "p1",
        "passage_id": "p1",
    }
    assert row["trace"]["reach"] == "2 of 5 passages, 3 of 5 entities"
    assert row["seconds"] == {"encode": 0.0125, "network": 0.002}


def test_context_json_has_the_sources_with_their_spans() -> None:
    row = context_json(Context("x", [Source(1, "p1", "p1", 0, 41)], 1, ["p2"]))
    assert row["sources"] == [{"n": 1, "passage_id": "p1", "document_id": "p1", "start": 0, "end": 41}]
    assert row["cut"] == ["p2"]
