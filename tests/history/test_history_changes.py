"""Changes of level in histories whose truth is known; all seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simulated_histories import DRIFTING, MACHINES, Machine, Step, simulate

from trainmark.measure.history.changes import changes
from trainmark.measure.history.series import RunPoint

BY_NAME = {machine.name: machine for machine in MACHINES}
NORMAL = BY_NAME["normal, 0.5 %"]


def history(machine=NORMAL, n=60, steps=(), seed=0):
    return simulate(machine, n, steps, np.random.default_rng(seed)).points


def places(points, **options):
    return [change.index for change in changes(points, **options)]


@pytest.mark.parametrize("size", [-0.02, 0.02])
def test_a_regression_and_an_improvement_of_2_percent_are_found_within_5_results(size):
    (change,) = changes(history(n=35, steps=[Step(30, size)]))
    assert abs(change.index - 30) <= 1
    assert change.regression == (size < 0)


def test_a_step_of_2_percent_after_12_results_is_mostly_reported_5_results_later():
    """A step must not count as noise against itself, which in so short a history hides one in four."""
    reported = [places(history(n=17, steps=[Step(12, -0.02)], seed=seed)) for seed in range(60)]
    assert sum(bool(near) and abs(near[0] - 12) <= 1 for near in reported) >= 49


def test_the_interval_holds_the_true_ratio():
    (change,) = changes(history(steps=[Step(30, -0.03)]))
    assert change.low < 0.97 < change.high
    assert change.low < change.ratio < change.high


def test_intervals_of_95_percent_hold_the_true_ratio_in_nearly_as_many_histories():
    covered = [
        change.low <= 0.97 <= change.high
        for seed in range(40)
        for change in changes(history(BY_NAME["1 to 6 trials"], 40, [Step(20, -0.03)], seed))
    ]
    assert len(covered) == 40
    assert sum(covered) >= 34


def test_each_change_counts_the_points_of_its_level():
    reported = changes(history(n=60, steps=[Step(20, 0.05), Step(45, -0.05)]))
    assert [change.confirmed_by for change in reported] == [25, 15]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_machine_without_a_change_raises_no_alarm(machine):
    assert [places(history(machine, 60, seed=seed)) for seed in range(5)] == [[]] * 5


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_step_of_5_percent_is_found_on_every_machine(machine):
    (place,) = places(history(machine, 80, [Step(40, -0.05)], seed=3))
    assert abs(place - 40) <= 3


@pytest.mark.parametrize("outliers", [(40,), (40, 41), (58, 59)])
def test_one_outlier_or_two_are_no_change(outliers):
    points = list(history())
    for index in outliers:
        points[index] = RunPoint("slow", points[index].time, (500.0,))
    assert places(points) == []


def test_three_results_in_a_mode_seen_before_the_step_are_no_change():
    points = history(BY_NAME["rare mode"], 80, [Step(40, -0.05)], seed=3)
    assert max(point.median for point in points[58:61]) < 0.98 * points[57].median
    assert places(points) == [40]


def test_a_slow_drift_is_no_step():
    assert places(history(DRIFTING, 100, seed=1)) == []


def test_a_step_that_only_parts_one_day_from_the_next_is_a_day_effect():
    machine = Machine("days", point=0.001, day=0.01, results_a_day=10)
    assert places(history(machine, 100, seed=2)) == []


def test_noisy_trials_make_the_same_medians_less_certain():
    """Points of few trials weigh less, so a level made of them alone is known less well."""
    levels = np.random.default_rng(4).normal(0, 0.002, 40)
    levels[20:] += 0.03

    def interval(spread):
        points = [
            RunPoint(
                str(index), index * 86_400.0, tuple(float(np.exp(level + d)) for d in (-spread, 0.0, spread))
            )
            for index, level in enumerate(levels)
        ]
        (change,) = changes(points)
        return change.high - change.low

    assert interval(0.05) > 1.5 * interval(0.001)


def test_a_change_smaller_than_what_matters_is_not_counted():
    points = history(steps=[Step(30, 0.02)])
    assert places(points, smallest=0.01) and not places(points, smallest=0.05)


def test_the_probability_is_small_where_the_step_is_plain():
    (change,) = changes(history(steps=[Step(30, 0.1)]))
    assert 0 < change.probability < 1e-6


@pytest.mark.parametrize("n", range(10))
def test_fewer_than_ten_points_show_no_change(n):
    assert places(history(n=n, steps=[Step(min(5, n), 0.3)])) == []


def test_values_that_repeat_to_the_last_digit_show_their_step():
    points = [RunPoint(str(index), index * 86_400.0, (100.0 if index < 20 else 99.0,)) for index in range(40)]
    assert places(points) == [20]


def test_a_history_without_any_spread_has_no_change():
    assert places([RunPoint(str(index), float(index), (100.0,)) for index in range(30)]) == []
