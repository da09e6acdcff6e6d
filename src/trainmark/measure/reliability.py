"""Whether a result, and a run as a whole, can be relied on, and how closely; when to stop adding trials."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from trainmark.measure.doubts import Doubt, DoubtCode, Severity
from trainmark.measure.figure import Result
from trainmark.measure.statistics import CONFIDENCE, median_interval

# An interval that reaches farther than this from the figure cannot carry the comparisons people make of it.
WIDE_INTERVAL = 0.05


class Reliability(str, Enum):
    """From the best to the worst; `no-figure` is of a run in which no trial ended well."""

    RELIABLE = "reliable"
    CAUTION = "caution"
    UNRELIABLE = "unreliable"
    NO_FIGURE = "no-figure"


WORST_FIRST = (Reliability.UNRELIABLE, Reliability.CAUTION, Reliability.RELIABLE)


@dataclass(frozen=True)
class ReliabilityVerdict:
    """How far one figure, or `concerned` of the `figures` of a run, can be relied on.

    `within` is the farther bound of the 95 % interval, relative to the figure: the widest of all figures, or
    None where one has no such interval. `reasons` are the doubts that decided, the gravest first.
    """

    reliability: Reliability
    within: float | None
    reasons: tuple[Doubt, ...]
    concerned: int = 1
    figures: int = 1


def result_verdict(result: Result) -> ReliabilityVerdict:
    """Return the verdict on one result: its gravest doubts decide, then the width of its interval."""
    within = half_width(result)
    severe = _of_severity(result.doubts, Severity.SEVERE)
    cautions = _of_severity(result.doubts, Severity.CAUTION)
    if severe:
        return ReliabilityVerdict(Reliability.UNRELIABLE, within, severe)
    if cautions or within is None or within > WIDE_INTERVAL:
        return ReliabilityVerdict(Reliability.CAUTION, within, cautions)
    return ReliabilityVerdict(Reliability.RELIABLE, within, ())


def run_verdict(results: Sequence[Result]) -> ReliabilityVerdict:
    """Return the verdict on a run: that of its least reliable figures, and how many these are."""
    verdicts = [result_verdict(result) for result in results]
    for reliability in WORST_FIRST:
        concerned = [verdict for verdict in verdicts if verdict.reliability is reliability]
        if concerned:
            widths = [verdict.within for verdict in concerned]
            known = [width for width in widths if width is not None]
            return ReliabilityVerdict(
                reliability,
                max(known) if len(known) == len(widths) else None,
                _gravest_of_each_code(doubt for verdict in concerned for doubt in verdict.reasons),
                len(concerned),
                len(verdicts),
            )
    return ReliabilityVerdict(Reliability.NO_FIGURE, None, (), 0, 0)


def half_width(result: Result) -> float | None:
    """Return the farther bound of the interval relative to the figure; None below 95 % confidence."""
    interval = result.interval
    if interval is None or interval.confidence < CONFIDENCE or not result.throughput > 0:
        return None
    return max(interval.high - result.throughput, result.throughput - interval.low) / result.throughput


def _of_severity(doubts: Iterable[Doubt], severity: Severity) -> tuple[Doubt, ...]:
    return _gravest_of_each_code(doubt for doubt in doubts if doubt.severity is severity)


def _gravest_of_each_code(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """One of each code, that of the largest share of trials; the most widespread first."""
    gravest: dict[DoubtCode, Doubt] = {}
    for doubt in doubts:
        if doubt.code not in gravest or _share(doubt) > _share(gravest[doubt.code]):
            gravest[doubt.code] = doubt
    return tuple(sorted(gravest.values(), key=lambda doubt: -_share(doubt)))


def _share(doubt: Doubt) -> float:
    """The share of the trials that have it; one where it is of the result as a whole."""
    return doubt.trials / doubt.of if doubt.trials is not None and doubt.of else 1.0


def tight_enough(values: Sequence[float], half_width: float) -> bool:
    """Whether half the 95 % interval is at most `half_width` of the median; never before six trials."""
    interval = median_interval(values)
    if interval is None or interval.confidence < CONFIDENCE:
        return False
    return (interval.high - interval.low) / 2 <= half_width * statistics.median(values)
