"""The forecast against published rows that it was not fitted on, series by series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from trainmark.forecast.size import Size
from trainmark.forecast.validation.fit import Observation, observations
from trainmark.forecast.validation.scheme import STRANGER, Learned, Scheme, learn
from trainmark.forecast.validation.series import Series, published_series
from trainmark.forecast.validation.spread import interval
from trainmark.measure.figure import Interval
from trainmark.published.ledger.entry import Entry


@dataclass(frozen=True)
class Check:
    """One published row, and what was forecast for it by all but the rows of its own group."""

    series: Series
    size: Size
    published: float
    predicted: float
    interval: Interval

    @property
    def error(self) -> float:
        return self.predicted / self.published - 1

    @property
    def covered(self) -> bool:
        return self.interval.low <= self.published <= self.interval.high


@dataclass(frozen=True)
class Summary:
    """Absolute relative errors, and the share of rows that lie in their intervals."""

    rows: int
    median: float
    p90: float
    coverage: float


def learn_published(entries: Iterable[Entry]) -> Learned:
    """For sizes and machines of one's own."""
    return learn(observations(published_series(entries)))


def validate(entries: Iterable[Entry], scheme: Scheme = STRANGER) -> tuple[Check, ...]:
    """Coefficients and intervals of a row come from other groups; its own rows of one node are its base."""
    seen = observations(published_series(entries))
    checks: dict[int, Check] = {}
    for left_out in {scheme.group(one) for one in seen}:
        learned = learn([one for one in seen if scheme.group(one) != left_out], scheme)
        for place, one in enumerate(seen):
            if scheme.group(one) == left_out:
                checks[place] = _check(one, learned, scheme)
    return tuple(checks[place] for place in sorted(checks))


def validate_unseen(entries: Sequence[Entry], scheme: Scheme = STRANGER) -> tuple[Check, ...]:
    """Forecast the series that were no part of choosing the model, by the others of other groups."""
    seen = observations(published_series(entries))
    unseen = observations(published_series(entries, unseen=True))
    learned = {
        group: learn([one for one in seen if scheme.group(one) != group], scheme)
        for group in {scheme.group(one) for one in unseen}
    }
    return tuple(_check(one, learned[scheme.group(one)], scheme) for one in unseen)


def summary(checks: Sequence[Check]) -> Summary:
    errors = [abs(check.error) for check in checks]
    return Summary(
        rows=len(checks),
        median=median(errors),
        p90=float(np.quantile(errors, 0.9)),
        coverage=sum(check.covered for check in checks) / len(checks),
    )


def by_source(checks: Iterable[Check]) -> dict[str, Summary]:
    grouped: dict[str, list[Check]] = {}
    for check in checks:
        grouped.setdefault(check.series.source, []).append(check)
    return {source: summary(rows) for source, rows in grouped.items()}


def without_odd(checks: Iterable[Check]) -> list[Check]:
    return [check for check in checks if not check.series.odd]


def _check(one: Observation, learned: Learned, scheme: Scheme) -> Check:
    case, estimate = one.series.case, learned.estimate(one, scheme)
    predicted = case.throughput(one.size, estimate.seconds)
    bounds = interval(estimate, predicted, case.ideal(one.size), learned.spread)
    return Check(one.series, one.size, one.series.targets[one.size], predicted, bounds)
