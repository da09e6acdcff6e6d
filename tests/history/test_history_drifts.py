"""Slow drifts in histories whose truth is known, and how they are reported; all seeds are fixed."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from benchmarks.simulated_histories import DRIFTING, MACHINES, Machine, Step, simulate
from shown_histories import as_markdown, as_page, as_text

from trainmark.measure.history.changes import changes, drifts
from trainmark.measure.history.series import HistorySeries, RunPoint
from trainmark.measure.key import Key
from trainmark.pages.history import histories, tree
from trainmark.pages.history_chart import ordered_chart
from trainmark.pages.history_page import overview_table

TRUTH = math.exp(-0.02 * 99 / 100)


def reported(machine, n=100, steps=(), seed=0):
    points = simulate(machine, n, steps, np.random.default_rng(seed)).points
    steps_reported = changes(points)
    return steps_reported, drifts(points, steps_reported)


@pytest.fixture(scope="module")
def drifting():
    return [reported(DRIFTING, seed=seed) for seed in range(30)]


def test_a_drift_is_reported_once_and_as_no_staircase(drifting):
    assert sum(not steps and len(sloped) == 1 for steps, sloped in drifting) >= 24
    assert max(len(steps) + len(sloped) for steps, sloped in drifting) <= 2


def test_the_interval_holds_the_true_drift_in_nearly_all_histories(drifting):
    whole = [sloped[0] for steps, sloped in drifting if sloped and not steps]
    assert sum(drift.low <= TRUTH <= drift.high for drift in whole) >= 0.85 * len(whole)


def test_a_drift_covers_all_results_between_changes():
    (step,), sloped = reported(Machine("steep", drift=0.06), 120, [Step(60, 0.1)], seed=2)
    assert step.index == 60
    assert [(drift.first, drift.last, drift.regression) for drift in sloped] == [
        (0, 59, True),
        (60, 119, True),
    ]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_machine_without_a_drift_has_none(machine):
    assert [reported(machine, 60, seed=seed)[1] for seed in range(5)] == [()] * 5


def test_a_step_is_no_drift():
    assert [reported(MACHINES[0], 80, [Step(40, -0.02)], seed)[1] for seed in range(10)] == [()] * 10


def test_fewer_than_20_results_show_no_drift():
    assert reported(Machine("steep", point=0.001, drift=0.2), 19)[1] == ()


@pytest.fixture(scope="module")
def shown():
    points = tuple(
        RunPoint(f"nightly-{index}", 1.77e9 + 86_400 * index, point.values)
        for index, point in enumerate(simulate(DRIFTING, 100, (), np.random.default_rng(0)).points)
    )
    key = Key("resnet50", "pytorch", precision="amp", batch_per_device=256)
    return histories([HistorySeries(key, "", "images", points)], changes)


def test_the_drift_stands_in_the_overview(shown):
    (row,) = overview_table(shown).rows
    assert re.fullmatch(r"↘ −[12]\.\d % \[−\d\.\d, −\d\.\d\] over 100 results", row[5])


def test_the_text_says_how_far_and_over_how_many_results(shown):
    text = as_text(shown, detailed=True)
    assert re.search(r"Drift of −\d\.\d % \[.*\] over 100 results, from \S+ \(nightly-0\) to", text)
    assert "No change of level. Drifts: 1 slower, 0 faster." in text


def test_markdown_in_chinese_names_the_drift(shown):
    assert re.search(r"100 个结果缓慢漂移 −\d\.\d %", as_markdown(shown, detailed=False, lang="zh"))


def test_json_has_the_drift_with_its_interval(shown):
    (drift,) = json.loads(json.dumps(tree(shown)))["cases"][0]["drifts"]
    assert (drift["first_run"], drift["last_run"], drift["regression"]) == ("nightly-0", "nightly-99", True)
    assert drift["low"] < drift["ratio"] < drift["high"] < 1


def test_the_page_has_the_sentence_and_a_slanted_level(shown):
    assert "Drift of −" in as_page(shown)
    lines = [mark for mark in ordered_chart(shown.cases[0]).panels[0].marks if type(mark).__name__ == "Line"]
    (level,) = lines
    assert level.y[-1] / level.y[0] == pytest.approx(shown.cases[0].drifts[0].ratio)
