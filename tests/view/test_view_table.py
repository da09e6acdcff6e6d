"""One table, rendered three ways: every rendering escapes, aligns and leaves out by itself."""

import pytest

from trainmark.view import html as html_view
from trainmark.view import markdown
from trainmark.view.blocks import Span, Table
from trainmark.view.terminal import INDENT, shortened
from trainmark.view.terminal import table as lines_of

ANSWERS = Table(("name", "rate", ""), [("a", 9.5, None), ("bcdefg", 1234, None)], right=frozenset({1}))


def html(table: Table) -> str:
    return html_view.fragment([table])


def test_numbers_are_right_aligned_and_an_empty_column_takes_no_room():
    assert lines_of(ANSWERS) == ["name    rate", "a        9.5", "bcdefg  1234"]


def test_without_a_header_there_are_only_rows():
    assert lines_of(Table((), [("a", "b")])) == ["a  b"]
    assert lines_of(Table((), [])) == []


def test_leading_spaces_of_a_cell_stay_and_controls_are_shown_as_escapes():
    assert lines_of(Table((), [("a", "  ! b  c\x1b\n")])) == ["a    ! b c\\x1b"]


def test_markdown_escapes_what_is_not_trusted_in_header_and_cells():
    table = Table(("a|b", "_node_num_"), [("*", Span("<sup>1</sup>", "markdown"))])
    lines = markdown.table(table).splitlines()
    assert lines == [r"| a\|b | \_node_num\_ |", "| --- | --- |", r"| \* | <sup>1</sup> |"]


def test_markdown_marks_the_columns_of_numbers():
    assert markdown.table(ANSWERS).splitlines()[1:3] == ["| --- | ---: | --- |", "| a | 9.5 |  |"]


def test_html_escapes_every_cell_and_marks_the_columns_of_numbers():
    page = html(Table(("<i>", "n"), [("<script>", 2), (None, 3)], right=frozenset({1})))
    assert '<th scope="col">&lt;i&gt;</th><th scope="col" class="num">n</th>' in page
    assert '<td>&lt;script&gt;</td><td class="num">2</td>' in page
    assert "<td></td>" in page


RUNS = Table(
    ("case", "rate", "interval", "remark"),
    [
        ("pytorch-amp-b256-1n8g", "6,154.7 img/s", "[6,130.2, 6,173.9]", "rank 3 on node-b held back all"),
        ("jax-fp32", "9.5 img/s", "[9.4, 9.6]", ""),
    ],
    right=frozenset({1}),
)


def test_a_table_that_fits_is_as_it_is_without_a_width():
    widest = max(map(len, lines_of(RUNS)))
    assert lines_of(RUNS, widest) == lines_of(RUNS)


def test_in_a_narrow_terminal_the_widest_text_is_cut_and_numbers_are_whole():
    assert lines_of(RUNS, 75)[1:] == [
        "pytorch-amp-b256-1…  6,154.7 img/s  [6,130.2, 6,173.9]  rank 3 on node-b h…",
        "jax-fp32                 9.5 img/s  [9.4, 9.6]",
    ]


def test_where_cutting_is_not_enough_the_last_columns_go_below():
    assert lines_of(RUNS, 40) == [
        "case                            rate",
        "    interval            remark",
        "pytorch-amp-b256-1n8g  6,154.7 img/s",
        "    [6,130.2, 6,173.9]  rank 3 on node-…",
        "jax-fp32                   9.5 img/s",
        "    [9.4, 9.6]",
    ]


@pytest.mark.parametrize("width", [1, 20, 30, 50, 70, 100])
def test_at_any_width_every_number_is_whole_and_only_numbers_are_wider(width):
    lines = lines_of(RUNS, width)
    for number in ("6,154.7 img/s", "[6,130.2, 6,173.9]", "9.5 img/s", "[9.4, 9.6]"):
        assert sum(number in line for line in lines) == 1
    assert all(len(line) <= max(width, len(INDENT) + len("[6,130.2, 6,173.9]")) for line in lines)


def test_a_number_on_the_edge_is_left_out_rather_than_halved():
    assert shortened("slower by 12.5 %", 13) == "slower by…"
    assert shortened("slower by 12.5 %", 15) == "slower by 12.5…"


def test_a_chinese_character_takes_two_columns():
    assert lines_of(Table((), [("吞吐量", "a"), ("abcdef", "b")])) == ["吞吐量  a", "abcdef  b"]
    assert shortened("吞吐量吞吐量", 6) == "吞吐…"
