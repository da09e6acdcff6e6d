from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from measured_streams import level_runs

from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.steady_window import steady_window

RUNS = 150


def _share(windows: list[Window], verdict: WindowVerdict) -> float:
    return sum(window.verdict is verdict for window in windows) / len(windows)


@pytest.mark.parametrize("steps", [20, 60, 150, 600])
def test_a_level_run_is_settled_and_hardly_cut(steps):
    windows = [steady_window(run) for run in level_runs(np.random.default_rng(1), RUNS, steps)]
    assert _share(windows, WindowVerdict.SETTLED) >= 0.95
    assert sum(window.first for window in windows) / (RUNS * steps) < 0.03


@pytest.mark.parametrize("drift", [0.1, 0.3, -0.1, -0.2])
@pytest.mark.parametrize("steps", [150, 600])
def test_a_drifting_run_never_settles(steps, drift):
    runs = level_runs(np.random.default_rng(2), RUNS, steps) * np.linspace(1, 1 + drift, steps)
    assert _share([steady_window(run) for run in runs], WindowVerdict.NEVER_SETTLED) >= 0.95


def test_a_run_that_begins_to_drift_half_way_never_settles():
    runs = level_runs(np.random.default_rng(3), RUNS, 300, sigma=0.005)
    runs[:, 150:] *= np.linspace(1, 1.2, 150)
    assert _share([steady_window(run) for run in runs], WindowVerdict.NEVER_SETTLED) >= 0.95


@pytest.mark.parametrize("steps", [60, 200, 1000])
def test_a_sudden_end_of_warmup_is_found_within_three_steps(steps):
    rng = np.random.default_rng(4)
    misses = []
    for run in level_runs(rng, RUNS, steps):
        warmup = int(rng.integers(1, steps // 2))
        run[:warmup] *= rng.uniform(1.2, 3)
        misses.append(steady_window(run).first - warmup)
    assert np.mean(np.abs(misses) <= 3) >= 0.95


def test_what_is_left_of_a_slowly_ending_warmup_is_below_one_percent():
    rng = np.random.default_rng(5)
    left = []
    for run in level_runs(rng, RUNS, 300):
        excess = rng.uniform(0.5, 2) * np.exp(-np.arange(300) / rng.uniform(2, 20))
        window = steady_window(run + excess)
        left.append(excess[window.first :].mean())
    assert np.quantile(left, 0.95) < 0.01


@pytest.mark.parametrize("steps", [60, 100, 1000])
@pytest.mark.parametrize("phase", range(10))
def test_stalls_that_come_back_every_tenth_step_are_neither_cut_nor_unsettling(steps, phase):
    run = 1 + np.random.default_rng(6).normal(size=steps) * 0.01
    run[phase::10] *= 2
    assert steady_window(run) == Window(0, steps, WindowVerdict.SETTLED)


def test_slow_phases_that_come_back_throughout_a_long_run_do_not_eat_it_up():
    run = 1 + 0.3 * (np.arange(200_000) // 5000 % 2) + np.random.default_rng(6).normal(size=200_000) * 0.01
    window = steady_window(run)
    assert (window.verdict, window.first <= 5000) == (WindowVerdict.SETTLED, True)


def test_one_step_of_compilation_is_cut_and_nothing_else():
    run = 0.01 + np.random.default_rng(7).normal(size=200) * 1e-5
    run[0] = 40.0
    assert steady_window(run) == Window(1, 200, WindowVerdict.SETTLED)


def test_a_certain_but_irrelevant_shift_is_no_change():
    run = 1 + np.random.default_rng(8).normal(size=200_000) * 0.002
    run[:100_000] *= 1.001
    assert steady_window(run).first == 0


def test_a_warmup_of_three_percent_is_cut():
    run = 1 + np.random.default_rng(8).normal(size=300) * 0.002
    run[:60] *= 1.03
    assert abs(steady_window(run).first - 60) <= 3


def test_a_step_in_the_last_half_is_no_drift():
    run = np.repeat([1.0, 0.9], [130, 70]) + np.random.default_rng(10).normal(size=200) * 0.02
    window = steady_window(run)
    assert (window.verdict, abs(window.first - 130) <= 3) == (WindowVerdict.SETTLED, True)


def test_a_level_that_comes_back_is_joined_with_its_equal():
    run = np.repeat([1.0, 1.3, 1.0], [100, 30, 100]) + np.random.default_rng(9).normal(size=230) * 0.005
    window = steady_window(run)
    assert (window.verdict, abs(window.first - 130) <= 3) == (WindowVerdict.SETTLED, True)
    shifted = np.repeat([1.3, 1.0, 1.005], [30, 100, 100]) + np.random.default_rng(9).normal(size=230) * 0.001
    assert abs(steady_window(shifted).first - 30) <= 3


def test_six_slow_steps_behind_an_ordinary_one_are_start_up():
    run = 1 + np.random.default_rng(14).normal(size=400) * 0.01
    run[1:8] *= 1.1
    assert steady_window(run).first == pytest.approx(8, abs=1)


def test_a_window_of_just_the_shortest_length_is_settled():
    run = np.r_[5.0, 1 + np.random.default_rng(12).normal(size=10) * 0.01]
    assert steady_window(run, shortest=10) == Window(1, 11, WindowVerdict.SETTLED)


def test_a_level_reached_only_at_the_very_end_is_not_steady():
    run = np.repeat([1.0, 0.8], [180, 20]) + np.random.default_rng(10).normal(size=200) * 0.005
    assert steady_window(run).verdict is WindowVerdict.NEVER_SETTLED


def test_the_floor_is_dropped_even_from_a_level_run():
    run = 1 + np.random.default_rng(11).normal(size=100) * 0.01
    assert steady_window(run, floor=25) == Window(25, 100, WindowVerdict.SETTLED)


def test_a_floor_beyond_the_run_leaves_an_empty_window_that_is_too_short():
    assert steady_window(np.ones(5), floor=20) == Window(5, 5, WindowVerdict.TOO_SHORT)


@pytest.mark.parametrize("steps", range(6, 10))
def test_a_handful_of_steps_is_too_short_but_still_loses_its_slow_first_one(steps):
    run = np.r_[9.0, 1 + np.random.default_rng(12).normal(size=steps - 1) * 0.01]
    assert steady_window(run) == Window(1, steps, WindowVerdict.TOO_SHORT)


def test_step_times_from_a_clock_of_whole_seconds_do_not_look_like_change():
    run = np.diff(np.floor(np.cumsum(np.full(301, 0.37))))
    assert steady_window(run).verdict is WindowVerdict.SETTLED


@pytest.mark.parametrize(
    "shape", [np.ones(1_000_000), np.linspace(1, 1.5, 1_000_000)], ids=["level", "drift"]
)
def test_a_million_steps_get_the_verdict_of_a_thousand(shape):
    run = shape * (1 + np.random.default_rng(13).normal(size=1_000_000) * 0.02)
    assert steady_window(run).verdict is steady_window(run[::1000]).verdict


@given(
    arrays(np.float64, st.integers(0, 80), elements=st.floats(0, 1e6)),
    st.integers(0, 100),
)
def test_any_run_gets_a_window_within_it(run, floor):
    window = steady_window(run, floor)
    assert min(floor, len(run)) <= window.first <= window.stop == len(run)
    assert window.steps > 0 or floor >= len(run)


@pytest.mark.parametrize(("first", "last"), [(100, 300), (300, 100), (100, 120), (120, 100)])
@pytest.mark.parametrize("steps", [30, 200, 1000])
def test_a_smooth_strong_drift_never_settles_even_without_noise(first, last, steps):
    seconds = 1 / np.linspace(first, last, steps)
    assert steady_window(seconds).verdict is WindowVerdict.NEVER_SETTLED
