"""A DLPerf rule as data, and the few ways in which the scripts turn lines into a speed, with their mistakes.

Pure functions of a `Sample`. 0 is what a script leaves when the log ends before its window does;
NaN is numpy's mean of nothing; None means that the script leaves the file out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainmark.audit.protocols.protocol import TIMES, BatchWindow, CaseLog, RuleStopsError, seconds_between

EPOCH = re.compile(r"epoch:\s(\d+)")
STEP = re.compile(r"step:\s(\d+)")
# NVIDIA's TensorFlow trainer does not print its first 20 steps.
TENSORFLOW_HIDES = 20


class LineSpan(NamedTuple):
    """Lines `first` to `last`, and the steps that the rule divides by."""

    first: int
    last: int
    steps: int


class OurFigure(NamedTuple):
    """Samples over wall time, and the steps it was measured over."""

    speed: float
    steps: int


@dataclass(frozen=True)
class DlperfRule:
    """The entry of protocols.yaml, whose head says what the names mean."""

    name: str
    keep: re.Pattern[str]
    value: re.Pattern[str]
    progress: re.Pattern[str]
    estimate: Callable[[Sample], float | None]
    ours: Callable[[Sample], OurFigure | None]
    span: str = "plain"
    rate: str = "as printed"
    time: str = "date"
    step: re.Pattern[str] | None = None
    skip_through: int = 0
    step_offset: int = 0
    threshold: int = 0
    multiple: int = 1
    average_digits: int = 2
    marks: str = ""
    mark_offset: int = 0
    defects: tuple[str, ...] = ()

    @property
    def clock(self) -> str:
        return TIMES[self.time].clock


@dataclass(frozen=True)
class Sample:
    """One log under one rule."""

    rule: DlperfRule
    run: CaseLog
    lines: list[str]
    window: BatchWindow

    @property
    def span(self) -> LineSpan:
        return SPANS[self.rule.span](self)

    @property
    def marks(self) -> tuple[str, str]:
        """The texts at which the window begins and ends."""
        first, last = self.window.warmup + self.rule.mark_offset, self.window.train + self.rule.mark_offset
        return self.rule.marks.format(first), self.rule.marks.format(last)

    def counted_lines(self) -> Iterator[str]:
        """The lines that count."""
        for line in self.lines:
            if self.rule.keep.search(line) and not self._skipped(line):
                yield line

    def _skipped(self, line: str) -> bool:
        if self.rule.step is None:
            return False
        return self.number(self.rule.step, line) <= self.rule.skip_through

    def rates(self) -> list[float]:
        """Every printed value as samples per second, as the rule reckons it."""
        try:
            rate = RATES[self.rule.rate]
            return [rate(self.number(self.rule.value, line), self.run) for line in self.counted_lines()]
        except ZeroDivisionError:
            raise RuleStopsError(f"{self.run.path}: {self.rule.name} divides by a time of zero.") from None

    def text(self, pattern: re.Pattern[str], line: str) -> str:
        match = pattern.search(line)
        if match is None:
            raise RuleStopsError(
                f"{self.run.path}: {self.rule.name} cannot read the line {line.strip()[:80]!r}."
            )
        return match[1].strip()

    def number(self, pattern: re.Pattern[str], line: str) -> float:
        """`12`, or the 12 of `12/400`."""
        text = self.text(pattern, line)
        try:
            return float(text.split("/")[0])
        except ValueError:
            raise RuleStopsError(
                f"{self.run.path}: {self.rule.name} takes {text[:40]!r} for a number: {line.strip()[:80]!r}."
            ) from None


RATES: dict[str, Callable[[float, CaseLog], float]] = {
    "as printed": lambda value, run: value,
    "to two decimals": lambda value, run: round(value, 2),
    "batch over latency": lambda value, run: 1000.0 / round(value, 1) * run.batch * run.nodes * run.devices,
    "batch over seconds": lambda value, run: round(run.global_batch / value, 4),
    "steps times the batch of a node": lambda value, run: round(value * run.devices * run.batch, 4),
}


def plain(sample: Sample) -> LineSpan:
    warmup, train = sample.window
    return LineSpan(warmup, train, train - warmup)


def threshold(sample: Sample) -> LineSpan:
    """Up to the threshold the warm-up is the threshold; above it, the threshold is taken off once more."""
    (warmup, train), jump = sample.window, sample.rule.threshold
    first = jump if warmup <= jump else warmup - jump
    return LineSpan(first, train, train - first)


def all_ranks(sample: Sample) -> LineSpan:
    """Every rank prints, so the n-th step ends at line n × ranks."""
    first, train = max(20, sample.window.warmup), sample.window.train
    return LineSpan(first * sample.run.ranks, train * sample.run.ranks, train - first)


def after_hidden(sample: Sample) -> LineSpan:
    warmup, train = sample.window
    return LineSpan(warmup - TENSORFLOW_HIDES, train - TENSORFLOW_HIDES, train - warmup)


def after_hidden_by_time(sample: Sample) -> LineSpan:
    """One line later than it should be, and divided by what is really between: 99 steps for 100."""
    first, last = sample.window.warmup - TENSORFLOW_HIDES + 1, sample.window.train - TENSORFLOW_HIDES
    return LineSpan(first, last, last - first)


def every_tenth(sample: Sample) -> LineSpan:
    warmup, train = sample.window
    return LineSpan(max(20, warmup) // 10, train // 10, train - warmup)


def every_hundredth(sample: Sample) -> LineSpan:
    warmup, train = sample.window
    return LineSpan(1 if warmup <= 100 else warmup // 100, train // 100, train - warmup)


SPANS: dict[str, Callable[[Sample], LineSpan]] = {
    "plain": plain,
    "threshold": threshold,
    "all ranks": all_ranks,
    "after hidden": after_hidden,
    "after hidden, by time": after_hidden_by_time,
    "every tenth": every_tenth,
    "every hundredth": every_hundredth,
}


def between_lines(sample: Sample) -> float:
    """The time from the first to the last line of the span, counted from 1."""
    span, start = sample.span, ""
    for number, line in enumerate(sample.counted_lines(), 1):
        if number == span.first:
            start = sample.text(sample.rule.value, line)
        elif number == span.last:
            return _speed(sample, start, sample.text(sample.rule.value, line), span.steps)
    return 0


def between_marks(sample: Sample) -> float:
    """The time from the last line that contains one mark to the first that contains the other."""
    (first, last), start = sample.marks, ""
    for line in sample.counted_lines():
        if first in line:
            start = sample.text(sample.rule.value, line)
        elif last in line:
            return _speed(sample, start, sample.text(sample.rule.value, line), sample.span.steps)
    return 0


def _speed(sample: Sample, start: str, end: str, steps: int) -> float:
    seconds = seconds_between(start, end, sample.rule.clock)
    if seconds is None:
        raise RuleStopsError(
            f"{sample.run.path}: {sample.rule.name} finds no time at warm-up {sample.window.warmup}, or none "
            f"that it can read: {start!r} to {end!r}."
        )
    if seconds == 0:
        raise RuleStopsError(
            f"{sample.run.path}: {sample.rule.name} divides by zero, no time passes in its window."
        )
    return round(sample.run.global_batch / (seconds / steps), 2)


def mean_of_rates(sample: Sample) -> float:
    """The arithmetic mean of the printed rates, of the span counted from 0; a short log shortens it."""
    rates = sample.rates()
    return _mean(np.array(rates[sample.span.first : sample.span.last]))


def median_over_ranks(sample: Sample) -> float:
    """The median over the ranks of each step, then the mean over the span; the lines must come out even."""
    return _median_over(sample, sample.run.ranks)


def median_of_one_rank(sample: Sample) -> float:
    """The same where one rank prints."""
    return _median_over(sample, 1)


def _median_over(sample: Sample, ranks: int) -> float:
    rates = np.array(sample.rates())
    if rates.size != sample.window.train * ranks:
        raise RuleStopsError(
            f"{sample.run.path}: {sample.rule.name} needs exactly {sample.window.train} × {ranks} lines, "
            f"and there are {rates.size}."
        )
    by_step = np.median(rates.reshape(sample.window.train, ranks), axis=1)
    return _mean(by_step[sample.span.first : sample.span.last])


def _mean(rates: np.ndarray) -> float:
    return round(np.mean(rates), 2) if rates.size else float("nan")


def mean_of_step_times(sample: Sample) -> float:
    """The printed step times after the first `warmup` lines up to line `train`, whoever printed them."""
    seconds = 0.0
    for number, line in enumerate(sample.counted_lines(), 1):
        if number > sample.window.warmup:
            seconds += sample.number(sample.rule.value, line)
        if number == sample.window.train:
            steps = sample.window.train - sample.window.warmup
            if seconds == 0:
                raise RuleStopsError(
                    f"{sample.run.path}: {sample.rule.name} divides by zero, every time reads as 0."
                )
            return round(float(sample.run.global_batch / (seconds / steps)), 2)
    return 0


def sum_over_ranks(sample: Sample) -> float | None:
    """MindSpore's ResNet-50: every rank's sink epochs with step × epoch in the window, summed."""
    step, total_ms = 0.0, 0.0
    for line in sample.lines:
        if "epoch:" in line and "step:" in line:
            step = sample.number(STEP, line) * sample.number(EPOCH, line)
            if step > sample.window.train:
                break
        if "epoch time:" in line and step > sample.window.warmup:
            total_ms += sample.number(sample.rule.value, line)
    return _per_rank(sample, total_ms)


def sum_over_ranks_by_step(sample: Sample) -> float | None:
    """MindSpore's BERT: the same by the step alone, and the first line past the window is still counted."""
    step, total_ms = 0.0, 0.0
    for line in sample.lines:
        if "epoch:" in line and "step:" in line:
            step = sample.number(STEP, line)
        if "epoch time:" in line:
            if step > sample.window.warmup:
                total_ms += sample.number(sample.rule.value, line)
            if step > sample.window.train:
                break
    return _per_rank(sample, total_ms)


def _per_rank(sample: Sample, total_ms: float) -> float | None:
    seconds = total_ms / 1000
    if seconds <= 1e-5:
        return None
    steps = sample.span.steps * sample.run.ranks
    return round(float(sample.run.global_batch) / (seconds / steps), 2)
