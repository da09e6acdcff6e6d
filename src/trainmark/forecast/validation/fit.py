"""The coefficients that make the published series come out best."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from trainmark.forecast.model import Added, Coefficients, Estimate, added
from trainmark.forecast.size import ONE_DEVICE, Size
from trainmark.forecast.validation.series import Series

ROUNDS = 30
# Relative errors below this are equally good; it also keeps the weights finite.
INDIFFERENT = 0.01


class Observation(NamedTuple):
    """One published row of several nodes: its step in seconds, and the base and terms that explain it."""

    series: Series
    size: Size
    seconds: float
    base: float
    added: Added

    def estimate(self, coefficients: Coefficients, habit: float = 0.0) -> Estimate:
        seconds = max(self.base + self.added.seconds(coefficients), self.series.case.steps[ONE_DEVICE])
        return Estimate(seconds * exp(habit), self.base)


def observations(all_series: Sequence[Series]) -> tuple[Observation, ...]:
    observed = []
    for series in all_series:
        case = series.case
        for size, rate in series.targets.items():
            node_step = case.node_step(size.devices_per_node, 1.0)
            terms = added(case, size, node_step)
            seconds = case.batch * size.devices / rate
            observed.append(Observation(series, size, seconds, node_step, terms))
    return tuple(observed)


def fitted(seen: Sequence[Observation]) -> Coefficients:
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
