"""Blocks in each medium: what is shown where, and that no text becomes markup."""

import pytest

from trainmark.view import html, markdown, terminal
from trainmark.view.blocks import (
    Items,
    Page,
    Section,
    Sentence,
    Span,
    Table,
    only,
    only_late,
    shown_in,
    without,
)

LINES = Table(("name", "n"), [(str(number), number) for number in range(9)], frozenset({1}))


def test_a_medium_shows_what_is_meant_for_it():
    blocks = [only("html", Sentence("a")), without("html", Sentence("b")), Section("", [Sentence("c")])]
    assert [block.text for block in shown_in(blocks, "html")] == ["a", "c"]
    assert terminal.lines(blocks) == ["b", "c"]
    assert markdown.fragment(blocks) == "b\n\nc"


def test_blocks_of_another_medium_are_not_made():
    page = Page("", [only_late("html", lambda: 1 / 0), Sentence("here")])
    assert terminal.render(page, "zh") == "here\n"
    with pytest.raises(ZeroDivisionError):
        html.render(page)


def test_sentences_follow_one_another_and_an_empty_line_lies_around_a_table():
    table = Table(("a",), [("b",)])
    shown = terminal.lines([Sentence("one"), Items(["two"]), table, Sentence("above", "caption"), table])
    assert shown == ["one", "two", "", "a", "b", "", "above", "a", "b"]


def test_what_is_in_a_section_of_a_section_is_indented():
    inner = Section("inner", [Table(("a",), [("b",)])])
    assert terminal.lines([Section("outer", [inner])]) == ["outer", "inner", "  a", "  b"]


def test_headings_go_down_with_the_sections():
    blocks = [Section("outer", [Section("", [Section("inner", [Sentence("text")])], look="cards")])]
    assert markdown.fragment(blocks) == "## outer\n\n### inner\n\ntext"
    page = html.fragment(blocks)
    assert "<h2>outer</h2>" in page and ">inner</h3>" in page and '<div class="cards">' in page


@pytest.mark.parametrize("medium", ["terminal", "markdown"])
def test_of_a_long_table_a_medium_shows_as_many_rows_as_the_table_says(medium):
    table = Table(LINES.header, LINES.rows, LINES.right, most={medium: 5})
    render = {"terminal": terminal.render, "markdown": markdown.render}[medium]
    shown = render(Page("", [table]))
    assert "… and 4 more" in shown and "5" not in shown


def test_a_text_is_no_markup_and_a_link_leads_where_it_says():
    text = (Span("<b>", "sub", link='#"x"'), "<i>|", Span("a*b", "code"))
    assert html.inline(text) == (
        '<a href="#&#34;x&#34;"><span class="sub">&lt;b&gt;</span></a> &lt;i&gt;| <code>a*b</code>'
    )
    assert markdown.inline(text) == "&lt;b&gt; &lt;i&gt;\\| `a*b`"
    assert terminal.sentence(text) == ["<b> <i>| a*b"]


def test_a_long_sentence_is_broken_between_words_and_keeps_intervals_whole():
    assert terminal.sentence("throughput is ×0.970 [0.962, 0.976] of it", 26) == [
        "throughput is ×0.970",
        "  [0.962, 0.976] of it",
    ]
