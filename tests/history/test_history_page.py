"""A history in text, Markdown, HTML and JSON, from plain points."""

from __future__ import annotations

import json
import re
from html import escape

import pytest
from shown_histories import as_markdown, as_page, as_text

from trainmark.measure.history.changes import LevelChange
from trainmark.measure.history.series import HistorySeries, RunPoint
from trainmark.measure.key import Key
from trainmark.pages.history import FactChange, as_json, histories, matches
from trainmark.pages.history_cells import blocks, fact_words, percent_change, sparkline
from trainmark.pages.history_chart import time_axis
from trainmark.view.catalogue import catalogue

DAY = 86_400.0
HOSTILE = "</script><script>alert(1)</script> <img src=x onerror=alert(1)> \x1b[31m | `x`"


def series(levels: list[float], framework: str = "pytorch", run: str = "night") -> HistorySeries:
    points = tuple(
        RunPoint(
            f"{run}-{index}",
            1.77e9 + index * DAY,
            tuple(level * (1 + 0.001 * trial) for trial in range(6)),
            {"driver": "550" if level == levels[0] else "560", "commit": "c" * 39 + str(index)},
            ("noisy-trials",) if index == 1 else (),
        )
        for index, level in enumerate(levels)
    )
    key = Key("resnet50", framework, precision="amp", batch_per_device=256)
    return HistorySeries(key, "bench-1", "images", points)


def step(points) -> tuple[LevelChange, ...]:
    """A detector that knows where the level changes."""
    places = [
        index
        for index in range(1, len(points))
        if abs(points[index].median / points[index - 1].median - 1) > 0.01
    ]
    return tuple(
        LevelChange(
            index, points[index].median / points[index - 1].median, 0.94, 0.97, 0.0003, len(points) - index
        )
        for index in places
    )


SLOWER = [100.0] * 5 + [96.0] * 4


@pytest.fixture
def shown():
    return histories([series(SLOWER), series([50.0] * 3, "jax")], step)


def test_the_table_has_the_latest_figure_the_change_and_the_fact_that_fits_best(shown):
    table = as_text(shown, detailed=False)
    row = next(line for line in table.splitlines() if line.startswith("pytorch"))
    assert "96.24 images/s" in row
    assert "↓ −4.0 % [−6.0, −3.0]" in row
    assert row.endswith("driver 550 → 560")
    assert "Changes: 1 slower, 0 faster." in table


def test_point_by_point_every_result_has_a_row_and_the_facts_their_fit(shown):
    lines = as_text(histories([series(SLOWER)], step, pattern="pytorch"), detailed=True).splitlines()
    assert sum("night-" in line and line.startswith("2026-") for line in lines) == len(SLOWER)
    assert any(re.search(r"driver\s+550\s+560\s+1\.00", line) for line in lines)


def test_a_pattern_chooses_cases_by_a_part_of_the_name_or_by_wildcards(shown):
    assert matches("AMP", "jax amp b256")
    assert matches("jax*256", "jax amp b256")
    assert not matches("jax*25", "jax amp b256")
    assert [
        case.name for case in histories([series(SLOWER), series([1.0], "jax")], step, pattern="jax").cases
    ] == ["jax amp b256 1n1g"]


def test_cases_on_several_machines_name_their_machine():
    one, two = series(SLOWER), HistorySeries(series([1.0]).key, "bench-2", "images", series([1.0]).points)
    assert [case.name.rpartition(" ")[2] for case in histories([one, two], step).cases] == [
        "@bench-1",
        "@bench-2",
    ]


def test_json_has_every_point_with_its_facts_and_every_change(shown):
    tree = json.loads(as_json(shown))
    case = tree["cases"][1]
    assert (tree["by"], len(case["points"]), case["unit"]) == ("date", 9, "images/s")
    assert case["points"][0]["facts"]["driver"] == "550"
    assert [(change["index"], change["regression"]) for change in case["changes"]] == [(5, True)]
    assert case["changes"][0]["facts"][0]["name"] == "driver"


def test_markdown_names_the_change_and_its_facts(shown):
    document = as_markdown(shown, detailed=False)
    assert "## pytorch amp b256 1n1g" in document
    assert "| driver | 550 | 560 | 1.00 |" in document


def test_every_dot_leads_to_the_card_of_its_result_with_report_and_difference(shown):
    document = as_page(shown, "en", lambda point: f"runs/{point.run}/report.html")
    anchors = re.findall(r'<article id="([^"]+)" class="result-card"', document)
    assert len(anchors) == shown.results
    assert set(re.findall(r'<a href="#(r-[^"]+)"><circle', document)) == set(anchors)
    assert 'href="runs/night-5/report.html"' in document


def test_a_page_in_chinese_has_no_english_words_of_its_own(shown):
    document, english = as_page(shown, "zh"), as_page(shown)
    long = [text for text in catalogue("zh") if len(text) > 24 and escape(text) in english]
    assert long and [text for text in long if escape(text) in document] == []
    assert "历史结果" in document


def test_nothing_that_a_run_is_called_becomes_markup():
    document = as_page(histories([series(SLOWER, HOSTILE, HOSTILE)], step))
    assert "<script>alert" not in document
    assert "<img" not in document
    assert "\x1b" not in document


def test_a_change_beyond_a_per_cent_has_one_decimal_and_a_smaller_one_two():
    assert [percent_change(ratio) for ratio in (0.958, 1.0042, 1.1)] == ["−4.2 %", "+0.42 %", "+10.0 %"]


def test_noise_of_a_thousandth_draws_no_peaks():
    assert len(set(blocks([100.0, 100.1, 99.9, 100.05]))) <= 2


def test_a_long_history_fits_its_blocks_and_shows_where_it_changed():
    (case,) = histories([series([100.0] * 150 + [90.0] * 50)], step).cases
    line = sparkline(case)
    assert len(line) <= 27
    assert line.count("↓") == 1


def test_of_two_commands_only_the_words_that_differ_are_shown():
    fact = FactChange("command", "python train.py --lr 0.1", "python train.py --lr 0.2 --amp", 1.0)
    assert fact_words(fact) == "command … --lr 0.1 → … --lr 0.2 --amp"


@pytest.mark.parametrize(
    ("span", "first"),
    [(3 * 3600, "11-18 01:00"), (5 * DAY, "2026-11-19"), (300 * DAY, "2027-01"), (9 * 365 * DAY, "2028")],
)
def test_ticks_of_time_are_round_and_few(span, first):
    start = 1_794_960_000.0 + 2400  # 2026-11-18 00:40 UTC
    axis = time_axis([start, start + span])
    assert 2 <= len(axis.ticks) <= 8
    assert axis.ticks[0][1] == first or axis.ticks[1][1] == first
    assert all(axis.low <= place <= axis.high for place, _ in axis.ticks)
