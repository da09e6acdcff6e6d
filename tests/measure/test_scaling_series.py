"""Speed-up, efficiency and losses of results whose parts are known."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from measured_streams import KEY, trials_with

from trainmark.measure.comparison import ScalingKind, scaling
from trainmark.measure.figure import Breakdown, RankTimes, StepParts, TimeShares
from trainmark.measure.result import summarize

TWO, FOUR = replace(KEY, devices_per_node=2), replace(KEY, nodes=2, devices_per_node=2)


def parts(compute, data=0.0, other=0.0, straggling=0.0, communication=0.0):
    shares = TimeShares(compute, communication + straggling, data, other)
    return Breakdown(
        shares,
        StepParts(compute, data, other, straggling, communication),
        (RankTimes(0, None, shares, 0.4),),
    )


def results(*cases):
    return summarize(
        [trial for rates, key, breakdown in cases for trial in trials_with(rates, key, breakdown=breakdown)]
    )


def test_efficiency_and_losses_add_up_to_one():
    known = results(
        ([100.0] * 6, KEY, parts(0.9, data=0.1)),
        ([320.0] * 6, FOUR, parts(0.74, data=0.1, straggling=0.05, communication=0.11)),
    )
    (series,) = scaling(known)
    point = series.points[1]
    assert point.efficiency.value == pytest.approx(0.8)
    assert point.loss.communication == pytest.approx(0.11)
    assert point.loss.straggling == pytest.approx(0.05)
    assert point.loss.data == pytest.approx(0.02)
    assert point.loss.compute == pytest.approx(0.02)
    assert point.efficiency.value + sum(astuple(point.loss)) == pytest.approx(1)


def test_results_that_differ_in_topology_alone_scale_weakly_in_the_order_of_devices():
    (series,) = scaling(results(([310.0], FOUR, None), ([100.0], KEY, None), ([180.0], TWO, None)))
    assert series.kind is ScalingKind.WEAK
    assert [point.result.key.devices for point in series.points] == [1, 2, 4]


def test_one_global_batch_on_more_devices_scales_strongly():
    halved = replace(TWO, batch_per_device=32)
    (series,) = scaling(results(([100.0], KEY, None), ([150.0], halved, None)))
    assert (series.kind, series.global_batch) == (ScalingKind.STRONG, 64)
    assert series.points[1].efficiency.value == pytest.approx(0.75)


def test_the_fewest_devices_are_the_baseline_where_one_was_not_measured():
    (series,) = scaling(results(([180.0], TWO, None), ([342.0], FOUR, None)))
    assert series.baseline.key == TWO
    assert series.points[1].speedup.value == pytest.approx(1.9)
    assert series.points[1].efficiency.value == pytest.approx(0.95)


def test_the_interval_of_the_efficiency_is_that_of_the_speedup_over_the_devices():
    one, two = [100.0, 101, 99, 100, 102], [180.0, 181, 179, 183, 180]
    (series,) = scaling(results((one, KEY, None), (two, TWO, None)))
    speedup, efficiency = series.points[1].speedup.interval, series.points[1].efficiency.interval
    assert (efficiency.low, efficiency.high) == (speedup.low / 2, speedup.high / 2)
    assert speedup.confidence > 0.95


def test_a_case_without_a_breakdown_has_no_losses():
    (series,) = scaling(results(([100.0], KEY, None), ([180.0], TWO, parts(0.9, communication=0.1))))
    assert series.points[1].loss is None


def test_what_ran_on_one_number_of_devices_does_not_scale():
    other = replace(KEY, precision="amp")
    assert scaling(results(([100.0], KEY, None), ([180.0], other, None))) == ()
