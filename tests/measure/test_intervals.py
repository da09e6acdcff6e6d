from __future__ import annotations

import itertools
import statistics
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_streams import autocorrelated

from trainmark.measure.figure import Interval
from trainmark.measure.result import tight_enough
from trainmark.measure.statistics import (
    block_length,
    median_interval,
    rank_and_confidence,
    rate_interval,
    ratio_interval,
)

RATES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12)

SHAPES = {
    "normal": lambda rng, shape: rng.normal(100, 1, shape),
    "skewed": lambda rng, shape: 100 + rng.lognormal(0, 1, shape),
    "bimodal": lambda rng, shape: np.where(rng.random(shape) < 0.55, 100, 110) + rng.normal(0, 1, shape),
}


@pytest.mark.parametrize(("n", "confidence"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.96875)])
def test_few_trials_give_their_range_with_the_confidence_it_truly_has(n, confidence):
    assert median_interval(list(range(n))) == Interval(0, n - 1, confidence)


def test_one_trial_has_no_interval():
    assert median_interval([5.0]) is None
    assert ratio_interval([5.0], [4.0]) is None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [6, 7, 10, 15, 30])
def test_the_median_interval_covers_at_least_what_it_promises(shape, n):
    rng = np.random.default_rng(1)
    truth = float(np.median(SHAPES[shape](rng, 1_000_000)))
    intervals = [median_interval(row) for row in SHAPES[shape](rng, (4000, n)).tolist()]
    assert np.mean([i.low <= truth <= i.high for i in intervals]) >= 0.95 - 0.01


def test_the_confidence_of_two_thousand_trials_is_still_exact():
    interval = median_interval(list(range(2_000)))
    below = sum(comb(2_000, k) for k in range(int(interval.low) + 1))
    assert interval.confidence == pytest.approx(1 - 2 * below / 2**2_000, abs=1e-12)


@pytest.mark.parametrize(("m", "n"), [(2, 3), (3, 3), (4, 4), (5, 3)])
def test_the_ratio_interval_has_the_confidence_that_counting_all_orders_gives(m, n):
    k, confidence = rank_and_confidence(m, n, 0.6)
    orders = list(itertools.combinations(range(m + n), m))
    below = sum(sum(position - i for i, position in enumerate(order)) < k for order in orders)
    assert confidence == pytest.approx(1 - 2 * below / len(orders))


def test_the_normal_approximation_takes_over_without_a_jump():
    (exact, _), (approximate, _) = rank_and_confidence(30, 30, 0.95), rank_and_confidence(30, 31, 0.95)
    assert 0 < approximate - exact < 20


@pytest.mark.parametrize(("n", "confidence"), [(2, 2 / 3), (3, 0.9)])
def test_a_ratio_of_few_trials_carries_its_true_confidence(n, confidence):
    assert ratio_interval([2.0] * n, [1.0] * n).confidence == pytest.approx(confidence)


@pytest.mark.parametrize("n", [4, 6, 10])
def test_the_ratio_interval_covers_the_true_ratio(n):
    rng = np.random.default_rng(2)
    pairs = zip(1.3 * rng.lognormal(0, 0.02, (4000, n)), rng.lognormal(0, 0.02, (4000, n)), strict=True)
    intervals = [ratio_interval(above.tolist(), below.tolist()) for above, below in pairs]
    assert np.mean([i.low <= 1.3 <= i.high for i in intervals]) >= 0.95 - 0.01


@given(RATES, RATES)
def test_the_ratio_interval_holds_the_ratio_of_medians(above, below):
    interval = ratio_interval(above, below)
    assert interval.low <= statistics.median(above) / statistics.median(below) <= interval.high


def test_the_ratio_interval_is_widened_where_the_ratio_of_medians_lies_outside_it():
    above, below = [1.0] * 15 + [1000.0] * 14, [1.0] * 15 + [0.001] * 14
    assert ratio_interval(above, below).low == 1.0
    assert ratio_interval(below, above).high == 1.0


@given(RATES, RATES)
def test_swapping_the_sides_inverts_the_ratio_interval(above, below):
    one, other = ratio_interval(above, below), ratio_interval(below, above)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))


def test_thinning_very_many_trials_hardly_moves_the_ratio_interval():
    rng = np.random.default_rng(3)
    above, below = rng.normal(200, 2, 3000), rng.normal(100, 1, 3000)
    interval = ratio_interval(above.tolist(), below.tolist())
    quotients = np.sort(np.divide.outer(above, below).ravel())
    k, _ = rank_and_confidence(3000, 3000, 0.95)
    assert (interval.low, interval.high) == pytest.approx((quotients[k - 1], quotients[-k]), rel=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_rate_interval_of_a_trial_covers_its_true_rate_though_steps_depend_on_each_other(rho):
    steps = 1 + autocorrelated(np.random.default_rng(4), (400, 300), 0.05, rho)
    intervals = [rate_interval(run, np.full(300, 32.0)) for run in steps]
    assert np.mean([i.low <= 32 <= i.high for i in intervals]) >= 0.90


def test_the_rate_interval_is_the_same_each_time():
    steps = 1 + np.random.default_rng(5).random(500)
    assert rate_interval(steps, np.ones(500)) == rate_interval(steps, np.ones(500))


def test_a_few_steps_carry_no_rate_interval():
    assert rate_interval(np.ones(99), np.ones(99)) is None


def test_blocks_grow_with_the_memory_of_the_steps():
    forgetful, lasting = (
        autocorrelated(np.random.default_rng(6), (1, 2000), 1.0, rho)[0] for rho in (0.0, 0.95)
    )
    assert block_length(forgetful) <= 5 < block_length(lasting)


def test_five_trials_are_never_tight_enough_however_close():
    assert not tight_enough([100.0] * 5, 0.01)


def test_trials_are_tight_enough_once_half_their_interval_is_within_the_target():
    values = [99.0, 99.5, 100.0, 100.0, 100.5, 101.0]
    assert tight_enough(values, 0.01)
    assert not tight_enough(values, 0.009)
