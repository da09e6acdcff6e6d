"""Simulated histories have what they say."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simulated_histories import MACHINES, Machine, Step, random_steps, simulate


def medians(machine, n=400, steps=(), seed=0):
    history = simulate(machine, n, steps, np.random.default_rng(seed))
    return np.array([point.median for point in history.points])


def test_a_step_multiplies_the_level_from_its_point_on():
    values = medians(Machine("exact", point=0.0), 6, [Step(4, -0.1)])
    assert values == pytest.approx([1000, 1000, 1000, 1000, 900, 900])


def test_a_bimodal_machine_has_two_levels_in_the_share_asked_for():
    values = medians(Machine("two", point=0.0, mode_share=0.3, mode_gap=0.03))
    assert set(np.round(values)) == {970, 1000}
    assert np.mean(values < 985) == pytest.approx(0.3, abs=0.07)


def test_results_of_one_day_share_its_effect():
    values = medians(Machine("days", point=0.0, day=0.01, results_a_day=4), 40).reshape(10, 4)
    assert np.ptp(values, axis=1) == pytest.approx(0)
    assert np.std(values[:, 0]) > 1


def test_a_drift_lowers_the_level_by_its_share_over_100_points():
    values = medians(Machine("drift", point=0.0, drift=0.02), 101)
    assert values[-1] / values[0] == pytest.approx(np.exp(-0.02))


def test_points_have_from_the_fewest_to_the_most_trials():
    machine = next(machine for machine in MACHINES if machine.trials == (1, 6))
    points = simulate(machine, 100, (), np.random.default_rng(0)).points
    assert {len(point.values) for point in points} == {1, 2, 3, 4, 5, 6}


def test_random_steps_have_their_sizes_and_lie_apart():
    steps = random_steps(200, (0.01, 0.02, 0.05), np.random.default_rng(1))
    assert [abs(step.size) for step in steps] == [0.01, 0.02, 0.05]
    assert min(np.diff([step.index for step in steps])) >= 25


def test_one_seed_gives_one_history():
    assert list(medians(MACHINES[0], 20)) == list(medians(MACHINES[0], 20))
