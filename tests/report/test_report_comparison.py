import json

from trainmark.report.render.comparison import ComparisonRow, ComparisonTable, as_json, as_markdown, as_text

ROWS = (
    ComparisonRow("amp-b256-1n8g", 6154.7, 6401.2, 1.040, 1.031, 1.049, True, ("framework_version",)),
    ComparisonRow("fp32-b128-1n8g", 2887.6, 2801.0, 0.970, 0.961, 0.979, True),
    ComparisonRow("fp32-b128-1n1g", 367.29, 367.9, 1.002, 0.996, 1.008, False),
    ComparisonRow("fp32-b128-1n2g", 710.0, 760.0, 1.070, None, None, True),
)
TABLE = ComparisonTable("before", "after", ROWS, ("gone|1n1g",), ("new-1n1g",))


def test_each_row_has_the_mark_its_interval_earns():
    assert [row.mark for row in ROWS] == ["+", "-", "~", "?"]


def test_text_lists_every_case_and_those_on_one_side_only():
    lines = as_text(TABLE).splitlines()
    assert [line[0] for line in lines[1:5]] == ["+", "-", "~", "?"]
    assert "only in before: gone|1n1g" in lines
    assert "only in after: new-1n1g" in lines


def test_markdown_rows_keep_their_shape():
    lines = [line for line in as_markdown(TABLE).splitlines() if line.startswith("|")]
    assert len(lines) == 6
    assert {line.count(" | ") for line in lines} == {6}


def test_json_carries_the_mark_and_the_bounds():
    tree = json.loads(as_json(TABLE))
    assert tree["rows"][0]["mark"] == "+"
    assert tree["rows"][3]["low"] is None
    assert tree["only_after"] == ["new-1n1g"]


def test_two_runs_with_nothing_in_common_say_so():
    assert "No case is on both sides." in as_text(ComparisonTable("a", "b", (), ("x",), ("y",)))
