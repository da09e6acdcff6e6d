"""How detected changes are counted."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from benchmarks.simulated_histories import MACHINES, Step, simulate


@pytest.fixture
def score():
    return importlib.import_module("benchmarks.detection.score")


@pytest.fixture
def turing():
    return importlib.import_module("benchmarks.detection.turing")


def history(*steps, n=40):
    return simulate(MACHINES[0], n, [Step(index, 0.1) for index in steps], np.random.default_rng(0))


def test_a_step_is_matched_by_one_reported_change_and_the_others_are_alarms(score):
    result = score.whole(history(20), [18, 22, 35])
    assert (result.hits, result.alarms) == (1, 2)


def test_an_alarm_that_moves_about_or_comes_back_counts_once(score):
    result = score.online(history(), [[]] * 20 + [[10], [12], [], [9], [30]])
    assert result.alarms == 2


def test_the_delay_counts_the_results_since_the_step(score):
    result = score.online(history(20), [[]] * 22 + [[21]] * 18)
    assert (result.delays, result.alarms) == ((3,), 0)


def test_a_change_reported_before_the_step_has_come_is_an_alarm(score):
    assert score.online(history(20), [[]] * 17 + [[16]] + [[]] * 22).alarms == 1


def test_the_annotated_changes_themselves_score_one(turing):
    annotated = [[10, 20], [10, 20]]
    assert turing.f1(annotated, [10, 20]) == turing.covering(annotated, [10, 20], 30) == 1.0


def test_a_missed_change_lowers_recall_and_covering(turing):
    assert turing.f1([[10]], []) == pytest.approx(2 / 3)
    assert turing.covering([[10]], [], 20) == pytest.approx(0.5)


def test_otava_reports_a_plain_step_where_it_is():
    detectors = importlib.import_module("benchmarks.detection.detectors")
    python = detectors.otava_python()
    if python is None:
        pytest.skip("Apache Otava is not installed: make otava")
    with detectors.otava(python) as detector:
        assert detector(history(20).points, [20, 40]) == [[], [20]]
