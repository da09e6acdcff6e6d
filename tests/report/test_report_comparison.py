import json

from trainmark.pages.comparison import ComparisonRow, Comparisons, ComparisonTable, as_json
from trainmark.pages.comparison_page import comparison_page
from trainmark.view import html, markdown, terminal

ROWS = (
    ComparisonRow("amp-b256-1n8g", 6154.7, 6401.2, 1.040, 1.031, 1.049, True, ("framework_version",)),
    ComparisonRow("fp32-b128-1n8g", 2887.6, 2801.0, 0.970, 0.961, 0.979, True),
    ComparisonRow("fp32-b128-1n1g", 367.29, 367.9, 1.002, 0.996, 1.008, False),
    ComparisonRow("fp32-b128-1n2g", 710.0, 760.0, 1.070, None, None, True),
)
TABLE = ComparisonTable("before", "after", ROWS, ("gone|1n1g",), ("new-1n1g",))
TWO = Comparisons((TABLE,))


def as_text(comparisons):
    return terminal.render(comparison_page(comparisons))


def as_markdown(comparisons):
    return markdown.render(comparison_page(comparisons))


def test_each_row_has_the_mark_its_interval_earns():
    assert [row.mark for row in ROWS] == ["+", "-", "~", "?"]


def test_text_lists_every_case_and_those_on_one_side_only():
    lines = as_text(TWO).splitlines()
    assert [line[0] for line in lines[1:5]] == ["+", "-", "~", "?"]
    assert "only in before: gone|1n1g" in lines
    assert "only in after: new-1n1g" in lines


def test_markdown_rows_keep_their_shape():
    lines = [line for line in as_markdown(TWO).splitlines() if line.startswith("|")]
    assert len(lines) == 6
    assert {line.count(" | ") for line in lines} == {6}


def test_json_carries_the_mark_and_the_bounds():
    tree = json.loads(as_json(TWO))
    assert tree["rows"][0]["mark"] == "+"
    assert tree["rows"][3]["low"] is None
    assert tree["only_after"] == ["new-1n1g"]


def test_two_runs_with_nothing_in_common_say_so():
    assert "No case is on both sides." in as_text(
        Comparisons((ComparisonTable("a", "b", (), ("x",), ("y",)),))
    )


def test_a_verdict_counts_each_mark():
    assert TABLE.counts == "1 faster, 1 slower, 1 no certain change, 1 too few trials to say"


def test_a_case_that_one_of_three_runs_lacks_has_an_empty_place():
    other = ComparisonTable("before", "third", ROWS[:1])
    grid = Comparisons((TABLE, other)).grid()
    assert [case.case for case, _ in grid] == [row.case for row in ROWS]
    assert [cells[1] is not None for _, cells in grid] == [True, False, False, False]


def test_a_case_of_two_versions_is_there_twice():
    twice = ComparisonTable("before", "third", (ROWS[0], ROWS[0]))
    assert len(Comparisons((ComparisonTable("before", "after", ROWS[:1]), twice)).grid()) == 2


def test_names_of_runs_stay_text_on_the_page():
    table = ComparisonTable("<script>1</script>", "<b>x</b>", ROWS)
    text = html.render(comparison_page(Comparisons((table, table))))
    assert text.count("<script") == 3 and "<b>x" not in text
