from __future__ import annotations

from dataclasses import replace

import pytest
from measured_streams import KEY as UNKNOWN
from measured_streams import figure_with

from trainmark.measure.figure import KNOWN, MEASURED, Utilisation
from trainmark.measure.result import CaseTrial, failed_cases, summarize
from trainmark.measure.utilisation import with_best_peaks

KEY = replace(UNKNOWN, device="NVIDIA H200")
OTHER_FRAMEWORK = replace(KEY, framework="jax")


def figure_at(flops, bandwidth, throughput=100.0):
    """Of a step of 1e9 operations and 1e8 bytes a sample."""
    return figure_with(
        throughput,
        utilisation=Utilisation(1e9 * throughput / flops, flops, MEASURED),
        memory_share=1e8 * throughput / bandwidth,
        peak_bandwidth=bandwidth,
    )


def test_all_frameworks_on_a_device_are_held_against_the_best_that_any_of_them_found():
    low, high = with_best_peaks([(KEY, figure_at(1e12, 4e11)), (OTHER_FRAMEWORK, figure_at(2e12, 3e11))])
    assert low.utilisation == high.utilisation == Utilisation(pytest.approx(0.05), 2e12, MEASURED)
    assert low.memory_share == high.memory_share == pytest.approx(0.025)
    assert low.peak_bandwidth == high.peak_bandwidth == 4e11


@pytest.mark.parametrize(
    "other",
    [{"device": "another"}, {"precision": "bf16"}, {"threads": 3}, {"nodes": 2}, {"devices_per_node": 2}],
)
def test_another_device_precision_or_number_of_them_has_floors_of_its_own(other):
    trials = [(KEY, figure_at(1e12, 4e11)), (replace(KEY, **other), figure_at(2e12, 8e11))]
    assert with_best_peaks(trials) == [figure for _, figure in trials]


def test_devices_that_nobody_names_need_not_be_alike():
    trials = [(UNKNOWN, figure_at(1e12, 4e11)), (UNKNOWN, figure_at(2e12, 8e11))]
    assert with_best_peaks(trials) == [figure for _, figure in trials]


def test_what_is_known_of_a_device_is_neither_changed_nor_taken_for_measured():
    known = figure_with(100, utilisation=Utilisation(0.5, 9e12, KNOWN))
    trials = [(KEY, known), (KEY, figure_at(1e12, 4e11)), (KEY, figure_with(100)), (KEY, None)]
    assert with_best_peaks(trials) == [figure for _, figure in trials]


def test_of_one_peak_the_share_of_a_result_is_that_of_its_median_throughput():
    rates = (100.0, 300.0)
    (result,) = summarize([CaseTrial(KEY, figure_at(1e12, 4e11, rate)) for rate in rates])
    assert result.utilisation.value == pytest.approx(1e9 * result.throughput / 1e12)


def test_results_are_told_by_common_floors_and_failed_trials_still_count():
    trials = [
        CaseTrial(KEY, figure_at(1e12, 4e11)),
        CaseTrial(KEY, None),
        CaseTrial(OTHER_FRAMEWORK, figure_at(2e12, 3e11, 200.0)),
    ]
    one, other = summarize(trials)
    assert other.utilisation.value == pytest.approx(2 * one.utilisation.value)
    assert other.memory_share == pytest.approx(2 * one.memory_share)
    assert one.peak_bandwidth == other.peak_bandwidth == 4e11
    assert "1 of 2" in " ".join(doubt.message for doubt in one.doubts)
    assert failed_cases(trials) == {}
