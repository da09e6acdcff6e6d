"""What is left out together when the forecast is tested, and what may still be known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import log
from statistics import median

from trainmark.forecast.model import Coefficients, Estimate
from trainmark.forecast.validation.fit import Observation, fitted
from trainmark.forecast.validation.spread import Spread, scaled_error, spread_of

Key = Callable[[Observation], Hashable]


@dataclass(frozen=True)
class Scheme:
    """Rows of one `group` are forecast from the other groups alone.

    Where a `kin` is given, what the forecast missed by in those of the same kin is expected again.
    """

    group: Key
    kin: Key | None = None


def _framework(seen: Observation) -> Hashable:
    return seen.series.row.framework


def _program(seen: Observation) -> Hashable:
    row = seen.series.row
    return row.workload, row.framework


def _alike(seen: Observation) -> Hashable:
    """Series that differ in version, source or a small setting would tell each other's result."""
    row = seen.series.row
    return row.workload, row.framework, row.precision, seen.series.case.batch


# Nothing of the framework was ever seen on several nodes.
STRANGER = Scheme(_framework)
# The framework was seen on several nodes of this cluster with other batches or another precision.
KNOWN_PROGRAM = Scheme(_alike, _program)


@dataclass(frozen=True)
class Learned:
    """All that published rows teach a forecast; `habits` are the logarithms of what kin is slower by."""

    coefficients: Coefficients
    spread: Spread
    habits: dict[Hashable, float]

    def estimate(self, seen: Observation, scheme: Scheme) -> Estimate:
        habit = self.habits.get(scheme.kin(seen), 0.0) if scheme.kin else 0.0
        return seen.estimate(self.coefficients, habit)


def learn(seen: Sequence[Observation], scheme: Scheme = STRANGER) -> Learned:
    """The coefficients of all rows; the spread from what the rows of each group came out as without it."""
    errors = []
    for left_out in sorted({scheme.group(one) for one in seen}, key=str):
        others = _fitted([one for one in seen if scheme.group(one) != left_out], scheme)
        errors += [
            scaled_error(one.seconds, others.estimate(one, scheme))
            for one in seen
            if scheme.group(one) == left_out
        ]
    fit = _fitted(seen, scheme)
    return Learned(fit.coefficients, spread_of(errors), fit.habits)


def _fitted(seen: Sequence[Observation], scheme: Scheme) -> Learned:
    coefficients = fitted(seen)
    kin: dict[Hashable, list[float]] = {}
    for one in seen if scheme.kin else ():
        missed = log(one.seconds / one.estimate(coefficients).seconds)
        kin.setdefault(scheme.kin(one) if scheme.kin else None, []).append(missed)
    # Drawn towards none as if one more row had missed by nothing.
    habits = {who: median(missed) * len(missed) / (len(missed) + 1) for who, missed in kin.items()}
    return Learned(coefficients, Spread(0.0, 0.0), habits)
