"""The profiled step against the steps timed without the profiler."""

from __future__ import annotations

import pytest
from builders_step import Span, profile_of

from trainmark.explain.step.agreement import agreement, corrected_breakdown
from trainmark.explain.step.breakdown import breakdown

MILLISECOND = 1_000_000


def kernels(count: int, lasting: int, gap: int, in_graph: bool = False, start: int = 0):
    """Kernels of one launch, one behind the other; times in milliseconds."""
    step = (lasting + gap) * MILLISECOND
    return [
        Span("k", start + n * step, start + n * step + lasting * MILLISECOND, launch=1, in_graph=in_graph)
        for n in range(count)
    ]


def judged(spans, total: int, measured: list[float], lost: int = 0):
    profile = profile_of(spans, [total * MILLISECOND], lost=lost)
    busy = breakdown(profile, ["copy"] * len(spans)).busy
    return agreement(profile, measured, busy, 1)


def test_steps_within_three_percent_agree():
    result = judged(kernels(10, 10, 0), 102, [0.090, 0.110])
    assert result.refusal is None
    assert result.difference == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("measured", "sentence"),
    [
        (0.090, "took 11.1% longer than the steps timed without the profiler (100.00 against 90.00 ms)"),
        (0.110, "took 9.1% shorter than"),
    ],
)
def test_steps_that_differ_by_more_are_refused_with_both_times(measured, sentence):
    result = judged(kernels(10, 10, 0), 100, [measured])
    assert result.refusal is not None
    assert sentence in result.refusal


def test_lost_records_are_refused_even_where_the_steps_agree():
    assert judged(kernels(10, 10, 0), 100, [0.1], lost=12).refusal == (
        "The profiler lost 12 records: profile fewer steps."
    )


def test_a_trace_from_elsewhere_has_nothing_to_agree_with():
    result = judged(kernels(10, 10, 0), 100, [])
    assert (result.measured, result.refusal, result.difference) == (None, None, None)


def test_a_profile_without_records_of_the_device_is_refused():
    assert judged([], 100, [0.1]).refusal == "The profile has no records of the device."


def test_gaps_inside_a_graph_that_tracing_widened_are_corrected():
    result = judged(kernels(10, 8, 2, in_graph=True), 100, [0.085])
    assert (result.refusal, result.corrected) == (None, True)


def test_the_same_gaps_without_a_graph_are_refused():
    assert judged(kernels(10, 8, 2), 100, [0.085]).refusal is not None


def test_kernels_that_take_longer_than_the_measured_step_are_refused_under_graphs_too():
    assert judged(kernels(10, 8, 2, in_graph=True), 100, [0.070]).refusal is not None


def test_an_excess_outside_of_graph_launches_is_refused():
    assert judged(kernels(10, 8, 0, in_graph=True), 100, [0.085]).refusal is not None


def test_a_corrected_breakdown_adds_up_to_the_measured_step():
    spans = kernels(10, 8, 2, in_graph=True)
    profile = profile_of(spans, [100 * MILLISECOND])
    parts = corrected_breakdown(breakdown(profile, ["copy"] * 10), profile, 0.0853)
    assert parts.total == 85_300_000
    assert sum(part.alone for part in parts.classes) + parts.idle == parts.total
    # After the last node the device waited for the next launch: that gap is not the profiler's.
    assert parts.gaps[-1].nanoseconds == 2 * MILLISECOND


def test_a_correction_takes_no_more_than_the_gaps_of_graphs():
    spans = kernels(10, 8, 2, in_graph=True)
    profile = profile_of(spans, [100 * MILLISECOND])
    parts = corrected_breakdown(breakdown(profile, ["copy"] * 10), profile, 0.080)
    assert parts.total == 82 * MILLISECOND
    assert len(parts.gaps) == 1
