"""A DLPerf rule as data: which lines count, what is read from each, and which of them make the figure.

The spans are those that the scripts compute from warm-up and train batches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from trainmark.audit.protocols.protocol import DATED, BatchWindow, CaseLog, ProtocolDoubt, RuleStopsError


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
    """`keep` must be found in a line for it to count; `value` is what is read from it, first match.

    `step`, where given, numbers the line, and lines up to `skip_through` do not count.
    `estimate` gives their figure: 0 where the log is too short, None where they leave the file out.
    `progress` and `ours` read the same log rightly; `step_offset` makes steps done of a printed step.
    """

    name: str
    title: str
    source: str
    window: BatchWindow
    keep: re.Pattern[str]
    value: re.Pattern[str]
    estimate: Callable[[Sample], float | None]
    span: Callable[[BatchWindow, int], LineSpan]
    progress: re.Pattern[str]
    ours: Callable[[Sample], OurFigure | None]
    checks: tuple[Callable[[Sample, float | None], Iterator[ProtocolDoubt]], ...] = ()
    step: re.Pattern[str] | None = None
    skip_through: int = 0
    clock: str = DATED
    rate: Callable[[float, CaseLog], float] = lambda value, run: value
    step_offset: int = 0
    average_digits: int = 2
    smallest_warmup: int = 0
    multiple: int = 1


@dataclass(frozen=True)
class Sample:
    """One log under one rule."""

    rule: DlperfRule
    run: CaseLog
    lines: list[str]
    window: BatchWindow

    @property
    def span(self) -> LineSpan:
        return self.rule.span(self.window, self.run.ranks)

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
            return [
                self.rule.rate(self.number(self.rule.value, line), self.run) for line in self.counted_lines()
            ]
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


# NVIDIA's TensorFlow trainer does not print its first 20 steps.
TENSORFLOW_HIDES = 20


def plain_span(window: BatchWindow, ranks: int) -> LineSpan:
    return LineSpan(window.warmup, window.train, window.train - window.warmup)


def threshold_span(threshold: int, window: BatchWindow) -> LineSpan:
    """Up to the threshold the warm-up is the threshold; above it, the threshold is taken off once more."""
    first = threshold if window.warmup <= threshold else window.warmup - threshold
    return LineSpan(first, window.train, window.train - first)


def mxnet_span(window: BatchWindow, ranks: int) -> LineSpan:
    return threshold_span(20, window)


def mxnet_bert_span(window: BatchWindow, ranks: int) -> LineSpan:
    return threshold_span(100, window)


def mxnet_time_span(window: BatchWindow, ranks: int) -> LineSpan:
    """Every rank prints, so the n-th step ends at line n × ranks."""
    first = max(20, window.warmup)
    return LineSpan(first * ranks, window.train * ranks, window.train - first)


def after_hidden_span(window: BatchWindow, ranks: int) -> LineSpan:
    return LineSpan(
        window.warmup - TENSORFLOW_HIDES, window.train - TENSORFLOW_HIDES, window.train - window.warmup
    )


def after_hidden_time_span(window: BatchWindow, ranks: int) -> LineSpan:
    """One line later than it should be, and divided by what is really between: 99 steps for 100."""
    first, last = window.warmup - TENSORFLOW_HIDES + 1, window.train - TENSORFLOW_HIDES
    return LineSpan(first, last, last - first)


def every_tenth_span(window: BatchWindow, ranks: int) -> LineSpan:
    return LineSpan(max(20, window.warmup) // 10, window.train // 10, window.train - window.warmup)


def every_hundredth_span(window: BatchWindow, ranks: int) -> LineSpan:
    first = 1 if window.warmup <= 100 else window.warmup // 100
    return LineSpan(first, window.train // 100, window.train - window.warmup)
