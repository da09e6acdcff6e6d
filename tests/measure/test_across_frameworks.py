"""The same case in several frameworks, each as a share of the best."""

from __future__ import annotations

from dataclasses import replace

import pytest
from measured_streams import KEY, trials_with

from trainmark.measure.comparison import framework_comparisons
from trainmark.measure.result import summarize

RATES = [100.0, 100.2, 100.4, 100.6, 100.8, 101.0]


def _results(framework, factor=1.0, **changes):
    key = replace(KEY, framework=framework, **changes)
    return summarize(trials_with([factor * rate for rate in RATES], key))


def test_a_share_is_of_the_fastest_and_has_the_interval_of_a_ratio():
    (contest,) = framework_comparisons([*_results("slow", 0.8), *_results("fast")])
    best, other = contest.entrants
    assert (best.result.key.framework, best.share.value) == ("fast", 1)
    assert other.share.value == pytest.approx(0.8)
    assert other.share.interval.low < 0.8 < other.share.interval.high
    assert other.share.interval.confidence >= 0.95


@pytest.mark.parametrize("name", ["framework_version", "layout", "compiler"])
def test_frameworks_may_differ_in_version_layout_and_compiler(name):
    assert framework_comparisons([*_results("a", **{name: "x"}), *_results("b", **{name: "y"})])


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "bf16"}, {"loss_scale": "128"}, {"batch_per_device": 7},
        {"axes": (("image_size", 96),)},
        {"device": "other"}, {"data": "synthetic-host"}, {"threads": 3},
        {"variant": "mine"}, {"workload": "bert"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_frameworks_that_differ_in_anything_else_are_not_compared(change):
    assert framework_comparisons([*_results("a"), *_results("b", **change)]) == ()


def test_one_framework_in_two_layouts_is_no_contest():
    assert framework_comparisons([*_results("a", layout="NCHW"), *_results("a", layout="NHWC")]) == ()


def test_our_own_fused_step_is_no_frameworks_entrant():
    assert framework_comparisons([*_results("a", compiler="fused+cuda-graph"), *_results("b")]) == ()


def test_a_program_of_no_framework_is_in_no_contest():
    assert framework_comparisons([*_results(None), *_results("a")]) == ()


def test_a_framework_alone_at_a_topology_has_no_share_of_a_best_there():
    results = [*_results("a"), *_results("b"), *_results("a", 1.9, devices_per_node=2)]
    (contest,) = framework_comparisons(results)
    shares = {(each.result.key.framework, each.result.key.topology): each.share for each in contest.entrants}
    assert shares["a", "1n2g"] is None
    assert shares["a", "1n1g"] is not None


def test_entrants_stand_by_devices_and_then_the_fastest_first():
    results = [
        *_results("a", 1.0),
        *_results("b", 2.0),
        *_results("a", 1.9, devices_per_node=2),
        *_results("b", 1.5, devices_per_node=2),
    ]
    (contest,) = framework_comparisons(list(reversed(results)))
    order = [(each.result.key.topology, each.result.key.framework) for each in contest.entrants]
    assert order == [("1n1g", "b"), ("1n1g", "a"), ("1n2g", "a"), ("1n2g", "b")]
