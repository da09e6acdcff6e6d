"""Arithmetic of the tables: figures of one step, rounded so that what is shown adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10

from trainmark.explain.explanation import ClassTime, Explanation, WhatIf
from trainmark.pages import number

DIGITS = 4
MOST_DECIMALS = 4
MILLISECOND = 1_000_000
MOST_TIMES_FLOOR = 100

# Overlaps with a row of their own: those that matter, and not too many.
LEAST_OVERLAP, MOST_OVERLAPS = 0.005, 6
# Of a share that is known within bounds: what says something.
LEAST_BOUND, MOST_BOUND = 0.05, 0.5


@dataclass(frozen=True)
class Part:
    """One row of the step: a class, an overlap of several, or idle time of one cause."""

    kind: str
    name: str
    nanoseconds: int
    classes: tuple[str, ...] = ()
    of_class: ClassTime | None = None


def parts(explanation: Explanation) -> list[Part]:
    """Return what adds up to the step: classes by time, then overlap, small ones together, then idle time."""
    classes = sorted(explanation.classes, key=lambda own: (-own.alone, own.name))
    overlaps = sorted(explanation.overlaps, key=lambda own: (-own.nanoseconds, own.classes))
    shown = [own for own in overlaps if own.nanoseconds >= LEAST_OVERLAP * explanation.total][:MOST_OVERLAPS]
    rest = sum(own.nanoseconds for own in overlaps) - sum(own.nanoseconds for own in shown)
    idle = sorted(explanation.idle, key=lambda own: (-own.nanoseconds, own.cause))
    return [
        *(Part("class", own.name, own.alone, of_class=own) for own in classes),
        *(Part("overlap", "+".join(own.classes), own.nanoseconds, own.classes) for own in shown),
        *([Part("overlap", "", rest)] if rest else []),
        *(Part("idle", own.cause, own.nanoseconds) for own in idle),
    ]


def bounded_shares(explanation: Explanation) -> list[tuple[Part, float, float]]:
    """Return parts with the least and the most share of the real step that they can have, the longest first.

    A profiled step that is longer has time in it that the profiler added, to one part or to all; one that is
    shorter lacks some. Nothing is said of a part of which neither end is known.
    """
    measured, steps = explanation.agreement.measured, explanation.steps
    if not measured or not steps or explanation.total <= 0:
        return []
    real = measured * 1e9 * steps
    added, missed = max(0.0, explanation.total - real), max(0.0, real - explanation.total)
    bounded = [
        (
            part,
            max(0.0, part.nanoseconds - added) / real,
            min(1.0, (part.nanoseconds + missed) / real),
        )
        for part in parts(explanation)
    ]
    known = [one for one in bounded if one[1] >= LEAST_BOUND or LEAST_BOUND <= one[2] <= MOST_BOUND]
    return sorted(known, key=lambda one: (-one[1], -one[2]))


def part_texts(explanation: Explanation) -> dict[tuple[str, str], tuple[str, str]]:
    """Return milliseconds and share of every part as they are written in all tables, by its kind and name."""
    own = parts(explanation)
    times = [part.nanoseconds for part in own]
    texts = zip(step_milliseconds(explanation, times), shares(explanation, times), strict=True)
    return {(part.kind, part.name): text for part, text in zip(own, texts, strict=True)}


def apportioned(values: Sequence[int], unit: float, decimals: int) -> list[str]:
    """Write integers in `unit` with so many decimals, rounded so that the texts add up to the rounded sum.

    The largest-remainder method: every value is rounded down, and the units that are missing go to the
    largest remainders.
    """
    scale = 10**decimals / unit
    exact = [value * scale for value in values]
    whole = [floor(value) for value in exact]
    missing = round(sum(exact)) - sum(whole)
    by_remainder = sorted(range(len(exact)), key=lambda place: (whole[place] - exact[place], place))
    for place in by_remainder[: max(0, missing)]:
        whole[place] += 1
    return [f"{value / 10**decimals:,.{decimals}f}" for value in whole]


def decimals_of(value: float, digits: int = DIGITS) -> int:
    """Return the decimals that give `value` its significant digits."""
    if not isfinite(value) or value <= 0:
        return 1
    return min(MOST_DECIMALS, max(0, digits - 1 - floor(log10(value))))


def step_milliseconds(explanation: Explanation, values: Sequence[int]) -> list[str]:
    """Write nanoseconds of all steps as milliseconds of one; those that make up the step add up to it."""
    steps = max(1, explanation.steps)
    return apportioned(values, steps * MILLISECOND, step_decimals(explanation))


def step_decimals(explanation: Explanation) -> int:
    """Return at least one decimal: of a step of seconds a class may take less than a millisecond."""
    return max(1, decimals_of(explanation.total / max(1, explanation.steps) / MILLISECOND))


def shares(explanation: Explanation, values: Sequence[int]) -> list[str]:
    """Write nanoseconds as per cent of the step, which add up to 100.0 where the values are all of it."""
    if explanation.total <= 0:
        return [number.MISSING] * len(values)
    return [f"{text} %" for text in apportioned(values, explanation.total / 100, 1)]


def scaled(values: Sequence[float | None], name: str, unit: float) -> tuple[str, list[str]]:
    """Return the unit's name and all values in it, with the decimals that the largest needs."""
    largest = max((value for value in values if value is not None), default=0.0)
    decimals = decimals_of(largest / unit, 3) if largest > 0 else 0
    return name, ["" if value is None else _fixed(value / unit, decimals) for value in values]


def _fixed(value: float, decimals: int) -> str:
    """`0.02`; what would round to nothing is `<0.01`."""
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if 0 < value < least / 2 else f"{value:,.{decimals}f}"


def times_floor(own: ClassTime) -> float | None:
    """How many times its floor a class takes; overlapped time counts, because the work in it does."""
    return own.busy / own.floor if own.floor else None


def times_floor_text(own: ClassTime, digits: int) -> str:
    """Write `times_floor`, empty where there is none.

    Beyond a hundred the floor is that of the few launches that move anything.
    """
    times = times_floor(own)
    if times is None:
        return ""
    return f"> {MOST_TIMES_FLOOR}" if times > MOST_TIMES_FLOOR else number.significant(times, digits)


def samples_per_second(explanation: Explanation) -> float | None:
    samples, seconds = explanation.subject.samples, explanation.step_seconds
    return samples / seconds if samples and seconds > 0 else None


def milliseconds(seconds: float | None) -> str:
    return number.MISSING if seconds is None else number.significant(1000 * seconds, 4)


def duration(seconds: float) -> str:
    """Four digits in the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{number.significant(seconds / scale, 4)} {unit}"
    return f"{number.significant(seconds / 1e-6, 4)} µs"


def signed_percent(share: float | None, decimals: int = 1) -> str:
    """`+1.9 %`, `−3.0 %`."""
    if share is None or not isfinite(share):
        return number.MISSING
    value = round(100 * share, decimals) + 0.0
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    return f"{sign}{abs(value):.{decimals}f} %"


def throughput_gain(explanation: Explanation, change: WhatIf) -> float | None:
    """Return by which share the throughput rises, where the samples of a step stay as they are."""
    return explanation.step_seconds / change.seconds - 1 if change.seconds > 0 else None


def prediction_error(change: WhatIf) -> float | None:
    if change.verified is None or change.verified.seconds <= 0:
        return None
    return change.seconds / change.verified.seconds - 1
