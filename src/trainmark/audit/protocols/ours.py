"""Our own figure from the same lines: samples over wall time, each step once, however many ranks print it."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import islice
from statistics import harmonic_mean, median

from trainmark.audit.protocols.protocol import TIME_OF_DAY, parse_time
from trainmark.audit.protocols.rule import OurFigure, Sample

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
    dated = sample.rule.clock != TIME_OF_DAY
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
