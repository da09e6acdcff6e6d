"""A DLPerf rule as data: which lines count, what is read from each, and which of them make the figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from trainmark.published.protocols.clock import DATED
from trainmark.published.protocols.doubt import ProtocolDoubt
from trainmark.published.protocols.layout import Run
from trainmark.published.protocols.protocol import RuleStopsError, Window


class Span(NamedTuple):
    """Lines `first` to `last`, and the steps that the rule divides by."""

    first: int
    last: int
    steps: int


class OurFigure(NamedTuple):
    """Samples over wall time, and the steps it was measured over."""

    speed: float
    steps: int


@dataclass(frozen=True)
class Rule:
    """`keep` must be found in a line for it to count; `value` is what is read from it, first match.

    `step`, where given, numbers the line, and lines up to `skip_through` do not count.
    `estimate` gives their figure: 0 where the log is too short, None where they leave the file out.
    `progress` and `ours` read the same log rightly; `step_offset` makes steps done of a printed step.
    """

    name: str
    title: str
    source: str
    window: Window
    keep: re.Pattern[str]
    value: re.Pattern[str]
    estimate: Callable[[Sample], float | None]
    span: Callable[[Window, int], Span]
    progress: re.Pattern[str]
    ours: Callable[[Sample], OurFigure | None]
    checks: tuple[Callable[[Sample, float | None], Iterator[ProtocolDoubt]], ...] = ()
    step: re.Pattern[str] | None = None
    skip_through: int = 0
    clock: str = DATED
    rate: Callable[[float, Run], float] = lambda value, run: value
    step_offset: int = 0
    average_digits: int = 2
    smallest_warmup: int = 0
    multiple: int = 1


@dataclass(frozen=True)
class Sample:
    """One log under one rule."""

    rule: Rule
    run: Run
    lines: list[str]
    window: Window

    @property
    def span(self) -> Span:
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
