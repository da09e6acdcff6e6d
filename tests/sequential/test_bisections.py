"""Whole bisections over simulated noise: benchmarks/bisection.py has many more of them."""

from __future__ import annotations

import math

import pytest
from benchmarks.simulated_bisections import bisect, heavy_tailed, normal

from trainmark.measure.bisection import BisectionRules, ChangeSide, certain_change, side_of

QUIET = (0.999, 1.001, 1.0, 1.0005, 0.9995, 1.0002, 0.9998, 1.0001, 0.9999, 1.0)


def pairs(ratio: float) -> tuple[tuple[float, float], ...]:
    return tuple((1000.0, 1000.0 * ratio * factor) for factor in QUIET)


@pytest.mark.parametrize(("noise", "change"), [(normal(0.01), 0.96), (heavy_tailed(0.01), 1.06)])
def test_the_culprit_is_among_the_suspects_of_noisy_bisections(noise, change):
    outcomes = [bisect(32, change, noise, seed, skipped=0.15, drift=0.001) for seed in range(6)]
    assert [outcome.wrong for outcome in outcomes] == [False] * 6
    assert all(outcome.suspects is not None for outcome in outcomes)


def test_without_a_change_no_search_begins():
    outcomes = [bisect(32, 1.0, normal(0.003), seed) for seed in range(3)]
    assert [outcome.suspects for outcome in outcomes] == [None] * 3


def test_the_level_looked_for_is_never_further_than_the_certain_change_allows():
    rules = BisectionRules()
    judgement = rules.reference(pairs(0.9))
    change = rules.change(judgement)
    assert change is not None
    assert math.log(0.9) - 0.002 <= math.log(change) < 0
    assert 0.75 * -math.log(change) <= certain_change(judgement) + 1e-12


def test_alike_sides_have_no_change_to_look_for():
    rules = BisectionRules()
    assert rules.change(rules.reference(pairs(1.0))) is None
    assert rules.reference_decided(pairs(1.0))


@pytest.mark.parametrize(
    ("ratio", "side"), [(1.0, ChangeSide.GOOD), (0.9, ChangeSide.BAD), (0.8, ChangeSide.BAD)]
)
def test_an_item_is_placed_on_its_side(ratio, side):
    assert side_of(pairs(ratio), 0.9, 0.01) is side


def test_two_pairs_place_nothing():
    assert side_of(pairs(0.9)[:2], 0.9, 0.01) is None
