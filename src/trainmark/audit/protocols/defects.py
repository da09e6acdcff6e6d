"""Where the DLPerf rules are known to go wrong, looked for in one log at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import islice

from trainmark.audit.protocols.protocol import ProtocolDoubt
from trainmark.audit.protocols.rule import OurFigure, Sample

SECONDS = re.compile(r"epoch\stime:\s[\d.]+ s\b")
STEP_TIME = re.compile(r"Time\s+(\d{2,}\.\d+)")
MEANINGFUL_BIAS = 0.001

DefectCheck = Callable[[Sample, "float | None"], Iterator[ProtocolDoubt]]


def beside(sample: Sample) -> str:
    """Our figure as the end of a sentence."""
    figure = sample.rule.ours(sample)
    if figure is None:
        return "these lines give no right figure either"
    return f"ours is {figure.speed} over {figure.steps} steps"


def _percent(speed: float, figure: OurFigure) -> str:
    return f"{100 * (speed / figure.speed - 1):+.1f} %"


def fell_short(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """A log that ends before the window does."""
    label, train = sample.run.label, sample.window.train
    if speed is None:
        yield ProtocolDoubt(
            "log-left-out",
            f"{label}: no step after the warm-up, so the rule leaves the file out without a word.",
        )
    elif speed == 0:
        yield ProtocolDoubt(
            "truncated-counted-as-zero",
            f"{label}: the log ends before line {train} of the rule and counts as 0 img/s; {beside(sample)}.",
        )
    elif math.isnan(speed):
        yield ProtocolDoubt(
            "window-empty",
            f"{label}: no line in the window, so the speed is NaN, and every mean with it; {beside(sample)}.",
        )


def shortened(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """A mean over fewer lines than the window asks for."""
    span, lines = sample.span, sum(1 for _ in sample.counted_lines())
    if span.first < lines < span.last:
        yield ProtocolDoubt(
            "window-shortened",
            f"{sample.run.label}: the log has {lines} lines, so the mean is over {lines - span.first} of "
            f"{span.last - span.first}; the rule does not say so.",
        )


def biased_mean(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """A mean of rates lies above samples over time as soon as steps differ."""
    figure = sample.rule.ours(sample)
    if figure and speed and abs(speed / figure.speed - 1) > MEANINGFUL_BIAS:
        yield ProtocolDoubt(
            "mean-of-rates",
            f"{sample.run.label}: {speed} is an arithmetic mean of rates, {_percent(speed, figure)} against "
            f"samples over time; {beside(sample)}.",
        )


def ranks_counted_as_steps(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """Several ranks print the same iteration, and each line is counted as one."""
    used = list(islice(sample.counted_lines(), sample.window.warmup, sample.window.train))
    pattern = sample.rule.step
    assert pattern is not None
    distinct = {sample.text(pattern, line) for line in used}
    if used and len(distinct) < len(used):
        yield ProtocolDoubt(
            "ranks-counted-as-steps",
            f"{sample.run.label}: the {len(used)} lines of the window are {len(distinct)} iterations, each "
            f"printed by several ranks; {beside(sample)}.",
        )


def tens_digit_lost(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """`Time 12.054` reads as 2.054."""
    used = islice(sample.counted_lines(), sample.window.warmup, sample.window.train)
    if long := [match[1] for line in used if (match := STEP_TIME.search(line))]:
        yield ProtocolDoubt(
            "tens-digit-lost",
            f"{sample.run.label}: the rule reads a step of {long[0]} s as {long[0][-5:]} s ({len(long)} such "
            f"steps); {beside(sample)}.",
        )


def warmup_jumps(threshold: int) -> DefectCheck:
    """The rule starts at the threshold for any warm-up up to it, and at warm-up minus threshold above."""

    def check(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
        warmup = sample.window.warmup
        if warmup != sample.span.first:
            yield ProtocolDoubt(
                "warmup-not-as-asked",
                f"{sample.run.label}: asked to ignore {warmup} steps, the rule ignores {sample.span.first} "
                f"(its warm-up jumps at {threshold}); {beside(sample)}.",
            )

    return check


def divides_by_other_steps(lines_apart: int) -> DefectCheck:
    """The lines are further apart, or closer, than the steps that the rule divides by."""

    def check(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
        span = sample.span
        timed = (span.last - span.first) * lines_apart
        if speed and timed != span.steps:
            yield ProtocolDoubt(
                "divides-by-other-steps",
                f"{sample.run.label}: {timed} steps are timed and {span.steps} divided by; {beside(sample)}.",
            )

    return check


def passed_midnight(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """A time of day without a date falls at midnight."""
    if speed is not None and speed < 0:
        yield ProtocolDoubt(
            "negative-over-midnight",
            f"{sample.run.label}: the clock has no date and the run passes midnight; {beside(sample)}.",
        )


def start_mark_recurs(marks: Callable[..., tuple[str, str]]) -> DefectCheck:
    """`Iteration: 10` is also found in `Iteration: 100`, and the clock starts anew there."""

    def check(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
        first, last = marks(sample.window)
        starts = 0
        for line in sample.counted_lines():
            if first in line:
                starts += 1
            elif last in line:
                break
        if starts > 1:
            yield ProtocolDoubt(
                "start-mark-recurs",
                f"{sample.run.label}: {first!r} stands in {starts} lines, and the rule starts at the last; "
                f"{beside(sample)}.",
            )

    return check


def uneven_ranks(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """Untagged ranks share one step counter, so boundary lines fall on the wrong side of it."""
    figure = sample.rule.ours(sample)
    if speed and figure and abs(speed / figure.speed - 1) > MEANINGFUL_BIAS:
        yield ProtocolDoubt(
            "rank-lines-misassigned",
            f"{sample.run.label}: the rule gives the lines of {sample.run.ranks} ranks to one step counter "
            f"and divides by all of them, {_percent(speed, figure)}; {beside(sample)}.",
        )


def seconds_taken_for_ms(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """Newer MindSpore prints `epoch time: 40.559 s`."""
    if any(SECONDS.search(line) for line in sample.lines):
        yield ProtocolDoubt(
            "seconds-taken-for-ms",
            f"{sample.run.label}: the times are in seconds and the rule takes them for milliseconds, "
            "1,000 times too fast.",
        )


def no_node_factor(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """The batch of one node stands for all."""
    if sample.run.nodes > 1:
        yield ProtocolDoubt(
            "no-node-factor",
            f"{sample.run.label}: the rule counts the samples of one node of {sample.run.nodes}; "
            f"where the log's steps are of all nodes, {beside(sample)}.",
        )
