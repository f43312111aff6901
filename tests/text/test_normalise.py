from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.normalise import best_form, clean, encodable, name_key, plain_name, strip_bracket, tokens

JOINERS = "\u200c\u200d"


def words(text: str) -> list[str]:
    return [token for token, _, _ in tokens(text)]


@pytest.mark.parametrize(
    "form",
    [
        "Café Noor",
        "Cafe\u0301 Noor",
        "ＣＡＦÉ\u3000ＮＯＯＲ",
        "Café\u200b Noor",
        "<p>Café Noor</p>",
        "  café \t\n noor ",
        "CAFÉ NOOR",
        "Caf&eacute; Noor",
        "Café<br/>Noor",
        "Cafe\u200b\u0301 Noor",
        "\ufeffCafé\x00 Noor\x07",
    ],
)
def test_every_form_of_a_name_has_one_key(form: str) -> None:
    assert name_key(form) == "café noor"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Electrons", "electrons"),
        ("TARN MILL", "Tarn Mill"),
        ("Straße", "STRASSE"),
        ("Bell\x07 Tower", "Bell Tower"),
        ("ﬁnch", "finch"),
        ("H<sub>2</sub>O", "H2O"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("हिन्दी\u200d", "हिन्दी"),
    ],
)
def test_spellings_of_one_name_meet(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vector<int>", "vector<float>"),
        ("Mercury (planet)", "Mercury (element)"),
        ("C", "C++"),
        ("Cafe Noor", "Café Noor"),
        ("दिल्ली", "दिल्ल"),
        ("李明", "李鸣"),
        ("AT&T", "AT T"),
        ("Q&notA", "Q¬A"),
    ],
)
def test_different_names_stay_apart(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize("name", ["", " \t\n", "\u200b\u200d", "<p></p>", "\x00\x07"])
def test_a_name_of_nothing_visible_has_no_key(name: str) -> None:
    assert name_key(name) == ""


def test_clean_drops_control_and_format_characters_and_keeps_the_rest() -> None:
    assert clean("a\x00b\x07c  d\u2028e\u200bf\u00adg 🚀é\ud800") == "abc d efg 🚀é"


@given(st.text())
def test_clean_is_printable_and_done_once(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert not {unicodedata.category(c) for c in once if c not in JOINERS} & {"Cc", "Cf", "Cs"}
    assert once == once.strip()
    assert "  " not in once


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: without it, another word
        "क्\u200dष",
        "ශ්\u200dරී",
        "👨\u200d👩\u200d👧",
        "👩🏽\u200d🚀",
        "🏳\ufe0f\u200d🌈",
    ],
)
def test_a_joiner_stays_where_it_joins_and_no_key_has_it(text: str) -> None:
    assert clean(f"\u200c{text}\u200d  {text}\u200b") == f"{text} {text}"
    assert plain_name(text) == text
    assert not set(name_key(text)) & set(JOINERS)
    assert name_key(text) == name_key(text.replace("\u200c", "").replace("\u200d", ""))


@pytest.mark.parametrize(
    "text", ["Caf\u200cé", "李\u200d明", "a\u200d🚀", "🚀\u200c🚀", "می\u200c خواهم", "\u200dx", "x\u200c"]
)
def test_a_joiner_goes_where_it_joins_nothing(text: str) -> None:
    assert clean(text) == text.replace("\u200c", "").replace("\u200d", "")


def test_several_joiners_are_one() -> None:
    assert clean("می\u200c\u200b\u200d\u200cخواهم") == "می\u200cخواهم"


@given(st.text(st.one_of(st.characters(exclude_characters="<&"), st.sampled_from("می👨\u200c\u200d\u200b "))))
def test_a_key_is_blind_to_joiners(name: str) -> None:
    assert name_key(name.replace("\u200c", "").replace("\u200d", "")) == name_key(name)


@given(st.text(st.characters(exclude_characters="\u200c\u200d")))
def test_text_without_joiners_is_cleaned_as_if_there_were_none(text: str) -> None:
    kept = (" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    assert clean(text) == " ".join("".join(kept).split())


@given(st.text())
def test_a_key_is_clean_and_blind_to_invisible_characters(name: str) -> None:
    key = name_key(name)
    assert clean(key) == key
    assert name_key(f" \u200b{name}\u200b ") == key


@given(st.text(st.characters(max_codepoint=127, exclude_characters="<&")))
def test_the_key_of_ascii_is_its_lower_case(name: str) -> None:
    assert name_key(name) == name_key(name_key(name)) == clean(name.lower())


def test_plain_name_is_what_people_read() -> None:
    assert plain_name("<b>Sport &amp; Leisure</b>\u200b") == "Sport & Leisure"
    assert plain_name("Cafe\u0301") == "Café"
    assert plain_name("ＣＡＦÉ") == "ＣＡＦÉ"  # full-width letters are the writer's choice
    assert plain_name("R&D <3") == "R&D <3"


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("Mercury (planet)", "Mercury"),
        ("水星（行星）", "水星"),
        ("(untitled)", "(untitled)"),
        ("A (b) c", "A (b) c"),
        ("A (b) (c)", "A (b)"),
        ("", ""),
    ],
)
def test_strip_bracket(title: str, bare: str) -> None:
    assert strip_bracket(title) == bare


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tarn Mill's 1911", ["tarn", "mill", "s", "1911"]),
        ("李明的书店", ["李", "明", "的", "书", "店"]),
        ("مدينة الرياض", ["مدينة", "الرياض"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("한국", ["한", "국"]),
        (unicodedata.normalize("NFD", "한국"), ["한", "국"]),
        ("Straße ＣＡＦÉ", ["strasse", "café"]),
        ("Cafe\u0301!", ["café"]),
        ("Bell\u200bs 日本x", ["bells", "日", "本", "x"]),
        ("?! … 🚀", []),
    ],
)
def test_tokens_of_many_scripts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_thai_syllables_keep_their_marks() -> None:
    assert "".join(words("น้ำตก")) == name_key("น้ำตก")
    assert len(words("น้ำตก")) == 3


@given(st.text())
def test_spans_of_tokens_slice_to_the_text(text: str) -> None:
    end = 0
    for token, start, stop in tokens(text):
        assert end <= start < stop
        assert name_key(text[start:stop]) == token
        end = stop


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_takes_the_same_road_as_all_text(text: str) -> None:
    assert tokens(f"{text} é")[:-1] == tokens(text)


@given(st.text(st.characters(codec="utf-16", exclude_categories=[])))
def test_encodable_keeps_length(text: str) -> None:
    assert len(encodable(text)) == len(text)


def test_encodable_replaces_lone_surrogates() -> None:
    assert encodable("a\ud800b🚀") == "a\ufffdb🚀"


@pytest.mark.parametrize(
    ("forms", "best"),
    [
        ({"TARN MILL": 9, "Tarn Mill": 1, "tarn mill": 5}, "Tarn Mill"),
        ({"ELECTRONS": 9, "electrons": 1}, "electrons"),
        ({"NASA": 3, "Nasa": 1}, "NASA"),
        ({"Nasa": 3, "NASA": 3}, "NASA"),
        ({"b": 2, "a": 2}, "a"),
        ({"李明": 1}, "李明"),
    ],
)
def test_best_form(forms: dict[str, int], best: str) -> None:
    assert best_form(forms) == best
    assert best_form(dict(reversed(forms.items()))) == best
