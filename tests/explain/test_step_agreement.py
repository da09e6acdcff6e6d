"""The profiled step against the steps timed without the profiler."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders_step import Span, profile_of

from trainmark.explain.agreement import agreement, corrected_idle, reference_steps
from trainmark.explain.explanation import IdleTime

MILLISECOND = 1_000_000


def kernels(count: int, lasting: int, gap: int):
    """Kernels one behind the other; times in milliseconds."""
    step = (lasting + gap) * MILLISECOND
    return [Span("k", n * step, n * step + lasting * MILLISECOND, launch=1) for n in range(count)]


def idle(**milliseconds: int) -> list[IdleTime]:
    return [IdleTime(cause, time * MILLISECOND, 1) for cause, time in milliseconds.items()]


def judged(spans, total: int, measured: list[float], lost: int = 0, device: str = "cuda", **gaps: int):
    profile = replace(profile_of(spans, [total * MILLISECOND], lost=lost), device=device)
    return agreement(profile, measured, idle(**gaps), 1)


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


def test_a_host_that_cupti_slows_is_held_to_the_steps_measured_before_it():
    assert reference_steps([0.020, 0.021], 0.0138, "cuda", busy=0.004) == (0.0138,)


@pytest.mark.parametrize(
    ("beside", "measured", "device", "busy"),
    [
        ([0.0140, 0.0141], 0.0138, "cuda", 0.004),  # within 3 %
        ([0.013], 0.0138, "cuda", 0.004),  # faster
        ([0.020, 0.021], 0.0138, "cuda", 0.019),  # the device itself is slower by now
        ([0.020, 0.021], 0.0138, "cpu", 0.004),
        ([0.020, 0.021], None, "cuda", 0.004),
        ([], 0.0138, "cuda", 0.004),
    ],
)
def test_else_the_steps_beside_the_pass_are_the_reference(beside, measured, device, busy):
    assert reference_steps(beside, measured, device, busy) == tuple(beside)


def test_lost_records_are_refused_even_where_the_steps_agree():
    assert judged(kernels(10, 10, 0), 100, [0.1], lost=12).refusal == (
        "The profiler lost 12 records: profile fewer steps."
    )


def test_a_trace_from_elsewhere_has_nothing_to_agree_with():
    result = judged(kernels(10, 10, 0), 100, [])
    assert (result.measured, result.refusal, result.difference) == (None, None, None)


def test_a_profile_without_records_of_the_device_is_refused():
    assert judged([], 100, [0.1]).refusal == "The profile has no records of the device."


def test_gaps_that_tracing_widened_are_corrected():
    result = judged(kernels(10, 8, 2), 100, [0.085], launch=15, dependency=5)
    assert (result.refusal, result.corrected) == (None, True)


def test_on_a_cpu_operators_get_longer_too_and_nothing_is_corrected():
    assert judged(kernels(10, 8, 2), 100, [0.085], device="cpu", launch=20).refusal is not None


def test_kernels_that_take_longer_than_the_measured_step_are_refused():
    assert judged(kernels(10, 8, 2), 100, [0.070], launch=20).refusal is not None


def test_a_loader_takes_as_long_with_the_profiler_and_explains_nothing():
    assert judged(kernels(10, 8, 2), 100, [0.085], loader=20).refusal is not None


def test_a_profiled_step_that_is_shorter_than_the_measured_is_not_corrected():
    assert judged(kernels(10, 8, 2), 100, [0.101], launch=20).corrected is False


def test_causes_shrink_in_proportion_and_add_up_exactly():
    rows = corrected_idle(idle(dependency=5, launch=14, loader=30), 7 * MILLISECOND + 1)
    times = {row.cause: row.nanoseconds for row in rows}
    assert sum(times.values()) == 42 * MILLISECOND - 1
    assert times["loader"] == 30 * MILLISECOND
    assert times["launch"] / times["dependency"] == pytest.approx(14 / 5)
    assert [row.cause for row in rows] == ["loader", "launch", "dependency"]


def test_a_correction_takes_no_more_than_the_gaps():
    assert corrected_idle(idle(launch=14, dependency=5), 30 * MILLISECOND) == ()
