"""Which recorded facts changed with a change of level, in the order of how well they fit it.

The fit of a fact is the share of the results before the change that have its most common value of that side,
times the same share after it, and zero where the two values are equal. So a fact that is constant before,
constant after and different has 1; one that changed a result too early or too late a little less; one that
differs in every result, as a commit may, next to nothing, and is listed with its values right before and
after the change. Both sides reach to the neighbouring changes. A quantity that was measured (a clock, a
temperature) is never constant: its two values are the medians, and a result counts for the nearer one where
the medians differ by at least 1 %. Where a fact was recorded on one side alone, only a variable or a package
can really have come or gone; any other fit is halved.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from trainmark.measure.history.recorded import MEASURED_FACTS
from trainmark.measure.history.series import RunPoint

LEAST_FIT = 0.05
USUAL_FIT = 0.25
LEAST_MEASURED_DIFFERENCE = 0.01
ONE_SIDED_FIT = 0.5
# Among facts that fit equally well, the likelier cause first; others follow by name.
LIKELY_CAUSES = (
    "framework_version",
    "framework.",
    "driver",
    "cuda_driver",
    "command",
    "commit",
    "dirty",
    "changes",
    "threads",
    "variables.",
    "packages.",
    "clock_mhz",
    "kernel",
    "cpu.governor",
    "cpu.turbo",
)
MAY_BE_ABSENT = ("variables.", "packages.")


@dataclass(frozen=True)
class FactChange:
    """A fact that differs between two sides; None is "not recorded", `fit` goes from 0 to 1."""

    name: str
    before: str | None
    after: str | None
    fit: float


def changed_facts(
    points: Sequence[RunPoint], index: int, start: int = 0, stop: int | None = None
) -> tuple[FactChange, ...]:
    """Return the facts that changed at `index`, the best fit first.

    `start` and `stop` are the neighbouring changes: results beyond them belong to other levels.
    """
    before, after = points[start:index], points[index:stop]
    if not before or not after:
        return ()
    names = dict.fromkeys(name for point in (*before, *after) for name in point.facts)
    candidates = (_at_boundary(_change(name, before, after), before[-1], after[0]) for name in names)
    return tuple(sorted((fact for fact in candidates if fact is not None), key=_rank))


def _at_boundary(fact: FactChange, last: RunPoint, first: RunPoint) -> FactChange | None:
    """Return the fact where it fits, or where it differs between the two results around the change.

    One with a poor fit has no usual value: those of these two results stand for it. None for other facts.
    """
    old, new = last.facts.get(fact.name), first.facts.get(fact.name)
    if fact.name in MEASURED_FACTS or old == new:
        return fact if fact.fit >= LEAST_FIT else None
    return fact if fact.fit >= USUAL_FIT else replace(fact, before=old, after=new)


def fact_differences(before: RunPoint, after: RunPoint) -> tuple[FactChange, ...]:
    """Return every fact in which two results differ, the likelier cause of a change first.

    Measured quantities differ from 1 % on.
    """
    names = dict.fromkeys((*before.facts, *after.facts))
    changes = (_change(name, [before], [after]) for name in names)
    return tuple(sorted((replace(fact, fit=1.0) for fact in changes if fact.fit), key=_rank))


def settings_that_differ(before: RunPoint, after: RunPoint) -> tuple[FactChange, ...]:
    """Return the facts in which two results differ, without what was measured during the trials.

    What one side alone has recorded tells its version of Trainmark, unless it is a variable or a package.
    """
    return tuple(
        fact
        for fact in fact_differences(before, after)
        if fact.name not in MEASURED_FACTS
        and (fact.name.startswith(MAY_BE_ABSENT) or None not in (fact.before, fact.after))
    )


def _change(name: str, before: Sequence[RunPoint], after: Sequence[RunPoint]) -> FactChange:
    sides = [[point.facts.get(name) for point in side] for side in (before, after)]
    if name in MEASURED_FACTS and (measured := _measured(name, *sides)):
        return measured
    (old, old_count), (new, new_count) = (Counter(side).most_common(1)[0] for side in sides)
    fit = 0.0 if old == new else (old_count / len(before)) * (new_count / len(after))
    one_sided = old is None or new is None
    return FactChange(
        name, old, new, fit * ONE_SIDED_FIT if one_sided and not name.startswith(MAY_BE_ABSENT) else fit
    )


def _measured(name: str, before: Sequence[str | None], after: Sequence[str | None]) -> FactChange | None:
    """Return the change of a measured quantity; None where a side has no number."""
    old, new = _numbers(before), _numbers(after)
    if not old or not new:
        return None
    low, high = statistics.median(old), statistics.median(new)
    if abs(high - low) < LEAST_MEASURED_DIFFERENCE * max(abs(low), abs(high)):
        return FactChange(name, f"{low:g}", f"{high:g}", 0.0)
    near_old = sum(abs(value - low) < abs(value - high) for value in old)
    near_new = sum(abs(value - high) < abs(value - low) for value in new)
    return FactChange(name, f"{low:g}", f"{high:g}", (near_old / len(before)) * (near_new / len(after)))


def _numbers(texts: Sequence[str | None]) -> list[float]:
    numbers = []
    for text in texts:
        try:
            number = float(text or "")
        except ValueError:
            continue
        if isfinite(number):
            numbers.append(number)
    return numbers


def _rank(fact: FactChange) -> tuple[float, int, str]:
    places = (place for place, name in enumerate(LIKELY_CAUSES) if _is_or_begins(fact.name, name))
    return -round(fact.fit, 6), next(places, len(LIKELY_CAUSES)), fact.name


def _is_or_begins(name: str, likely: str) -> bool:
    return name.startswith(likely) if likely.endswith(".") else name == likely
