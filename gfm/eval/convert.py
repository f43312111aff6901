"""Official files of HotpotQA, 2WikiMultiHopQA and MuSiQue, as they are downloaded, to BEIR layout."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from gfm.eval.beir import QUERIES_FILE
from gfm.index.documents import CORPUS_FILE
from gfm.text.reading import Row, is_blank, one_line, printable, utf8_text
from gfm.types import GfmError

HOTPOTQA, TWO_WIKI, MUSIQUE = "HotpotQA", "2WikiMultiHopQA", "MuSiQue"
_EXPECTED = (
    f"a file of {HOTPOTQA} or {TWO_WIKI} (a JSON list of entries with _id, question, context, supporting_facts) or of "
    f"{MUSIQUE} (JSONL with id, question, paragraphs)"
)
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_SPLIT = re.compile(r"(?<![a-z])(?:train|dev|test)(?![a-z])", re.IGNORECASE)

Key = tuple[str, str]  # title and text of a passage


@dataclass(frozen=True, slots=True)
class Entry(Row):
    """A row of a file that may be a JSON list: then ``line`` counts its entries, from 1."""

    in_list: bool = False

    def fail(self, message: str) -> NoReturn:
        """Raise a `GfmError` that begins with the file and the line or entry."""
        place = f"{self.path}: entry {self.line}" if self.in_list else f"{self.path}:{self.line}"
        raise GfmError(f"{place}: {message}")

    def listed(self, name: str) -> list[Any]:
        """The list under ``name``; empty where the row lacks it or has null."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, list):
            self.fail(f"{name!r}: expected a list, found {value!r:.60}")
        return value or []


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a file.

    Attributes:
        id: Of the question.
        text: Of the question.
        metadata: ``answer``, ``type``, ``hops`` and what else the set tells.
        passages: Those that came with it.
        gold: Those of them that it needs; empty where the file does not tell all of them.
    """

    id: str
    text: str
    metadata: dict[str, Any]
    passages: list[Key]
    gold: list[Key]


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written.

    Attributes:
        folder: Of the set.
        format: Name of the set that the file is of.
        split: Name of the qrels file.
        counts: ``questions``, ``judged`` ones, ``passages``, and passages left out as ``repeated`` or ``blank``.
    """

    folder: Path
    format: str
    split: str
    counts: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """A report for a person."""
        c = self.counts
        unjudged = c["questions"] - c["judged"]
        lines = [
            f"format: {self.format}",
            f"{c['questions']} questions, {c['judged']} with gold passages; {c['passages']} passages, "
            f"{c['repeated']} more were equal to one of them in title and text",
        ]
        if c["blank"]:
            lines.append(f"{c['blank']} passages have no text and are left out")
        if unjudged:
            lines.append(
                f"{unjudged} questions are not judged: the file calls them unanswerable, tells no supporting passages, "
                "or names one that it does not hold or that has no text"
            )
        return "\n".join([*lines, f"set: {self.folder} ({CORPUS_FILE}, {QUERIES_FILE}, qrels/{self.split}.tsv)"])


def convert(file: str | Path, out: str | Path, split: str | None = None) -> Converted:
    """Write corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv.

    Passages equal in title and text become one document, named by its title; where several texts have one title, by
    the title and a hash of the text. A question's gold documents are its supporting passages; one whose supporting
    passages are not all there keeps no judgement. ``hops`` in its metadata is the number of gold passages, for MuSiQue
    the number of steps of its decomposition.

    Args:
        file: As downloaded and unpacked from a .zip; may be .gz; JSON list or JSONL.
        out: A new folder, or one without a set in it.
        split: Name of the qrels file; unless given ``train``, ``dev`` or ``test``, whichever the file's name has first,
            or ``test``.

    Raises:
        GfmError: Another format, a bad row (by file and line or entry), or a folder that holds a set.
    """
    file, out = Path(file), Path(out)
    for name in (CORPUS_FILE, QUERIES_FILE):
        if (out / name).exists():
            raise GfmError(f"{out / name}: is there already; name another --out")
    form, asked = read_official(file)
    named = _SPLIT.search(file.name)
    split = split or (named[0].lower() if named else "test")
    if not re.fullmatch(r"\w[\w.-]*", split):
        raise GfmError(f"--split: expected a name of letters, digits and . _ -, found {split!r}")
    given = [key for question in asked for key in question.passages]
    keys = Counter(key for key in given if key[1])
    if not keys:
        raise GfmError(f"{file}: expected questions with passages, found none")
    ids = _document_ids(list(keys))
    _write(out, split, asked, ids)
    counts = {
        "questions": len(asked),
        "judged": sum(bool(question.gold) for question in asked),
        "passages": len(keys),
        "repeated": keys.total() - len(keys),
        "blank": len(given) - keys.total(),
    }
    return Converted(out, form, split, counts)


def read_official(file: Path) -> tuple[str, list[Asked]]:
    """The format of a file, and its questions in order.

    Raises:
        GfmError: Another format, or a bad row.
    """
    form, asked = "", []
    places: dict[str, int] = {}
    for row in _rows(file):
        found = _form(row)
        if form and found != form:
            row.fail(f"expected an entry of {form} as before, found one of {found}")
        form = found
        question = _musique(row) if form == MUSIQUE else _hotpotqa(row, form)
        first = places.setdefault(question.id, row.line)
        if first != row.line:
            row.fail(f"the id {question.id!r} stands at {first} too; ids are unique: delete one of them")
        asked.append(question)
    if not asked:
        raise GfmError(f"{file}: expected {_EXPECTED}, found no entry")
    return form, asked


def _form(row: Entry) -> str:
    if "paragraphs" in row.fields:
        return MUSIQUE
    if "context" not in row.fields or "question" not in row.fields:
        row.fail(f"expected {_EXPECTED}, found the fields {', '.join(map(repr, row.fields)) or 'none'}")
    return TWO_WIKI if "evidences" in row.fields else HOTPOTQA


def _hotpotqa(row: Entry, form: str) -> Asked:
    """An entry of HotpotQA or 2WikiMultiHopQA: paragraphs are lists of sentences, gold is told by title."""
    by_title: dict[str, list[Key]] = {}
    for item in row.listed("context"):
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and _is_texts(item[1])):
            row.fail(f"'context': expected [title, [sentence, …]], found {item!r:.60}")
        key = _passage(item[0], " ".join(sentence.strip() for sentence in item[1]))
        by_title.setdefault(key[0], []).append(key)
    told = row.listed("supporting_facts")
    for fact in told:
        if not (isinstance(fact, list) and fact and isinstance(fact[0], str)):
            row.fail(f"'supporting_facts': expected [title, number of the sentence], found {fact!r:.60}")
    titles = dict.fromkeys(one_line(fact[0]) for fact in told)
    gold = [key for title in titles for key in by_title[title]] if titles.keys() <= by_title.keys() else []
    metadata = _kept(row, "answer", "type", "level")
    if form == TWO_WIKI:
        metadata["evidences"] = row.listed("evidences")
    if titles:
        metadata["hops"] = len(titles)
    passages = [key for keys in by_title.values() for key in keys]
    return Asked(_id(row, "_id", "id"), one_line(row.required("question")), metadata, passages, _whole(gold))


def _musique(row: Entry) -> Asked:
    """An entry of MuSiQue: paragraphs say themselves whether they support; the id begins with the kind of question."""
    passages: list[Key] = []
    gold: list[Key] = []
    for item in row.listed("paragraphs"):
        if not (isinstance(item, dict) and isinstance(item.get("paragraph_text"), str)):
            row.fail(f"'paragraphs': expected an object with title and paragraph_text, found {item!r:.60}")
        key = _passage(str(item.get("title") or ""), item["paragraph_text"])
        passages.append(key)
        gold += [key] if item.get("is_supporting") is True else []
    identifier = _id(row, "id", "_id")
    metadata = _kept(row, "answer", "answer_aliases", "answerable")
    metadata["type"] = identifier.split("__")[0]
    if steps := row.listed("question_decomposition"):
        metadata |= {"decomposition": steps, "hops": len(steps)}
    if row.fields.get("answerable") is False:  # its twin, which can be answered, has the same id
        identifier, gold = f"{identifier}-unanswerable", []
    return Asked(identifier, one_line(row.required("question")), metadata, passages, _whole(gold))


def _whole(gold: list[Key]) -> list[Key]:
    """Gold passages, each once; none where one has no text and so cannot be found."""
    return list(dict.fromkeys(gold)) if all(text for _, text in gold) else []


def _passage(title: str, text: str) -> Key:
    text = printable(text).strip()
    return one_line(title), "" if is_blank(text) else text


def _id(row: Entry, *names: str) -> str:
    return row.identifier(*names) or row.fail(f"expected the field {names[0]!r} with an id, found none")


def _kept(row: Entry, *names: str) -> dict[str, Any]:
    return {name: row.fields[name] for name in names if row.fields.get(name) is not None}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _document_ids(keys: list[Key]) -> dict[Key, str]:
    """Titles that name one text alone; else the title and a hash of the text, so that no order plays a part."""
    titles = Counter(title for title, _ in keys)
    out = {}
    for title, text in keys:
        digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:12]
        alone = titles[title] == 1 and not is_blank(title)
        out[title, text] = title if alone else f"{title} [{digest}]".strip()
    return out


def _rows(file: Path) -> Iterator[Entry]:
    """Objects of a JSON list, or of lines."""
    text = _text(file)
    if text.lstrip()[:1] == "[":
        yield from _list(file, text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise GfmError(f"{file}:{number}: expected one JSON object on the line; {error}") from error
            yield _entry(Entry(file, number, {}), value)


def _list(file: Path, text: str) -> Iterator[Entry]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GfmError(f"{file}: expected a JSON list, found: {error}; download it again") from error
    for number, value in enumerate(values, start=1):
        yield _entry(Entry(file, number, {}, in_list=True), value)


def _entry(place: Entry, value: Any) -> Entry:
    if not isinstance(value, dict):
        place.fail(f"expected a JSON object, found {value!r:.60}")
    return Entry(place.path, place.line, value, place.in_list)


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except EOFError as error:
        raise GfmError(f"{file}: expected a whole .gz file, found one that ends early; download it again") from error
    except OSError as error:
        raise GfmError(f"{file}: expected a readable file; {error.strerror or error}") from error
    if data.startswith(_ZIP):
        raise GfmError(f"{file}: expected {_EXPECTED}, found a .zip; unpack it and name the file inside")
    return utf8_text(data, str(file))


def _write(out: Path, split: str, asked: list[Asked], ids: dict[Key, str]) -> None:
    """The corpus last: a folder that a crash left half written is no set."""
    qrels = [f"{q.id}\t{ids[key]}\t1" for q in asked for key in q.gold]
    if qrels:
        _put(out / "qrels" / f"{split}.tsv", ["query-id\tcorpus-id\tscore", *qrels])
    _put(out / QUERIES_FILE, [_json({"_id": q.id, "text": q.text, "metadata": q.metadata}) for q in asked])
    rows = ({"_id": name, "title": title, "text": text} for (title, text), name in ids.items())
    _put(out / CORPUS_FILE, [_json(row) for row in rows])


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _put(path: Path, lines: list[str]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass", newline="\n")
        temporary.replace(path)
    except OSError as error:
        raise GfmError(f"{path}: cannot be written: {error.strerror}; name another --out") from error
