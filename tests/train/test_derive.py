from __future__ import annotations

from gfm.train.derive import one_hop_questions
from gfm.types import Document, Query

DOCUMENTS = [
    Document("m", "Tarn Mill (watermill)", "Tarn Mill was built by Orla Venn in 1911."),
    Document("v", "Orla Venn", "She was born in Port Isk."),
    Document("x", "Port Isk", "Port Isk lies on the Halder Sea."),
]
QRELS = {"q": {"m": 1, "v": 1}}


def test_steps_of_a_decomposition_name_earlier_answers() -> None:
    steps = [
        {"question": "Who built Tarn Mill?", "answer": "Orla Venn"},
        {"question": "#1 >> place of birth", "answer": "Port Isk"},
    ]
    # "Orla Venn" is held by both documents (a title counts), so only the second step has exactly one.
    asked, gold = one_hop_questions([Query("q", "?", {"decomposition": steps})], QRELS, DOCUMENTS)
    assert [q.text for q in asked] == ["What is the place of birth of Orla Venn?"]
    assert gold == {asked[0].id: {"v": 1}}


def test_steps_of_evidences_go_to_the_document_on_their_head() -> None:
    evidences = [["Tarn Mill", "builder", "Orla Venn"], ["Orla Venn", "place of birth", "Port Isk"]]
    queries = [Query("q", "?", {"evidences": evidences}), Query("again", "?", {"evidences": evidences})]
    asked, gold = one_hop_questions(queries, {**QRELS, "again": QRELS["q"]}, DOCUMENTS)
    assert [(q.text, list(gold[q.id])) for q in asked] == [
        ("What is the builder of Tarn Mill?", ["m"]),
        ("What is the place of birth of Orla Venn?", ["v"]),
    ]


def test_only_gold_documents_of_the_question_count_and_nothing_comes_of_nothing() -> None:
    evidences = [["Port Isk", "sea", "Halder Sea"]]
    assert one_hop_questions([Query("q", "?", {"evidences": evidences})], QRELS, DOCUMENTS) == ([], {})
    assert one_hop_questions([Query("q", "?"), Query("none", "?")], QRELS, DOCUMENTS) == ([], {})
