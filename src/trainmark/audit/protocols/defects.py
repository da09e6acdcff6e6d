"""Where the DLPerf rules are known to go wrong, and our own figure of the same lines, for one log at a time.

Ours is samples over wall time, each step once, however many ranks print it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from statistics import harmonic_mean, median

from trainmark.audit.protocols.estimators import OurFigure, Sample
from trainmark.audit.protocols.protocol import ProtocolDoubt, parse_time

HALF_A_DAY = timedelta(hours=12)
SINK_MS = re.compile(r"epoch time: (\d+\.\d+) ms")
SINK_STEPS = re.compile(r"epoch: \d+ step: (\d{1,12})\b")


def wall_clock(sample: Sample) -> OurFigure | None:
    """From the first step at or after the warm-up to the last one in the window that the log has."""
    moments = _moments(sample)
    inside = [step for step in sorted(moments) if sample.window.warmup <= step <= sample.window.train]
    if len(inside) < 2:
        return None
    steps = inside[-1] - inside[0]
    seconds = (moments[inside[-1]] - moments[inside[0]]).total_seconds()
    return _figure(sample, steps, seconds)


def _moments(sample: Sample) -> dict[int, datetime]:
    """When each step was over: a clock without a date that falls back has passed midnight."""
    moments: dict[int, datetime] = {}
    last = datetime.min + HALF_A_DAY
    dated = sample.rule.time != "hours"
    for match in _progress(sample):
        read = parse_time(match["time"], sample.rule.clock)
        if read is None:
            continue
        while not dated and read < last - HALF_A_DAY:
            read += 2 * HALF_A_DAY
        last = max(last, read)
        moments[_step(match, len(moments) + 1) + sample.rule.step_offset] = last
    return moments


def _progress(sample: Sample) -> list[re.Match[str]]:
    return [match for line in sample.lines if (match := sample.rule.progress.search(line))]


def _step(match: re.Match[str], ordinal: int) -> int:
    """As printed, or else the how-manieth it is."""
    return int(match["step"]) if "step" in match.re.groupindex else ordinal


def step_times(sample: Sample) -> OurFigure | None:
    """The printed time of each step, the median over the ranks that print it; for logs without a clock."""
    by_step: dict[int, list[float]] = defaultdict(list)
    for number, match in enumerate(_progress(sample)):
        step = _step(match, number // sample.run.ranks + 1) + sample.rule.step_offset
        by_step[step].append(_seconds(match))
    inside = [median(by_step[step]) for step in by_step if sample.window.warmup < step <= sample.window.train]
    return _figure(sample, len(inside), sum(inside))


def _seconds(match: re.Match[str]) -> float:
    return float(match["seconds"]) if "seconds" in match.re.groupindex else float(match["ms"]) / 1000


def harmonic_rates(sample: Sample) -> OurFigure | None:
    """Printed rates over equal numbers of steps: their harmonic mean is samples over time."""
    return _harmonic(sample, 1)


def harmonic_steps_a_second(sample: Sample) -> OurFigure | None:
    """The same for steps per second, which the batch of all ranks turns into samples."""
    return _harmonic(sample, sample.run.global_batch)


def _harmonic(sample: Sample, samples_a_unit: int) -> OurFigure | None:
    window = islice(_progress(sample), sample.window.warmup, sample.window.train)
    rates = [float(match["rate"]) for match in window]
    if not rates or min(rates) <= 0:
        return None
    return OurFigure(round(samples_a_unit * harmonic_mean(rates), 2), len(rates))


def sink_epochs(sample: Sample) -> OurFigure | None:
    """Every rank prints the time of each sink epoch: the first N times are the first epoch's, and so on."""
    times = [float(match[1]) for line in sample.lines if (match := SINK_MS.search(line))]
    sink = next((int(match[1]) for line in sample.lines if (match := SINK_STEPS.search(line))), 0)
    if sink == 0:
        return None
    ranks = sample.run.ranks
    seconds = [
        sum(times[start : start + ranks]) / ranks / 1000 for start in range(0, len(times) - ranks + 1, ranks)
    ]
    inside = seconds[sample.window.warmup // sink : sample.window.train // sink]
    return _figure(sample, len(inside) * sink, sum(inside))


def _figure(sample: Sample, steps: int, seconds: float) -> OurFigure | None:
    if steps <= 0 or seconds <= 0:
        return None
    return OurFigure(round(sample.run.global_batch * steps / seconds, 2), steps)


SECONDS = re.compile(r"epoch\stime:\s[\d.]+ s\b")
STEP_TIME = re.compile(r"Time\s+(\d{2,}\.\d+)")
MEANINGFUL_BIAS = 0.001

# What is wrong with the speed that a rule gives, which is None where it leaves the file out.
Defect = Callable[[Sample, "float | None"], "str | None"]


def doubts_of(sample: Sample, speed: float | None) -> Iterator[ProtocolDoubt]:
    """Every log may end before the window does; what else can go wrong, the rule names."""
    for code in ("log-left-out", "truncated-counted-as-zero", "window-empty", *sample.rule.defects):
        if message := DEFECTS[code](sample, speed):
            yield ProtocolDoubt(code, f"{sample.run.label}: {message}.")


def _beside(sample: Sample) -> str:
    """Our figure as the end of a sentence."""
    figure = sample.rule.ours(sample)
    if figure is None:
        return "these lines give no right figure either"
    return f"ours is {figure.speed} over {figure.steps} steps"


def _bias(sample: Sample, speed: float | None) -> str | None:
    """How far the speed is off ours, in percent, where that means anything."""
    figure = sample.rule.ours(sample)
    if figure and speed and abs(speed / figure.speed - 1) > MEANINGFUL_BIAS:
        return f"{100 * (speed / figure.speed - 1):+.1f} %"
    return None


def left_out(sample: Sample, speed: float | None) -> str | None:
    if speed is not None:
        return None
    return "no step after the warm-up, so the rule leaves the file out without a word"


def counted_as_zero(sample: Sample, speed: float | None) -> str | None:
    if speed != 0:
        return None
    end = f"the log ends before line {sample.window.train} of the rule"
    return f"{end} and counts as 0 img/s; {_beside(sample)}"


def window_empty(sample: Sample, speed: float | None) -> str | None:
    if speed is None or not math.isnan(speed):
        return None
    return f"no line in the window, so the speed is NaN, and every mean with it; {_beside(sample)}"


def shortened(sample: Sample, speed: float | None) -> str | None:
    """A mean over fewer lines than the window asks for."""
    span, lines = sample.span, sum(1 for _ in sample.counted_lines())
    if span.first < lines < span.last:
        fewer = f"{lines - span.first} of {span.last - span.first}"
        return f"the log has {lines} lines, so the mean is over {fewer}; the rule does not say so"
    return None


def biased_mean(sample: Sample, speed: float | None) -> str | None:
    """A mean of rates lies above samples over time as soon as steps differ."""
    if bias := _bias(sample, speed):
        mean = f"{speed} is an arithmetic mean of rates, {bias} against samples over time"
        return f"{mean}; {_beside(sample)}"
    return None


def ranks_counted_as_steps(sample: Sample, speed: float | None) -> str | None:
    """Several ranks print the same iteration, and each line is counted as one."""
    used = list(islice(sample.counted_lines(), *sample.window))
    pattern = sample.rule.step
    assert pattern is not None
    distinct = {sample.text(pattern, line) for line in used}
    if used and len(distinct) < len(used):
        window = f"the {len(used)} lines of the window are {len(distinct)} iterations"
        return f"{window}, each printed by several ranks; {_beside(sample)}"
    return None


def tens_digit_lost(sample: Sample, speed: float | None) -> str | None:
    """`Time 12.054` reads as 2.054."""
    used = islice(sample.counted_lines(), *sample.window)
    if long := [match[1] for line in used if (match := STEP_TIME.search(line))]:
        step = f"the rule reads a step of {long[0]} s as {long[0][-5:]} s"
        return f"{step} ({len(long)} such steps); {_beside(sample)}"
    return None


def warmup_jumps(sample: Sample, speed: float | None) -> str | None:
    """The rule starts at its threshold for any warm-up up to it, and at warm-up minus threshold above."""
    warmup, first = sample.window.warmup, sample.span.first
    if warmup == first:
        return None
    jump = f"asked to ignore {warmup} steps, the rule ignores {first}"
    return f"{jump} (its warm-up jumps at {sample.rule.threshold}); {_beside(sample)}"


def divides_by_other_steps(sample: Sample, speed: float | None) -> str | None:
    """The lines, one in `multiple` steps, are further apart, or closer, than the steps divided by."""
    span = sample.span
    timed = (span.last - span.first) * sample.rule.multiple
    if speed and timed != span.steps:
        return f"{timed} steps are timed and {span.steps} divided by; {_beside(sample)}"
    return None


def passed_midnight(sample: Sample, speed: float | None) -> str | None:
    """A time of day without a date falls at midnight."""
    if speed is not None and speed < 0:
        return f"the clock has no date and the run passes midnight; {_beside(sample)}"
    return None


def start_mark_recurs(sample: Sample, speed: float | None) -> str | None:
    """`Iteration: 10` is also found in `Iteration: 100`, and the clock starts anew there."""
    first, last = sample.marks
    starts = 0
    for line in sample.counted_lines():
        if first in line:
            starts += 1
        elif last in line:
            break
    if starts > 1:
        marks = f"{first!r} stands in {starts} lines, and the rule starts at the last"
        return f"{marks}; {_beside(sample)}"
    return None


def uneven_ranks(sample: Sample, speed: float | None) -> str | None:
    """Untagged ranks share one step counter, so boundary lines fall on the wrong side of it."""
    if bias := _bias(sample, speed):
        shared = f"the rule gives the lines of {sample.run.ranks} ranks to one step counter"
        return f"{shared} and divides by all of them, {bias}; {_beside(sample)}"
    return None


def seconds_taken_for_ms(sample: Sample, speed: float | None) -> str | None:
    """Newer MindSpore prints `epoch time: 40.559 s`."""
    if any(SECONDS.search(line) for line in sample.lines):
        return "the times are in seconds and the rule takes them for milliseconds, 1,000 times too fast"
    return None


def no_node_factor(sample: Sample, speed: float | None) -> str | None:
    """The batch of one node stands for all."""
    if sample.run.nodes > 1:
        counted = f"the rule counts the samples of one node of {sample.run.nodes}"
        return f"{counted}; where the log's steps are of all nodes, {_beside(sample)}"
    return None


DEFECTS: dict[str, Defect] = {
    "log-left-out": left_out,
    "truncated-counted-as-zero": counted_as_zero,
    "window-empty": window_empty,
    "window-shortened": shortened,
    "mean-of-rates": biased_mean,
    "ranks-counted-as-steps": ranks_counted_as_steps,
    "tens-digit-lost": tens_digit_lost,
    "warmup-not-as-asked": warmup_jumps,
    "divides-by-other-steps": divides_by_other_steps,
    "negative-over-midnight": passed_midnight,
    "start-mark-recurs": start_mark_recurs,
    "rank-lines-misassigned": uneven_ranks,
    "seconds-taken-for-ms": seconds_taken_for_ms,
    "no-node-factor": no_node_factor,
}
