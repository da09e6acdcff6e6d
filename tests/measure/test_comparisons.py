from __future__ import annotations

from dataclasses import replace

import pytest
from measured_streams import KEY, trials_with

from trainmark.measure.comparison import compare_results, fails_below, unmatched_keys
from trainmark.measure.result import summarize

RATES = [100.0, 100.2, 100.4, 100.6, 100.8, 101.0]


def _results(factor=1.0, n=6, **changes):
    return summarize(trials_with([factor * rate for rate in RATES[:n]], replace(KEY, **changes)))


def test_a_case_faster_by_five_percent_has_changed():
    (comparison,) = compare_results(_results(), _results(1.05))
    assert comparison.ratio.value == pytest.approx(1.05)
    assert comparison.changed


def test_the_same_rates_have_not_changed():
    (comparison,) = compare_results(_results(), _results())
    assert not comparison.changed


def test_three_trials_a_side_cannot_show_a_change():
    (comparison,) = compare_results(_results(n=3), _results(2.0, n=3))
    assert comparison.ratio.interval.confidence < 0.95
    assert not comparison.changed


def test_another_version_on_another_device_is_the_same_case_and_says_what_differs():
    (comparison,) = compare_results(_results(), _results(framework_version="3.0", device="H200"))
    assert comparison.differs == ("framework_version", "device")


def test_an_exact_partner_is_preferred_over_another_version():
    older = _results(0.5, framework_version="1.0")
    comparisons = compare_results(_results() + older, _results(1.1))
    assert [comparison.ratio.value for comparison in comparisons] == [pytest.approx(1.1)]


def test_cases_on_one_side_only_are_named():
    only_before, only_after = _results(precision="amp"), _results(precision="tf32")
    assert compare_results(only_before, only_after) == []
    assert unmatched_keys(only_before + _results(), _results() + only_after) == (
        [only_before[0].key],
        [only_after[0].key],
    )


@pytest.mark.parametrize(
    ("factor", "n", "fails"),
    [
        (0.90, 6, True),
        (0.97, 6, False),
        (0.90, 2, False),
    ],
    ids=["surely slower", "above the threshold", "too few trials to say"],
)
def test_a_comparison_fails_below_the_threshold(factor, n, fails):
    (comparison,) = compare_results(_results(n=n), _results(factor, n=n))
    assert fails_below(comparison, 0.95) is fails


def test_who_asks_for_it_has_too_few_trials_fail_below_the_threshold_alone():
    (slower,) = compare_results(_results(n=2), _results(0.9, n=2))
    (equal,) = compare_results(_results(n=2), _results(n=2))
    assert fails_below(slower, 0.95, unsure=True)
    assert not fails_below(equal, 0.95, unsure=True)


def test_a_slowdown_within_the_noise_does_not_fail():
    before = summarize(trials_with([90.0, 95.0, 100.0, 100.0, 105.0, 110.0]))
    after = summarize(trials_with([80.0, 88.0, 94.0, 94.0, 108.0, 112.0]))
    (comparison,) = compare_results(before, after)
    assert comparison.ratio.value < 0.95
    assert not fails_below(comparison, 0.95)
    assert not fails_below(comparison, 0.95, unsure=True)
