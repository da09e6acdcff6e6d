from __future__ import annotations

from dataclasses import replace

import pytest
from finish_streams import training
from measured_streams import KEY, figure_with

from trainmark.base.typed_json import decode, encode
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import Result
from trainmark.measure.finish import finish_of
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.trace import trace_of

TARGET = replace(KEY, data="images", loader="host", dataset="made", recipe="ai-rank", target="top1=0.5")


def seed(step_seconds=0.5, key=TARGET, throughput=64.0, wait=None, **changes):
    finish = finish_of(trace_of(training(step_seconds=step_seconds, **changes)))
    return CaseTrial(key, figure_with(throughput, finish=finish, data_wait_share=wait))


def codes(result):
    return {doubt.code for doubt in result.doubts}


def message(result, code):
    (text,) = [doubt.message for doubt in result.doubts if doubt.code is code]
    return text


def test_the_time_over_seeds_is_their_median_with_an_interval_over_them():
    (result,) = summarize([seed(seconds) for seconds in (0.5, 0.6, 0.7, 0.55, 0.65, 0.75)])
    times = sorted(9 + 20 * seconds + 20 * seconds for seconds in (0.5, 0.6, 0.7, 0.55, 0.65, 0.75))
    assert result.finish.time2train == pytest.approx((times[2] + times[3]) / 2)
    assert (result.finish.interval.low, result.finish.interval.high) == pytest.approx((times[0], times[-1]))
    assert result.finish.interval.confidence > 0.95


def test_a_seed_that_misses_the_target_counts_as_longer_than_any_that_does_not():
    missed = seed(top1=(0.1, 0.2, 0.3))
    (result,) = summarize([seed(0.5), seed(0.6), missed])
    assert result.finish.time2train == pytest.approx(9 + 40 * 0.6)
    assert (result.finish.reached, result.finish.decided, result.finish.interval) == (2, 3, None)
    assert "1 of 3 trials did not reach top1=0.5" in message(result, DoubtCode.TARGET_NOT_REACHED)


def test_where_half_of_the_seeds_miss_the_target_there_is_no_median():
    missed = seed(top1=(0.1, 0.2, 0.3))
    (result,) = summarize([seed(), missed])
    assert result.finish.time2train is None


def test_the_best_accuracy_is_that_of_the_best_seed():
    (result,) = summarize([seed(top1=(0.2, 0.55)), seed(top1=(0.2, 0.4, 0.6))])
    best = result.finish
    assert (best.best[0], best.best_epoch, best.lowest) == (("top1", 0.6), 3, (("top1", 0.55),))


def test_speed_up_by_time_and_by_throughput_are_both_told_and_differ():
    four = replace(TARGET, devices_per_node=4)
    more_epochs = (0.1, 0.2, 0.3, 0.4, 0.6)
    results = summarize([seed(), seed(0.125, four, 256.0, top1=more_epochs)])
    assert results[1].speedup.value == pytest.approx(4)
    assert results[1].finish.time_speedup.value == pytest.approx(29 / (15 + 10 * 0.25 + 40 * 0.125))
    assert results[0].finish.time_speedup.value == 1


def test_seeds_far_apart_in_accuracy_raise_a_doubt():
    (wide,) = summarize([seed(top1=(0.55,)), seed(top1=(0.75,))])
    assert "between 55.00 % and 75.00 %" in message(wide, DoubtCode.ACCURACY_SPREAD)


def test_seeds_as_far_apart_as_so_few_images_can_tell_raise_none():
    (close,) = summarize([seed(top1=(0.55,)), seed(top1=(0.62,))])
    assert DoubtCode.ACCURACY_SPREAD not in codes(close)


@pytest.mark.parametrize(
    ("wait", "advice"), [(0.10, "raise `workers`"), (0.001, "hardly waited"), (None, "hardly waited")]
)
def test_what_real_data_cost_is_measured_against_synthetic_data_in_the_same_run(wait, advice):
    synthetic = replace(KEY, data="synthetic")
    trials = [CaseTrial(synthetic, figure_with(value)) for value in (100.0, 101.0, 102.0, 99.0)]
    trials += [seed(throughput=value, wait=wait) for value in (88.0, 89.0, 88.5, 87.0)]
    result = summarize(trials)[1]
    assert result.of_synthetic.value == pytest.approx(88.25 / 100.5)
    assert f"loses {1 - 88.25 / 100.5:.0%} to its data" in message(result, DoubtCode.DATA_BOUND)
    assert advice in message(result, DoubtCode.DATA_BOUND)


def test_real_data_that_keep_up_raise_no_doubt():
    synthetic = [CaseTrial(replace(KEY, data="synthetic"), figure_with(100.0 + i)) for i in range(4)]
    result = summarize([*synthetic, *(seed(throughput=99.0 + i) for i in range(4))])[1]
    assert DoubtCode.DATA_BOUND not in codes(result)


def test_a_result_with_a_finish_survives_its_dictionary():
    (result,) = summarize([seed(0.5), seed(0.6), seed(0.7)])
    assert decode(Result, encode(result)) == result


def test_a_result_without_trainings_has_no_finish():
    (result,) = summarize([CaseTrial(KEY, figure_with(100.0))])
    assert (result.finish, result.of_synthetic) == (None, None)
