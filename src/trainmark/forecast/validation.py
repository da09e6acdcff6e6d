"""The model fitted to published series, and tested on those that were left out.

Coefficients are those by which the published series come out best. An interval is as wide as the errors on
series that were not fitted, scaled to what is uncertain. A scheme says what is left out together, and what
may still be known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, floor, hypot, log
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np

from trainmark.forecast.fabric import ONE_DEVICE, Size
from trainmark.forecast.model import AddedTime, Coefficients, StepEstimate, added_time
from trainmark.forecast.series import PublishedSeries, published_series
from trainmark.logs.ledger.entry import LedgerEntry
from trainmark.measure.figure import Interval

CONFIDENCE = 0.8
# The error where leaving the node costs nothing, against one where it costs the whole step.
LEAST_UNCERTAINTY = 0.05


class ErrorSpread(NamedTuple):
    """Bounds of the logarithm of true over estimated seconds, for an estimate that is all uncertain."""

    low: float
    high: float


def uncertainty(estimate: StepEstimate) -> float:
    """A forecast is unsure of what it adds to the measured step, and a little of the rest."""
    return LEAST_UNCERTAINTY + abs(estimate.seconds - estimate.base) / estimate.seconds


def scaled_error(seconds: float, estimate: StepEstimate) -> float:
    return log(seconds / estimate.seconds) / uncertainty(estimate)


def spread_of(errors: Sequence[float], confidence: float = CONFIDENCE) -> ErrorSpread:
    """Order statistics that hold the next error with `confidence`, as it would be one of n + 1."""
    ordered = sorted(errors)
    aside = round((1 - confidence) / 2 * (len(ordered) + 1), 9)
    rank = max(1, floor(aside))
    return ErrorSpread(ordered[rank - 1], ordered[-rank])


def relative_half_width(measured: Interval | None) -> float:
    """The relative half-width of a measured interval, brought to the confidence of a forecast."""
    if measured is None:
        return 0.0
    ours, theirs = (NormalDist().inv_cdf((1 + share) / 2) for share in (CONFIDENCE, measured.confidence))
    return ours / theirs * log(measured.high / measured.low) / 2


def forecast_interval(
    estimate: StepEstimate, throughput: float, ideal: float, spread: ErrorSpread, doubt: float = 0.0
) -> Interval:
    """Of a throughput, and no higher than the ideal where that is higher than the throughput itself.

    The doubt of the measured step is added as an independent error.
    """
    scale = uncertainty(estimate)
    slower, faster = hypot(max(0.0, spread.high) * scale, doubt), hypot(min(0.0, spread.low) * scale, doubt)
    high = min(throughput * exp(faster), max(ideal, throughput))
    return Interval(throughput * exp(-slower), high, CONFIDENCE)


ROUNDS = 30
# Relative errors below this are equally good; it also keeps the weights finite.
INDIFFERENT = 0.01


class PublishedObservation(NamedTuple):
    """One published row of several nodes: its step in seconds, and the base and terms that explain it."""

    series: PublishedSeries
    size: Size
    seconds: float
    base: float
    added: AddedTime

    def estimate(self, coefficients: Coefficients, habit: float = 0.0) -> StepEstimate:
        seconds = max(self.base + self.added.seconds(coefficients), self.series.case.steps[ONE_DEVICE])
        return StepEstimate(seconds * exp(habit), self.base)


def observations(all_series: Sequence[PublishedSeries]) -> tuple[PublishedObservation, ...]:
    observed = []
    for series in all_series:
        case = series.case
        for size, rate in series.targets.items():
            node_step = case.node_step(size.devices_per_node, 1.0)
            terms = added_time(case, size, node_step)
            seconds = case.batch * size.devices / rate
            observed.append(PublishedObservation(series, size, seconds, node_step, terms))
    return tuple(observed)


def fit_coefficients(seen: Sequence[PublishedObservation]) -> Coefficients:
    """Least sum of absolute relative errors, no coefficient below zero; by reweighted least squares.

    Absolute rather than squared errors, so that a series that collapsed does not bend the others.
    """
    seconds = np.array([one.seconds for one in seen])
    terms = np.array([one.added.per_coefficient for one in seen]) / seconds[:, None]
    wanted = np.array([one.seconds - one.base - one.added.fixed for one in seen]) / seconds
    columns = list(range(terms.shape[1]))
    coefficients = np.zeros(terms.shape[1])
    while columns:
        solved = _least_absolute(terms[:, columns], wanted)
        if (solved >= 0).all():
            coefficients[columns] = solved
            break
        columns.pop(int(np.argmin(solved)))
    return Coefficients(*map(float, coefficients))


def _least_absolute(
    terms: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    wanted: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    root = np.ones(len(wanted))
    for _ in range(ROUNDS):
        solved = np.linalg.lstsq(terms * root[:, None], wanted * root, rcond=None)[0]
        root = 1 / np.sqrt(np.maximum(np.abs(wanted - terms @ solved), INDIFFERENT))
    return np.asarray(solved)


GroupKey = Callable[[PublishedObservation], Hashable]


@dataclass(frozen=True)
class HoldoutScheme:
    """Rows of one `group` are forecast from the other groups alone.

    Where a `kin` is given, what the forecast missed by in those of the same kin is expected again.
    """

    group: GroupKey
    kin: GroupKey | None = None


def _framework(seen: PublishedObservation) -> Hashable:
    return seen.series.row.framework


def _program(seen: PublishedObservation) -> Hashable:
    row = seen.series.row
    return row.workload, row.framework


def _similar_series(seen: PublishedObservation) -> Hashable:
    """Series that differ in version, source or a small setting would tell each other's result."""
    row = seen.series.row
    return row.workload, row.framework, row.precision, seen.series.case.batch


# Nothing of the framework was ever seen on several nodes.
UNSEEN_FRAMEWORK = HoldoutScheme(_framework)
# The framework was seen on several nodes of this cluster with other batches or another precision.
KNOWN_PROGRAM = HoldoutScheme(_similar_series, _program)


@dataclass(frozen=True)
class FittedModel:
    """All that published rows teach a forecast; `habits` are the logarithms of what kin is slower by."""

    coefficients: Coefficients
    spread: ErrorSpread
    habits: dict[Hashable, float]

    def estimate(self, seen: PublishedObservation, scheme: HoldoutScheme) -> StepEstimate:
        habit = self.habits.get(scheme.kin(seen), 0.0) if scheme.kin else 0.0
        return seen.estimate(self.coefficients, habit)


def fit_model(seen: Sequence[PublishedObservation], scheme: HoldoutScheme = UNSEEN_FRAMEWORK) -> FittedModel:
    """The coefficients of all rows; the spread from what the rows of each group came out as without it."""
    errors = []
    for left_out in sorted({scheme.group(one) for one in seen}, key=str):
        others = _fit_scheme([one for one in seen if scheme.group(one) != left_out], scheme)
        errors += [
            scaled_error(one.seconds, others.estimate(one, scheme))
            for one in seen
            if scheme.group(one) == left_out
        ]
    fit = _fit_scheme(seen, scheme)
    return FittedModel(fit.coefficients, spread_of(errors), fit.habits)


def _fit_scheme(seen: Sequence[PublishedObservation], scheme: HoldoutScheme) -> FittedModel:
    coefficients = fit_coefficients(seen)
    kin: dict[Hashable, list[float]] = {}
    for one in seen if scheme.kin else ():
        missed = log(one.seconds / one.estimate(coefficients).seconds)
        kin.setdefault(scheme.kin(one) if scheme.kin else None, []).append(missed)
    # Drawn towards none as if one more row had missed by nothing.
    habits = {who: median(missed) * len(missed) / (len(missed) + 1) for who, missed in kin.items()}
    return FittedModel(coefficients, ErrorSpread(0.0, 0.0), habits)


@dataclass(frozen=True)
class ForecastCheck:
    """One published row, and what was forecast for it by all but the rows of its own group."""

    series: PublishedSeries
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
class ErrorSummary:
    """Absolute relative errors, and the share of rows that lie in their intervals."""

    rows: int
    median: float
    p90: float
    coverage: float


def fit_published(entries: Iterable[LedgerEntry]) -> FittedModel:
    """For sizes and machines of one's own."""
    return fit_model(observations(published_series(entries)))


def validate(
    entries: Iterable[LedgerEntry], scheme: HoldoutScheme = UNSEEN_FRAMEWORK
) -> tuple[ForecastCheck, ...]:
    """Coefficients and intervals of a row come from other groups; its own rows of one node are its base."""
    seen = observations(published_series(entries))
    checks: dict[int, ForecastCheck] = {}
    for left_out in {scheme.group(one) for one in seen}:
        learned = fit_model([one for one in seen if scheme.group(one) != left_out], scheme)
        for place, one in enumerate(seen):
            if scheme.group(one) == left_out:
                checks[place] = _check(one, learned, scheme)
    return tuple(checks[place] for place in sorted(checks))


def validate_unseen(
    entries: Sequence[LedgerEntry], scheme: HoldoutScheme = UNSEEN_FRAMEWORK
) -> tuple[ForecastCheck, ...]:
    """Forecast the series that were no part of choosing the model, by the others of other groups."""
    seen = observations(published_series(entries))
    unseen = observations(published_series(entries, unseen=True))
    learned = {
        group: fit_model([one for one in seen if scheme.group(one) != group], scheme)
        for group in {scheme.group(one) for one in unseen}
    }
    return tuple(_check(one, learned[scheme.group(one)], scheme) for one in unseen)


def summary(checks: Sequence[ForecastCheck]) -> ErrorSummary:
    errors = [abs(check.error) for check in checks]
    return ErrorSummary(
        rows=len(checks),
        median=median(errors),
        p90=float(np.quantile(errors, 0.9)),
        coverage=sum(check.covered for check in checks) / len(checks),
    )


def by_source(checks: Iterable[ForecastCheck]) -> dict[str, ErrorSummary]:
    grouped: dict[str, list[ForecastCheck]] = {}
    for check in checks:
        grouped.setdefault(check.series.source, []).append(check)
    return {source: summary(rows) for source, rows in grouped.items()}


def without_outliers(checks: Iterable[ForecastCheck]) -> list[ForecastCheck]:
    return [check for check in checks if not check.series.odd]


def _check(one: PublishedObservation, learned: FittedModel, scheme: HoldoutScheme) -> ForecastCheck:
    case, estimate = one.series.case, learned.estimate(one, scheme)
    predicted = case.throughput(one.size, estimate.seconds)
    bounds = forecast_interval(estimate, predicted, case.ideal(one.size), learned.spread)
    return ForecastCheck(one.series, one.size, one.series.targets[one.size], predicted, bounds)
