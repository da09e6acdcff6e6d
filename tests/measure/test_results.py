from __future__ import annotations

from dataclasses import replace

import pytest
from measured_streams import KEY, figure_with, trials_with

from trainmark.measure.doubts import Doubt, DoubtCode, doubt
from trainmark.measure.figure import Interval, StepTimes, Straggler, Utilisation, Window, WindowVerdict
from trainmark.measure.result import CaseTrial, failed_cases, summarize

EIGHT = replace(KEY, devices_per_node=8)
STEADY = [100.0, 100.5, 101.0, 101.5, 102.0, 102.5]


def _codes(result):
    return [doubt.code for doubt in result.doubts]


def test_a_result_is_the_median_over_its_trials_with_its_interval():
    (result,) = summarize(trials_with([103.0, 100.0, 101.0, 102.0, 104.0, 99.0]))
    assert (result.throughput, result.n) == (101.5, 6)
    assert result.interval == Interval(99.0, 104.0, 0.96875)


def test_one_slow_trial_moves_the_median_no_further_than_a_fast_one():
    (result,) = summarize(trials_with([100.0, 101.0, 102.0, 103.0, 10.0]))
    assert result.throughput == 101.0


def test_six_close_trials_raise_no_doubt():
    (result,) = summarize(trials_with(STEADY))
    assert result.doubts == ()


def test_results_come_in_order_of_appearance():
    trials = trials_with([8.0], EIGHT) + trials_with([1.0]) + trials_with([8.1], EIGHT)
    assert [result.key for result in summarize(trials)] == [EIGHT, KEY]


def test_speedup_is_the_ratio_of_medians_and_efficiency_that_per_device():
    _, eight = summarize(trials_with(STEADY) + trials_with([7 * rate for rate in STEADY], EIGHT))
    assert eight.speedup.value == pytest.approx(7.0)
    assert eight.efficiency.value == pytest.approx(7 / 8)
    assert eight.speedup.interval.low < 7 < eight.speedup.interval.high
    assert eight.efficiency.interval.high == pytest.approx(eight.speedup.interval.high / 8)


def test_the_baseline_against_itself_is_exactly_one():
    (result,) = summarize(trials_with(STEADY))
    assert (result.speedup.value, result.speedup.interval.low, result.speedup.interval.high) == (
        1.0,
        1.0,
        1.0,
    )


@pytest.mark.parametrize("other", [{"precision": "amp"}, {"batch_per_device": 32}, {"device": "A100"}])
def test_a_baseline_of_another_case_is_no_baseline(other):
    _, eight = summarize(trials_with(STEADY, replace(KEY, **other)) + trials_with(STEADY, EIGHT))
    assert (eight.speedup, eight.efficiency) == (None, None)


def test_a_baseline_that_only_failed_is_no_baseline():
    (eight,) = summarize([CaseTrial(KEY, None), *trials_with(STEADY, EIGHT)])
    assert eight.speedup is None


def test_a_case_that_only_failed_has_no_result_and_is_named_apart():
    trials = [CaseTrial(KEY, None), CaseTrial(KEY, None), *trials_with(STEADY, EIGHT)]
    assert [result.key for result in summarize(trials)] == [EIGHT]
    assert failed_cases(trials) == {KEY: 2}


def test_failed_trials_are_counted_beside_the_figure():
    (result,) = summarize([CaseTrial(KEY, None), *trials_with(STEADY)])
    assert (result.n, _codes(result)) == (6, [DoubtCode.FAILED_TRIALS])
    assert "1 of 7 trials failed" in result.doubts[0].message


def test_five_trials_are_few():
    (result,) = summarize(trials_with(STEADY[:5]))
    assert _codes(result) == [DoubtCode.FEW_TRIALS]


def test_trials_far_apart_are_noisy():
    (result,) = summarize(trials_with([90.0, 95.0, 100.0, 105.0, 110.0, 115.0]))
    assert _codes(result) == [DoubtCode.NOISY_TRIALS]


def test_trials_whose_middle_half_spans_four_percent_are_noisy():
    (result,) = summarize(trials_with([96.0, 98.0, 98.0, 102.0, 102.0, 104.0]))
    assert _codes(result) == [DoubtCode.NOISY_TRIALS]


@pytest.mark.parametrize(
    ("factor", "codes"), [(8.5, [DoubtCode.SUPERLINEAR]), (4.0, [DoubtCode.COLLAPSED_SCALING]), (7.5, [])]
)
def test_implausible_scaling_is_doubted(factor, codes):
    _, eight = summarize(trials_with(STEADY) + trials_with([factor * rate for rate in STEADY], EIGHT))
    assert _codes(eight) == codes


def test_superlinear_scaling_within_the_noise_is_not_doubted():
    wide = [95.0, 97.0, 100.0, 101.0, 103.0, 106.0]
    _, eight = summarize(trials_with(wide) + trials_with([8.3 * rate for rate in wide], EIGHT))
    assert DoubtCode.SUPERLINEAR not in _codes(eight)


def test_trials_from_two_environments_are_mixed():
    trials = [replace(trial, environment="ab"[i % 2]) for i, trial in enumerate(trials_with(STEADY))]
    (result,) = summarize(trials)
    assert _codes(result) == [DoubtCode.MIXED_ENVIRONMENT]


def test_doubts_of_trials_become_one_with_their_count():
    busy = Doubt(DoubtCode.HOST_BUSY, "Other processes took 30% of the host: stop them.")
    trials = trials_with(STEADY[:2], doubts=(busy,)) + trials_with(STEADY[2:])
    (result,) = summarize(trials)
    assert result.doubts == (Doubt(DoubtCode.HOST_BUSY, f"In 2 of 6 trials: {busy.message}", trials=2, of=6),)


def test_the_advice_on_warmup_is_that_of_the_trial_that_warmed_up_longest():
    trials = [
        trial
        for first in (216, 480, 90)
        for trial in trials_with(
            [100.0], doubts=(doubt(DoubtCode.WARMUP_PAST_WINDOW, floor=10, first=first),)
        )
    ]
    messages = {one.code: one.message for one in summarize(trials)[0].doubts}
    assert "Set warmup.steps to 480 or more" in messages[DoubtCode.WARMUP_PAST_WINDOW]


def test_the_wait_that_is_doubted_is_the_one_that_the_result_has():
    waits = (0.15, 0.25, 0.35)
    trials = [
        trial
        for wait in waits
        for trial in trials_with(
            [100.0], data_wait_share=wait, doubts=(doubt(DoubtCode.DATA_BOUND, wait=f"{wait:.1%}"),)
        )
    ]
    (result,) = summarize(trials)
    (message,) = (one.message for one in result.doubts if one.code is DoubtCode.DATA_BOUND)
    assert message.startswith("In 3 of 3 trials: Steps waited for data 25.0% of the time")
    assert result.data_wait_share == 0.25


def test_what_trials_do_not_know_is_unknown_and_the_rest_is_their_middle():
    figures = [
        figure_with(
            100 + i,
            memory_bytes=i,
            data_wait_share=None if i else 0.5,
            window=Window(i, 50, WindowVerdict.SETTLED),
        )
        for i in range(3)
    ]
    (result,) = summarize([CaseTrial(KEY, figure) for figure in figures])
    assert (result.memory_bytes, result.data_wait_share, result.warmup_steps) == (2, 0.5, 2)
    assert result.samples_per_joule is None


def test_step_times_are_those_of_the_middle_trial_but_the_longest_step_is_that_of_all():
    times = [StepTimes(i, i, i, i, 10 * i) for i in (1.0, 2.0, 5.0)]
    (result,) = summarize([CaseTrial(KEY, figure_with(100, step_times=each)) for each in times])
    assert result.step_times == StepTimes(2.0, 2.0, 2.0, 2.0, 50.0)


def test_a_rank_that_half_of_the_trials_name_is_a_straggler_of_the_result():
    slow = Straggler(3, "node1", 0.6, 0.5, 0.1, 10.0)
    trials = trials_with([100.0, 101.0], stragglers=(slow,)) + trials_with([102.0, 103.0])
    assert summarize(trials)[0].stragglers == (slow,)
    assert summarize([*trials, *trials_with([104.0])])[0].stragglers == ()


def test_utilisation_keeps_value_peak_and_source_of_one_trial_together():
    values = [
        Utilisation(0.3, 1e12, "measured"),
        Utilisation(0.5, 2e12, "known"),
        Utilisation(0.4, 3e12, "measured"),
    ]
    (result,) = summarize([CaseTrial(KEY, figure_with(100, utilisation=value)) for value in values])
    assert result.utilisation == values[2]


def test_ten_thousand_trials_of_one_case_still_give_a_ratio():
    rates = [100 + i % 7 for i in range(5000)]
    _, eight = summarize(trials_with(rates) + trials_with([8 * rate for rate in rates], EIGHT))
    assert eight.efficiency.value == pytest.approx(1.0)


def test_the_settling_steps_are_those_of_the_median_trial_that_settled():
    trials = [CaseTrial(KEY, figure_with(100.0, settling_steps=steps)) for steps in (4, None, 2, 9)]
    assert summarize(trials)[0].settling_steps == 4


def test_without_a_trial_that_settled_there_are_no_settling_steps():
    assert summarize(trials_with([100.0, 101.0]))[0].settling_steps is None
