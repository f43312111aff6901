"""Names: the key under which two spellings are one entity, and the spelling that people see."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from re import compile as compile_plain

import regex as re  # the standard library's re knows neither scripts nor combining marks

# Only tags of HTML are markup: `vector<int>` and `vector<float>` are two names. Tags that end a line leave a space.
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|del|em|font|i|ins|mark|nowiki|q|ref|s|small|span|strong|sub|sup|tt|u)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK_TAG = re.compile(
    r"</?(?:blockquote|br|center|dd|div|dl|dt|h[1-6]|hr|img|li|ol|p|pre|table|tbody|td|th|thead|tr|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_CHARACTER_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BRACKET = re.compile(r"\s*(?:\([^()]*\)|\uFF08[^\uFF08\uFF09]*\uFF09)\s*$")  # the second pair is full-width
# One token is a run of letters and digits with their marks; scripts written without spaces give one character (one
# grapheme cluster, so that a Hangul syllable is one token whether it is stored composed or as letters).
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TOKEN = re.compile(rf"(?V1)(?:[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]++[\p{{M}}\p{{Cf}}]*+)++|(?=[{_UNSPACED}])\X\p{{M}}*")
_ASCII_TOKEN = compile_plain("[a-z0-9]+")  # what _TOKEN finds in folded ASCII, several times as fast
_SURROGATE = re.compile("[\ud800-\udfff]")
# The scripts in which a joiner or non-joiner changes the shape of its neighbours, and with it the word.
_JOINING = "".join(
    rf"\p{{scx={script}}}"
    for script in (
        *("Arabic", "Syriac", "Mandaic", "Nko", "Mongolian", "Adlam", "Hanifi_Rohingya"),
        *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam"),
        *("Sinhala", "Khmer", "Myanmar"),
    )
)
_JOINERS = re.compile(
    rf"(?V1)(?<=[[{_JOINING}]&&[\p{{L}}\p{{M}}]])([\u200c\u200d])[\u200c\u200d]*(?=[[{_JOINING}]&&[\p{{L}}\p{{M}}]])"
    r"|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])(\u200d)[\u200c\u200d]*(?=\p{Extended_Pictographic})"
    r"|[\u200c\u200d]+"
)


def encodable(text: str) -> str:
    """``text`` with lone surrogates, which no tokenizer takes, as U+FFFD; the length and all spans stay."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean(text: str) -> str:
    """Drop what nobody can see: control and format characters, zero-width ones among them; collapse spaces.

    A zero-width joiner or non-joiner stays where it shows: between letters of a script that joins them (Persian, Hindi)
    and between the parts of an emoji.
    """
    if text.isprintable():  # then it has no such character, and no space but " "
        return " ".join(text.split())
    kept = "".join(" " if c.isspace() else c for c in text if c.isspace() or c in "\u200c\u200d" or is_visible(c))
    return " ".join(_JOINERS.sub(_one_joiner, kept).split())


def is_visible(character: str) -> bool:
    """Whether a character is to be seen; white space is not."""
    return not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf", "Cs")


def _one_joiner(found: re.Match[str]) -> str:
    return found[1] or found[2] or ""


def plain_name(name: str) -> str:
    """A name for people to read: no markup, no invisible characters, letters composed (NFC)."""
    if "<" in name or "&" in name:
        name = _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", name))
        name = _CHARACTER_REFERENCE.sub(lambda m: html.unescape(m.group()), name)
    name = clean(name)
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def name_key(name: str) -> str:
    """The key of a name: markup dropped, NFKC, casefold, zero-width characters dropped, spaces collapsed."""
    plain = plain_name(name)
    if plain.isascii():
        return plain.lower()
    plain = unicodedata.normalize("NFKC", plain).replace("\u200c", "").replace("\u200d", "")
    return clean(unicodedata.normalize("NFKC", plain.casefold()))


def strip_bracket(title: str) -> str:
    """Drop one bracketed suffix: ``Mercury (planet)`` gives ``Mercury``; a title that is all bracket stays."""
    return _BRACKET.sub("", title) or title


def tokens(text: str) -> list[tuple[str, int, int]]:
    """Folded tokens with their character spans in ``text``."""
    if text.isascii():
        return [(m[0], *m.span()) for m in _ASCII_TOKEN.finditer(text.lower())]
    return [(_folded(m.group()), m.start(), m.end()) for m in _TOKEN.finditer(text)]


def words(text: str) -> list[str]:
    """The tokens alone."""
    return _ASCII_TOKEN.findall(text.lower()) if text.isascii() else [token for token, _, _ in tokens(text)]


_folded = lru_cache(maxsize=1 << 16)(name_key)


def statement_text(head: str, relation: str, tail: str, description: str = "") -> str:
    """The sentence of a triple that came without one.

    The names and the relation in a row; a description follows them, and stands alone where it names both ends itself.
    """
    plain = clean(f"{plain_name(head)} {relation} {plain_name(tail)}")
    more = clean(description)
    if not more:
        return plain
    key = name_key(more)
    return more if name_key(head) in key and name_key(tail) in key else f"{plain}: {more}"


def best_form(forms: Mapping[str, int]) -> str:
    """The spelling to show: mixed case before all-lower before ALL-UPPER, then the commonest, then the alphabet."""

    def looks(form: str) -> int:
        if form == form.lower() and form != form.upper():
            return 1
        return 2 if form == form.upper() and form != form.lower() and len(form) > 4 else 0

    return next(iter(forms)) if len(forms) == 1 else min(forms, key=lambda form: (looks(form), -forms[form], form))
