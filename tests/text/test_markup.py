from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfm.text.markup import Markup, read_html, read_markdown
from gfm.text.reading import printable


def parts(found: Markup) -> list[tuple[str, str]]:
    """Title and text of each section."""
    return [(s.title, found.text[s.start : s.end]) for s in found.sections]


def test_headings_make_sections_and_are_no_part_of_them() -> None:
    found = read_markdown(
        "Before.\n\n# Tarn Mill\n\nBuilt in 1911.\n\n## Owners\n\nOrla Venn.\n\n### Later (1920)\n\nAbel Works.\n\n"
        "Setext\n------\n\nMore.\n\n# Port Isk\n\nA port.\n",
        "notes",
    )
    assert found.title == "Tarn Mill"
    assert parts(found) == [
        ("Tarn Mill", "Before."),
        ("Tarn Mill", "Built in 1911."),
        ("Tarn Mill (Owners)", "Orla Venn."),
        ("Tarn Mill (Owners: Later [1920])", "Abel Works."),
        ("Tarn Mill (Setext)", "More."),
        ("Port Isk", "A port."),
    ]
    assert found.text.startswith("Before.\n\nTarn Mill\n\nBuilt in 1911.\n\nOwners\n\n")


def test_without_headings_there_are_no_sections() -> None:
    assert read_markdown("one\n\ntwo", "notes") == Markup("notes", "one\n\ntwo", ())
    assert read_markdown("## Part\n\none", "notes").title == "notes"
    assert parts(read_markdown("## Part\n\none", "notes")) == [("notes (Part)", "one")]


def test_a_heading_over_nothing_is_all_that_is_said_there() -> None:
    found = read_markdown("# Tarn Mill\n\n## It burned in 1920\n\n## Rebuilt\n\nBy Orla Venn.\n\n# Last", "notes")
    assert parts(found) == [
        ("Tarn Mill (It burned in 1920)", "It burned in 1920"),
        ("Tarn Mill (Rebuilt)", "By Orla Venn."),
        ("Last", "Last"),
    ]


def test_markdown_is_read_as_it_is_seen() -> None:
    text = (
        '**Orla Venn** built\r\n[Tarn Mill](mill.md "a mill") &amp; left.\n\n- one\n- two\n\n> quoted\n\n'
        "| name | born |\n|---|---|\n| Orla | Port Isk |\n| | |\n\n"
        "```python\ndef f():\n\n    return `1`  # no heading\n```\n"
        "<!-- hidden --><span>kept</span><br>below"
    )
    assert read_markdown(text, "").text.split("\n\n") == [
        "Orla Venn built Tarn Mill & left.",
        "one",
        "two",
        "quoted",
        "name | born",
        "Orla | Port Isk",
        "def f():",
        "    return `1`  # no heading",
        "kept\nbelow",
    ]


@pytest.mark.parametrize("end", ["---", "..."])
def test_front_matter_is_no_text(end: str) -> None:
    found = read_markdown(f"---\ntitle: 'The mill'\ntags: [a]\n{end}\n\nBuilt in 1911.", "notes")
    assert (found.title, found.text, found.front_matter) == (
        "The mill",
        "Built in 1911.",
        "title: 'The mill'\ntags: [a]",
    )
    assert read_markdown("text\n\n---\n\nmore", "notes").text == "text\n\nmore"


PAGE = """<!DOCTYPE html><html><head><title>Halder Sea - Port Isk Online</title><style>p {}</style>
<script>document.write("<p>script</p>")</script></head><body>
<nav><a href="/">menu</a></nav><div role="navigation">menu</div><header><h1>Halder   Sea</h1></header><!-- comment -->
<p>It freezes
each&nbsp;winter.<p>Second<br>line &lt;b&gt; <b>b</b>old<div hidden>hidden</div>
<span style="display: none">hidden</span>
<h2>Depth</h2><table><tr><th>metres</th><td>90</td></tr><tr><td></td></tr></table>
<pre>  a
<span><i>b</i></span>
    c</pre><noscript>switch it on</noscript><footer>all rights</footer></body></html>"""


def test_html_is_read_as_it_is_seen() -> None:
    found = read_html(PAGE, "page")
    assert found.title == "Halder Sea"
    assert parts(found) == [
        ("Halder Sea", "It freezes each winter.\n\nSecond\nline <b> bold"),
        ("Halder Sea (Depth)", "metres | 90\n\n  a\nb\n    c"),
    ]


def test_the_title_of_a_page_without_a_heading() -> None:
    assert read_html("<title>The\n mill</title><p>x", "page").title == "The mill"
    assert read_html("<p>x", "page").title == "page"


def test_the_main_part_alone_is_read_where_there_is_one() -> None:
    page = "<div>menu</div><main><p>text<footer>author</footer></main><p>advertisement"
    assert read_html(page, "").text == "text\n\nauthor"
    assert read_html("<main> </main><p>text", "").text == "text"


@pytest.mark.parametrize(
    "page",
    ["", "<", "</p>", "<p", "<![CDATA[x", "http://x.org", "notes.txt", "<?xml version='1.0'?><p>x", "&#0;&#1;&bogus;"],
)
def test_broken_pages_are_read_without_a_word(page: str) -> None:
    found = read_html(page, "t")
    assert found.text == printable(found.text).strip()


def test_deep_and_wide_pages_take_linear_time() -> None:
    start = time.process_time()
    assert read_html("<div>" * 5000 + "deep", "").text == "deep"
    assert len(read_html("<p>wide<pre>x" * 3000, "").text.split("\n\n")) == 6000
    assert time.process_time() - start < 10


LINES = ["# A", "## B", "text *x*", "", "- item", "    code", "| a | b |", "<p>", "`"]


@given(st.lists(st.sampled_from(LINES)))
def test_sections_stand_in_order_and_leave_out_headings_alone(lines: list[str]) -> None:
    found = read_markdown("\n".join(lines), "t")
    end = 0
    for section in found.sections:
        assert end <= section.start < section.end <= len(found.text)
        assert found.text[section.start : section.end].strip()
        assert set(found.text[end : section.start].split()) <= {"A", "B"}
        end = section.end
    assert not found.sections or end == len(found.text)
