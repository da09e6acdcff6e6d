"""The few ways in which the DLPerf scripts turn lines into a speed, with their mistakes.

Pure functions of a `Sample`. 0 is what a script leaves when the log ends before its window does;
NaN is numpy's mean of nothing; None means that the script leaves the file out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from trainmark.audit.protocols.protocol import BatchWindow, RuleStopsError, seconds_between
from trainmark.audit.protocols.rule import Sample

EPOCH_MS = re.compile(r"epoch\stime:\s(\d+.\d{3})")
EPOCH = re.compile(r"epoch:\s(\d+)")
STEP = re.compile(r"step:\s(\d+)")


def between_lines(sample: Sample) -> float:
    """The time from the first to the last line of the span, counted from 1."""
    span, start = sample.span, ""
    for number, line in enumerate(sample.counted_lines(), 1):
        if number == span.first:
            start = sample.text(sample.rule.value, line)
        elif number == span.last:
            return _speed(sample, start, sample.text(sample.rule.value, line), span.steps)
    return 0


def between_marks(marks: Callable[[BatchWindow], tuple[str, str]]) -> Callable[[Sample], float]:
    """The time from the last line that contains one mark to the first that contains the other."""

    def estimate(sample: Sample) -> float:
        first, last = marks(sample.window)
        start = ""
        for line in sample.counted_lines():
            if first in line:
                start = sample.text(sample.rule.value, line)
            elif last in line:
                return _speed(sample, start, sample.text(sample.rule.value, line), sample.span.steps)
        return 0

    return estimate


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


def median_over_ranks(one_rank_prints: bool = False) -> Callable[[Sample], float]:
    """The median over the ranks of each step, then the mean over the span; the lines must come out even."""

    def estimate(sample: Sample) -> float:
        rates = np.array(sample.rates())
        ranks = 1 if one_rank_prints else sample.run.ranks
        if rates.size != sample.window.train * ranks:
            raise RuleStopsError(
                f"{sample.run.path}: {sample.rule.name} needs exactly {sample.window.train} × {ranks} lines, "
                f"and there are {rates.size}."
            )
        by_step = np.median(rates.reshape(sample.window.train, ranks), axis=1)
        return _mean(by_step[sample.span.first : sample.span.last])

    return estimate


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
            total_ms += sample.number(EPOCH_MS, line)
    return _per_rank(sample, total_ms)


def sum_over_ranks_by_step(sample: Sample) -> float | None:
    """MindSpore's BERT: the same by the step alone, and the first line past the window is still counted."""
    step, total_ms = 0.0, 0.0
    for line in sample.lines:
        if "epoch:" in line and "step:" in line:
            step = sample.number(STEP, line)
        if "epoch time:" in line:
            if step > sample.window.warmup:
                total_ms += sample.number(EPOCH_MS, line)
            if step > sample.window.train:
                break
    return _per_rank(sample, total_ms)


def _per_rank(sample: Sample, total_ms: float) -> float | None:
    seconds = total_ms / 1000
    if seconds <= 1e-5:
        return None
    steps = sample.span.steps * sample.run.ranks
    return round(float(sample.run.global_batch) / (seconds / steps), 2)
