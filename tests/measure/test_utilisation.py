"""MFU, HFU and other codes' MFU, from what the ranks report to the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import KEY, events_of, figure_with

from trainmark.base.typed_json import decode, encode
from trainmark.events import RunStart
from trainmark.measure.comparison import compare_results, framework_comparisons, unmatched_keys
from trainmark.measure.figure import (
    MEASURED,
    WRITTEN_IN,
    ConventionUtilisation,
    TrialFigure,
    Utilisation,
)
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.measure.utilisation import FlopCounts, with_best_peaks

COUNTS = {
    "flops_per_sample": 1e9,
    "hardware_flops_per_sample": 1.25e9,
    "flops_by_convention": {"nanoGPT": 2e9, "torchtitan": 1.5e9},
}


def figure_of(ranks=1, declared=None, **facts):
    """64 samples a second and rank, and a peak of 1e12 on each."""
    events = [
        replace(event, facts={**event.facts, **facts}) if isinstance(event, RunStart) else event
        for event in events_of(np.ones(30), ranks=ranks)
    ]
    given = {"declared": declared} if declared else {}
    return measure_trial(trace_of(events), WindowRules(warmup_steps=2), **given)


def test_hfu_and_conventions_follow_from_the_same_rate_as_mfu():
    figure = figure_of(ranks=2, **COUNTS)
    assert figure.utilisation == Utilisation(pytest.approx(0.064), 2e12, MEASURED, 1e9)
    assert figure.hardware_utilisation == Utilisation(pytest.approx(0.08), 2e12, MEASURED, 1.25e9)
    nanogpt, torchtitan = figure.conventions
    assert torchtitan.utilisation == Utilisation(pytest.approx(0.096), 2e12, MEASURED, 1.5e9)
    assert nanogpt.utilisation == Utilisation(pytest.approx(2e9 * 128 / 624e12), 624e12, WRITTEN_IN, 2e9)


def test_a_program_that_reports_no_counts_has_those_of_its_declaration():
    declared = FlopCounts(hardware=2e9, conventions={"llm.c": 3e9})
    figure = figure_of(declared=declared, flops_per_sample=1e9)
    assert figure.hardware_utilisation.flops_per_sample == 2e9
    assert [(each.name, each.utilisation.flops_per_sample) for each in figure.conventions] == [("llm.c", 3e9)]
    assert figure_of(declared=declared, **COUNTS).hardware_utilisation.flops_per_sample == 1.25e9


@pytest.mark.parametrize(
    "written", [None, 7, [1e9], {"a": "many"}, {"a": -1.0}, {"a": float("inf")}, {"": 1e9}, {"a": 0}]
)
def test_conventions_that_are_no_counts_are_left_out(written):
    assert figure_of(flops_per_sample=1e9, flops_by_convention=written).conventions == ()


def test_a_common_peak_moves_all_shares_but_those_over_a_peak_written_into_a_code():
    low = figure_of(**COUNTS)
    high = replace(low, utilisation=Utilisation(0.016, 4e12, MEASURED, 1e9))
    key = replace(KEY, device="NVIDIA H200")
    figure, _ = with_best_peaks([(key, low), (key, high)])
    assert figure.utilisation.value == pytest.approx(low.utilisation.value / 4)
    assert figure.hardware_utilisation.value == pytest.approx(low.hardware_utilisation.value / 4)
    assert figure.conventions[0] == low.conventions[0]
    assert figure.conventions[1].utilisation.value == pytest.approx(low.conventions[1].utilisation.value / 4)


def test_a_result_has_the_median_of_each():
    def figure(share):
        own = Utilisation(share, 1e12, MEASURED, 1e9)
        return figure_with(
            100 * share, hardware_utilisation=own, conventions=(ConventionUtilisation("llm.c", own),)
        )

    (result,) = summarize([CaseTrial(KEY, figure(share)) for share in (0.1, 0.2, 0.4)])
    assert result.hardware_utilisation.value == 0.2
    assert [(each.name, each.utilisation.value) for each in result.conventions] == [("llm.c", 0.2)]


def test_a_figure_is_read_back_and_so_is_one_of_an_earlier_version():
    figure = figure_of(**COUNTS)
    written = encode(figure)
    assert decode(TrialFigure, written) == figure
    for name in ("hardware_utilisation", "conventions"):
        del written[name]
    del written["utilisation"]["flops_per_sample"]
    earlier = decode(TrialFigure, written)
    assert (earlier.hardware_utilisation, earlier.conventions) == (None, ())
    assert earlier.utilisation.flops_per_sample is None


def test_tokens_and_sequences_of_one_case_are_never_compared():
    def result(unit, framework="pytorch"):
        key = replace(KEY, framework=framework)
        (made,) = summarize([CaseTrial(key, figure_with(rate, unit=unit)) for rate in (99.0, 100.0)])
        return made

    tokens, sequences = result("tokens"), result("sequences")
    assert compare_results([tokens], [sequences]) == []
    assert unmatched_keys([tokens], [sequences]) == ([KEY], [KEY])
    assert framework_comparisons([tokens, result("sequences", "jax")]) == ()
    assert len(framework_comparisons([tokens, result("tokens", "jax")])) == 1
