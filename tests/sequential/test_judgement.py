"""Verdicts over simulated pairs whose truth is known, from fixed seeds."""

from __future__ import annotations

import math
import random

import pytest

from trainmark.measure.ab import (
    ABVerdict,
    b_first,
    evidence_above_zero,
    first_verdict,
    judge,
    log_ratios,
    nearer_level,
)


def normal(rng):
    return rng.gauss(0, 0.01)


def laplace(rng):
    return rng.choice((-1, 1)) * rng.expovariate(math.sqrt(2) / 0.01)


def outliers(rng):
    return rng.gauss(0, 0.01) + (math.log(0.8) if rng.random() < 0.05 else 0)


def two_levels(rng):
    return rng.gauss(0, 0.0002) + rng.choice((0, 0.02))


NOISES = (normal, laplace, outliers, two_levels)


def pairs_of(noise, ratio, count, seed):
    rng = random.Random(seed)
    return [(100 * math.exp(noise(rng)), 100 * ratio * math.exp(noise(rng))) for _ in range(count)]


@pytest.mark.parametrize("noise", NOISES)
def test_a_difference_that_just_does_not_matter_is_called_slower_in_at_most_the_stated_share(noise):
    simulations = 300
    wrong = sum(
        first_verdict(log_ratios(pairs_of(noise, 0.99, 60, seed)), 0.01, 0.05)[0] is not ABVerdict.UNDECIDED
        for seed in range(simulations)
    )
    assert wrong / simulations <= 0.05


@pytest.mark.parametrize("noise", NOISES)
def test_a_change_of_four_percent_is_decided_and_in_its_direction(noise):
    verdicts = {judge(pairs_of(noise, 0.96, 60, seed)).verdict for seed in range(20)}
    assert verdicts == {ABVerdict.SLOWER}


def test_a_gain_is_called_faster():
    assert judge(pairs_of(normal, 1.04, 40, 1)).verdict is ABVerdict.FASTER


def test_no_change_is_certainly_below_what_matters_after_enough_pairs():
    judgement = judge(pairs_of(normal, 1.0, 100, 1), matters=0.02)
    assert judgement.verdict is ABVerdict.SAME
    assert 0.98 < judgement.low < judgement.ratio < judgement.high < 1 / 0.98


def test_a_shared_drift_in_random_order_is_not_called_a_difference():
    simulations = 200
    wrong = sum(
        first_verdict(log_ratios(drifting(seed)), 0.001, 0.05)[0] in (ABVerdict.SLOWER, ABVerdict.FASTER)
        for seed in range(simulations)
    )
    assert wrong / simulations <= 0.05


def drifting(seed):
    """Pairs of a machine that slows by 0.3 % from each trial to the next, for both sides alike."""
    rng, pairs = random.Random(seed), []
    for index in range(40):
        early, late = (math.exp(-0.003 * (2 * index + k) + rng.gauss(0, 0.002)) for k in (0, 1))
        pairs.append((late, early) if b_first(seed, index) else (early, late))
    return pairs


def test_the_interval_covers_the_truth_at_every_look_together():
    """What was excluded at one look stays excluded, so the last interval lies within all earlier ones."""
    simulations = 60
    judgements = [judge(pairs_of(laplace, 0.97, 30, seed)) for seed in range(simulations)]
    missed = sum(not judgement.low <= 0.97 <= judgement.high for judgement in judgements)
    assert missed / simulations <= 0.05


def test_few_pairs_leave_the_interval_open_and_the_verdict_undecided():
    judgement = judge([(100.0, 90.0)] * 5)
    assert (judgement.verdict, judgement.low, judgement.high) == (ABVerdict.UNDECIDED, 0.0, math.inf)


def test_a_clear_change_takes_six_pairs_or_seven():
    assert judge([(100.0, 90.0)] * 10).pairs in (6, 7)


def test_no_pairs_are_undecided():
    assert judge([]).verdict is ABVerdict.UNDECIDED


def test_a_verdict_is_not_revoked_by_later_pairs():
    pairs = [(100.0, 95.0)] * 8 + [(100.0, 100.0)] * 8
    assert judge(pairs).verdict is ABVerdict.SLOWER


def test_the_expected_capital_under_symmetry_is_what_was_put_in():
    """Over all sign patterns of seven sizes the mean is exactly 1."""
    sizes = (0.3, 1.0, 0.01, 20.0, 2.0, 1.5, 0.7)
    capitals = [
        evidence_above_zero([size if pattern >> place & 1 else -size for place, size in enumerate(sizes)])[-1]
        for pattern in range(2 ** len(sizes))
    ]
    assert sum(capitals) / len(capitals) == pytest.approx(1)


@pytest.mark.parametrize(
    ("ratio", "change", "expected"),
    [
        (0.97, 0.97, ABVerdict.SLOWER),
        (1.0, 0.97, ABVerdict.SAME),
        (1.03, 1.03, ABVerdict.FASTER),
        (1.0, 1.03, ABVerdict.SAME),
        (0.90, 0.97, ABVerdict.SLOWER),
        (1.1, 0.97, ABVerdict.SAME),
    ],
)
def test_a_side_of_a_bisection_is_recognised(ratio, change, expected):
    assert nearer_level(pairs_of(normal, ratio, 60, 3), change, 0.01) is expected


@pytest.mark.parametrize("noise", NOISES)
def test_the_wrong_side_is_taken_in_at_most_the_stated_share(noise):
    simulations = 150
    wrong = sum(
        nearer_level(pairs_of(noise, 1.0, 50, seed), 0.97, 0.05) is ABVerdict.SLOWER
        or nearer_level(pairs_of(noise, 0.97, 50, seed), 0.97, 0.05) is ABVerdict.SAME
        for seed in range(simulations)
    )
    assert wrong / simulations <= 0.05


def test_what_is_no_throughput_is_refused():
    with pytest.raises(ValueError, match="not a pair of throughputs"):
        judge([(1.0, 0.0)])
