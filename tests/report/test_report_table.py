"""One table, rendered three ways: every rendering escapes, aligns and leaves out by itself."""

from trainmark.report.format import templating
from trainmark.report.format.table import Table
from trainmark.visible import one_line

ANSWERS = Table(("name", "rate", ""), [("a", 9.5, None), ("bcdefg", 1234, None)], right=frozenset({1}))


def html(table: Table) -> str:
    environment = templating.environment("en", html=True)
    environment.filters.update(one_line=one_line)
    return environment.get_template("table.html.j2").module.show(table)


def test_numbers_are_right_aligned_and_an_empty_column_takes_no_room():
    assert ANSWERS.lines() == ["name    rate", "a        9.5", "bcdefg  1234"]


def test_without_a_header_there_are_only_rows():
    assert Table((), [("a", "b")]).lines() == ["a  b"]
    assert Table((), []).lines() == []


def test_leading_spaces_of_a_cell_stay_and_controls_are_shown_as_escapes():
    assert Table((), [("a", "  ! b  c\x1b\n")]).lines() == ["a    ! b c\\x1b"]


def test_markdown_escapes_what_is_not_trusted_in_header_and_cells():
    table = Table(("a|b", "node_num"), [("*", "<sup>1</sup>")], trusted=frozenset({1}))
    assert table.markdown().splitlines() == [r"| a\|b | node_num |", "| --- | --- |", r"| \* | <sup>1</sup> |"]


def test_markdown_marks_the_columns_of_numbers():
    assert ANSWERS.markdown().splitlines()[1:3] == ["| --- | ---: | --- |", "| a | 9.5 |  |"]


def test_html_escapes_every_cell_and_marks_the_columns_of_numbers():
    page = html(Table(("<i>", "n"), [("<script>", 2), (None, 3)], right=frozenset({1})))
    assert '<th scope="col">&lt;i&gt;</th><th scope="col" class="num">n</th>' in page
    assert '<td>&lt;script&gt;</td><td class="num">2</td>' in page
    assert "<td></td>" in page
