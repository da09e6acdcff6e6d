"""Ratios of printed numbers, with the bounds that their digits leave open."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.published.audit.report.number import Number

# A factor that is off by so much of its last digit was computed from figures with more digits than printed.
LAST_DIGIT = 1.5
# Less than this changes no conclusion: `167.00 %` is 166.67 % rounded once and printed with zeros.
NEGLIGIBLE = 0.0025


@dataclass(frozen=True)
class Ratio:
    """A quotient, the least and the most that it can be."""

    value: float
    low: float
    high: float


def ratio_of(above: Number | None, below: Number | None) -> Ratio | None:
    """The quotient of two printed numbers; None where one is missing, can be zero, or has another unit."""
    if above is None or below is None or above.low <= 0 or below.low <= 0:
        return None
    if (above.rest == "s") != (below.rest == "s"):
        return None
    return Ratio(above.value / below.value, above.low / below.high, above.high / below.low)


def inverse(ratio: Ratio) -> Ratio:
    return Ratio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def claimed_ratio(number: Number) -> Number:
    """A printed speed-up as a factor: `779 %` is 7.79."""
    return number.scaled(0.01) if number.rest.startswith("%") else number


def agrees(claimed: Number, ratio: Ratio) -> bool:
    """Whether a printed factor can be the ratio, give or take its last digit."""
    slack = max(LAST_DIGIT * claimed.unit, NEGLIGIBLE * ratio.value)
    return claimed.value - slack <= ratio.high and ratio.low <= claimed.value + slack
