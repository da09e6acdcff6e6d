"""The figure of one trial, from its trace and the device samples taken beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from trainmark.events import DeviceSample
from trainmark.events.ranges import number_in, text_in
from trainmark.events.schema import is_host
from trainmark.measure import figure_doubts
from trainmark.measure.breakdown import breakdown_of, long_steps, pauses_in, stragglers
from trainmark.measure.doubts import Doubt
from trainmark.measure.figure import Finish, StepTimes, Straggler, TrialFigure, Window, WindowVerdict
from trainmark.measure.finish import finish_of
from trainmark.measure.key import Key
from trainmark.measure.rank_events import RESUME_MARK
from trainmark.measure.statistics import Floats, rate_interval
from trainmark.measure.steady_window import SHORTEST_WINDOW, steady_window
from trainmark.measure.trace import Clock, Trace, TraceError
from trainmark.measure.utilisation import (
    NO_COUNTS,
    FlopCounts,
    peak_of_all_ranks,
    utilisation_of,
    window_joules,
)

# Steps that are dropped in any case of nothing, of a program and of a suite, if nobody says otherwise.
USUAL_WARMUPS = (0, 10, 20)


@dataclass(frozen=True)
class WindowRules:
    """What a trial must drop and keep: warm-up steps dropped in any case, steady steps wanted at least."""

    warmup_steps: int
    min_window_steps: int = SHORTEST_WINDOW


def measure_trial(
    trace: Trace,
    rules: WindowRules,
    key: Key | None = None,
    samples: Sequence[DeviceSample] = (),
    known_peak_flops: float | None = None,
    declared: FlopCounts = NO_COUNTS,
) -> TrialFigure:
    """Throughput over the steady window, and all that qualifies it; TraceError where no window is left.

    `known_peak_flops` is that of one device, used where the ranks did not measure their own, and `declared`
    has counts for what they did not report.
    """
    step_seconds = trace.step_seconds
    window = steady_window(step_seconds, rules.warmup_steps, rules.min_window_steps)
    if window.steps < 1:
        raise TraceError(
            f"the run has {len(step_seconds)} steps and {rules.warmup_steps} of them are warm-up: "
            "run more steps."
        )
    chosen = slice(window.first, window.stop)
    spans = trace.spans(window.first, window.stop)
    seconds, counted = sum(end - begin for begin, end in spans), float(trace.samples[chosen].sum())
    if seconds <= 0:
        raise TraceError(
            "all steps of the steady window came at one moment: its clock is too coarse, or the program "
            "holds its lines back (let it flush its output)."
        )
    throughput = counted / seconds
    if not 0 < throughput < inf:
        raise TraceError(f"{counted:g} samples in {seconds:g} s are no rate.")
    wait_share = None if trace.data_wait is None else float(trace.data_wait[chosen].sum()) / seconds
    joules = window_joules(samples, trace.clock, spans)
    slow = stragglers(trace, window, throughput)
    inside = list(_inside(samples, trace.clock, spans))
    finish = finish_of(trace)
    peak_bandwidth = peak_of_all_ranks(trace, "peak_bandwidth")
    utilisation = utilisation_of(trace, key, throughput, known_peak_flops, declared)
    return TrialFigure(
        throughput=throughput,
        interval=rate_interval(step_seconds[chosen], trace.samples[chosen]),
        unit=trace.unit,
        world_size=trace.world_size,
        window=window,
        step_times=_step_times(step_seconds[chosen]),
        first_step_seconds=float(step_seconds[0]),
        seconds=seconds,
        samples=counted,
        memory_bytes=_peak_memory(samples, on_host=False) if trace.memory is None else trace.memory,
        data_wait_share=wait_share,
        loss_first=float(trace.losses[0]) if trace.losses.size else None,
        loss_last=float(trace.losses[-1]) if trace.losses.size else None,
        joules=joules,
        samples_per_joule=counted / joules if joules else None,
        utilisation=utilisation.model,
        memory_share=_memory_share(trace, throughput, peak_bandwidth),
        peak_bandwidth=peak_bandwidth,
        doubts=tuple(_trial_doubts(trace, window, rules, key, inside, wait_share, slow, finish)),
        settling_steps=_settling_steps(step_seconds, rules),
        breakdown=breakdown_of(trace, window),
        stragglers=slow,
        finish=finish,
        host_memory_bytes=_peak_memory(samples, on_host=True),
        step_source=text_in(trace.facts, "source"),
        sample_source=text_in(trace.facts, "samples"),
        pauses=pauses_in(trace, window),
        hardware_utilisation=utilisation.hardware,
        conventions=utilisation.conventions,
    )


def _peak_memory(samples: Sequence[DeviceSample], on_host: bool) -> int | None:
    """The most that the trial's processes used on one device, or on one host, in any sample."""
    sizes = (sample.own_memory_bytes or 0 for sample in samples if is_host(sample.device) is on_host)
    return max(sizes, default=0) or None


def _inside(
    samples: Sequence[DeviceSample], clock: Clock, spans: Sequence[tuple[float, float]]
) -> Iterator[DeviceSample]:
    """The samples taken while the steps of the window trained."""
    begins = [begin for begin, _ in spans]
    for sample in samples:
        at = clock.of_sample(sample)
        span = bisect_right(begins, at) - 1
        if span >= 0 and at <= spans[span][1]:
            yield sample


def _settling_steps(step_seconds: Floats, rules: WindowRules) -> int | None:
    window = steady_window(step_seconds, 0, rules.min_window_steps)
    return window.first if window.verdict is WindowVerdict.SETTLED else None


def _over_by(step_seconds: Floats, rules: WindowRules) -> int | None:
    """The first step at which the warm-up is over for a usual floor below this one; None where for none."""
    floors = (floor for floor in USUAL_WARMUPS if floor < rules.warmup_steps)
    windows = (steady_window(step_seconds, floor, rules.min_window_steps) for floor in floors)
    return min(
        (each.first for each in windows if each.verdict is not WindowVerdict.NEVER_SETTLED), default=None
    )


def _step_times(seconds: Floats) -> StepTimes:
    p50, p90, p99 = (float(q) for q in np.quantile(seconds, [0.5, 0.9, 0.99]))
    return StepTimes(float(seconds.mean()), p50, p90, p99, float(seconds.max()))


def _memory_share(trace: Trace, throughput: float, peak: float | None) -> float | None:
    least = number_in(trace.facts, "bytes_per_sample")
    return least * throughput / peak if least and peak else None


def _trial_doubts(
    trace: Trace,
    window: Window,
    rules: WindowRules,
    key: Key | None,
    inside: Sequence[DeviceSample],
    wait_share: float | None,
    slow: Sequence[Straggler],
    finish: Finish | None,
) -> Iterator[Doubt]:
    variant = "program" if text_in(trace.facts, "source") else ""
    over_by = _over_by(trace.step_seconds, rules) if window.first > rules.warmup_steps else None
    yield from figure_doubts.window_doubts(
        window, rules.warmup_steps, rules.min_window_steps, variant, over_by
    )
    yield from figure_doubts.data_doubts(wait_share)
    yield from figure_doubts.sample_doubts(inside)
    yield from figure_doubts.loss_doubts(trace.losses, len(trace.ends))
    if key is not None:
        yield from figure_doubts.layout_doubts(key, trace.facts)
        yield from figure_doubts.clock_doubts(key, trace.facts, inside)
    yield from figure_doubts.fallback_doubts(trace.end_facts)
    if variant:
        yield from _untouched_doubts(trace, window)
    yield from figure_doubts.straggler_doubts(slow, trace.rank_communication is not None, trace.unit)
    if finish is not None:
        resumptions = [mark.facts for mark in trace.marks if mark.kind == RESUME_MARK and mark.rank == 0]
        yield from figure_doubts.finish_doubts(finish, resumptions)
        yield from figure_doubts.recipe_doubts(trace.facts)


def _untouched_doubts(trace: Trace, window: Window) -> Iterator[Doubt]:
    """Of a program that marks nothing itself."""
    chosen = slice(window.first, window.stop)
    seconds, wait = trace.step_seconds[chosen], trace.data_wait
    long = long_steps(seconds, None if wait is None else wait[chosen])
    counted = float(trace.samples[chosen].sum())
    total = float(seconds.sum())
    yield from figure_doubts.untouched_doubts(trace.facts, counted / total, trace.unit)
    yield from figure_doubts.long_step_doubts(long, window.steps, total, counted, trace.unit)
