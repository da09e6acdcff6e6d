"""What is said of a case in which no change was found: that there is none, or that it cannot be told."""

from __future__ import annotations

import pytest
from shown_histories import as_markdown, as_page, as_text

from trainmark.measure.history.changes import changes
from trainmark.measure.history.series import HistorySeries, RunPoint
from trainmark.measure.key import Key
from trainmark.pages.history import History, histories, tree
from trainmark.pages.history_cells import no_change_verdict
from trainmark.pages.history_chart import ordered_chart, value_bounds
from trainmark.view.chart.model import Line

TRIALS = (0.99, 0.995, 1.0, 1.0, 1.005, 1.01)
STEADY = [100.0, 100.2, 99.9, 100.1, 100.0, 100.1, 99.9, 100.2, 100.0]


BUSY = (("host-busy",),) * 12


def series(levels, trials=TRIALS, doubts=((),) * 99) -> HistorySeries:
    points = tuple(
        RunPoint(f"run-{index}", 86_400.0 * index, tuple(level * trial for trial in trials), {}, own)
        for index, (level, own) in enumerate(zip(levels, doubts, strict=False))
    )
    return HistorySeries(Key("train"), "bench-1", "samples", points)


def case(levels, **others) -> History:
    (shown,) = histories([series(levels, **others)], changes).cases
    return shown


@pytest.mark.parametrize(
    ("levels", "look", "sentence"),
    [
        ([4402.0], "note", "1 result: too few for a change of level (10 are needed)."),
        (
            [4402.0, 1021.0],
            "caution",
            "2 results: too few for a change of level (10 are needed);"
            " the last differs from the one before by −76.8 %, certain.",
        ),
        (
            [100.0, 100.1],
            "note",
            "2 results: too few for a change of level (10 are needed);"
            " the last differs from the one before by +0.10 %, not certain.",
        ),
        (
            [*STEADY, 100.1],
            "reliable",
            "No lasting change: the results vary by no more than their trials and days explain.",
        ),
        (
            [*STEADY, 23.0],
            "caution",
            "No lasting change: the results vary by no more than their trials and days explain;"
            " the last differs from the one before by −77.0 %, certain.",
        ),
    ],
    ids=["one", "two apart", "two alike", "steady", "the last one falls"],
)
def test_the_verdict_says_whether_there_is_no_change_or_none_can_be_told(levels, look, sentence):
    verdict = no_change_verdict(case(levels))
    assert (verdict.look, verdict.sentence) == (look, sentence)


def test_a_difference_of_results_that_are_not_to_be_relied_on_is_not_certain():
    verdict = no_change_verdict(case([4402.0, 1021.0], doubts=BUSY))
    assert verdict.sentence.endswith("by −76.8 %, but not both are to be relied on.")


def test_text_and_page_tell_the_last_difference_the_doubts_and_that_there_are_too_few():
    shown = histories([series([4402.0, 1021.0], doubts=BUSY)], changes)
    table = as_text(shown, detailed=False)
    assert "−76.8 %, but not both are to be relied on" in table and "host-busy" in table
    assert "Cases with too few results to tell: 1." in table and "No change" not in table
    html = as_page(shown)
    assert html.count("but not both are to be relied on") == 2 and "No lasting change" not in html


@pytest.mark.parametrize(("results", "lines"), [(2, 0), (9, 0), (10, 1)])
def test_a_level_is_drawn_only_where_there_are_enough_results_for_one(results, lines):
    (panel,) = ordered_chart(case([100.0] * results)).panels
    assert sum(isinstance(mark, Line) for mark in panel.marks) == lines


def test_the_axis_of_values_holds_every_interval():
    wide = case([2.6], trials=(2.123 / 2.6, 1.0, 1.0, 1.0, 1.0, 3.115 / 2.6))
    low, high = value_bounds(wide)
    assert low < 2.123 and high > 3.115


@pytest.mark.parametrize(
    ("doubts", "unreliable"),
    [(((),) * 12, False), (BUSY[:6] + ((),) * 6, True), (((),) * 10 + BUSY[:2], False), (BUSY, True)],
    ids=["sound", "before", "few after", "all"],
)
def test_a_change_between_results_that_are_not_to_be_relied_on_is_shown_but_not_as_certain(
    doubts, unreliable
):
    shown = histories([series([100.0] * 6 + [80.0] * 6, doubts=doubts)], changes)
    (marked,), words = shown.cases[0].changes, "not to be relied on"
    assert marked.index == 6
    assert tree(shown)["cases"][0]["changes"][0]["unreliable"] is unreliable
    for printed in (as_text(shown, False), as_text(shown, True), as_markdown(shown, True)):
        assert (words in printed) is unreliable
    assert ('class="marked unsure"' in as_page(shown)) is unreliable
    assert ("不可信" in as_text(shown, True, "zh")) is unreliable


def test_no_change_is_not_reliable_where_the_results_are_not():
    verdict = no_change_verdict(case([*STEADY, 100.1], doubts=BUSY[:10]))
    assert (verdict.look, verdict.sentence.endswith("not to be relied on.")) == ("caution", True)
