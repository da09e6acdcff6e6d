"""How long the steps of a logged run took, by the most trustworthy of what its lines say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from trainmark.events import Scope
from trainmark.measure.figure import Window
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.trial.log.reports import Reports

# Printed times coarser than this blur single steps.
FINEST_TICK = 0.01
# Rounded running means can cross when differenced; wider strides let the rounding vanish.
WIDEST_STRIDE = 1024
# A report is of another pace where it took so many times as long as the median, or as little.
OUTLYING = 3.0
FEWEST_TO_TELL = 5


class Basis(str, Enum):
    """What the figure was taken from."""

    TIMESTAMPS = "timestamps"
    RATES = "rates"
    RUNNING_MEANS = "running-means"
    STEP_TIMES = "step-times"


@dataclass(frozen=True)
class LogFacts:
    """What the log and its format say: `cumulative` where a printed rate or time averages from the start.

    `samples_per_step` counts all devices, in `unit`. `ended` says how a run was cut short, `whole_rate` is
    that of the run as a whole, evaluation included, and `disordered` names what is out of order in the log.
    `conflicting` names the settings that the log has with two values; `accumulation_untold` means that a step
    is of several batches, and the log does not say of how many.
    """

    unit: str
    scope: Scope
    cumulative: bool = False
    every_rank: bool = False
    world_size: int | None = None
    batch_per_device: float | None = None
    global_batch: float | None = None
    samples_per_step: float | None = None
    steps_a_line: int = 1
    own_rate: float | None = None
    whole_rate: float | None = None
    ended: str | None = None
    disordered: str | None = None
    conflicting: tuple[str, ...] = ()
    accumulation_untold: bool = False

    def samples_of_a_step(self) -> float | None:
        """Samples that all devices together take in a step, in `unit`."""
        if self.samples_per_step is not None:
            return self.samples_per_step
        if self.global_batch is not None:
            return self.global_batch
        if self.batch_per_device is None or self.world_size is None or self.accumulation_untold:
            return None
        return self.batch_per_device * self.world_size


@dataclass(frozen=True)
class StepTimes:
    """`counts` took `seconds`, up to the same constant; times `factor` it is samples a second.

    `in_steps` tells that counts are steps and seconds are seconds, so that steps a second follow.
    """

    basis: Basis
    seconds: Floats
    counts: Floats
    factor: float | None
    in_steps: bool = True


def step_times(reports: Reports, facts: LogFacts) -> StepTimes | None:
    """The times of the steps; None where the log has neither times nor rates."""
    batch = facts.samples_of_a_step()
    stamps = _timestamps(reports, facts, batch)
    if stamps is not None and batch is not None and _tick(reports["wall"]) <= FINEST_TICK:
        return stamps
    rates = _rates(reports, facts, batch) if np.isfinite(reports["rate"]).any() else None
    if rates is not None and rates.factor is not None:
        return rates
    if np.isfinite(_step_seconds(reports)).any():
        printed = _printed(reports, facts, batch)
        if rates is None or printed.factor is not None:
            return printed
    return rates or stamps


def without_last_outlier(pace: Floats, window: Window) -> Window:
    """The window without its last report, where that alone is of another pace than all of them.

    The last line may hold the end of the run (data that ran out, a checkpoint), or be cut short.
    """
    inside = pace[window.first : window.stop]
    if len(inside) < FEWEST_TO_TELL:
        return window
    middle = float(np.median(inside))
    odd = (inside > OUTLYING * middle) | (inside < middle / OUTLYING)
    return replace(window, stop=window.stop - 1) if odd[-1] and odd.sum() == 1 else window


def _timestamps(reports: Reports, facts: LogFacts, batch: float | None) -> StepTimes | None:
    """From line to line within an epoch; between epochs there is evaluation, which is no training."""
    gaps = np.diff(reports["wall"], prepend=np.nan)
    usable = np.isfinite(gaps) & (gaps >= 0) & ~reports.fresh
    if not usable.any() or gaps[usable].sum() <= 0:
        return None
    samples = reports["samples"][usable]
    if np.isfinite(samples).all():
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
        return StepTimes(Basis.TIMESTAMPS, gaps[usable], samples, factor, in_steps=False)
    return StepTimes(Basis.TIMESTAMPS, gaps[usable], reports.steps[usable], batch)


def _rates(reports: Reports, facts: LogFacts, batch: float | None) -> StepTimes:
    """n steps at rate r took n ÷ r, up to the batch, which cancels where rates give a rate again."""
    in_steps = facts.unit == "steps"
    factor = batch if in_steps else 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
    reports = reports.where(np.isfinite(reports["rate"]) & (reports["rate"] > 0))
    if facts.cumulative:
        return _differenced(reports, reports.done / reports["rate"], factor, in_steps)
    return StepTimes(Basis.RATES, *_weighed(reports), factor, in_steps)


def _weighed(reports: Reports) -> tuple[Floats, Floats]:
    """Seconds and counts of each report: by its samples or its time where they are told, else by its steps.

    Batches of sentences differ in their tokens: of two rates, the one that held for longer counts for more.
    """
    rate, seconds, samples = reports["rate"], _step_seconds(reports), reports["samples"]
    if np.isfinite(samples).all():
        return samples / rate, samples
    if np.isfinite(seconds).all() and (seconds > 0).all():
        return reports.steps * seconds, reports.steps * seconds * rate
    return reports.steps / rate, reports.steps


def _printed(reports: Reports, facts: LogFacts, batch: float | None) -> StepTimes:
    """Printed times of a step, which samples printed beside them make a rate of."""
    seconds = _step_seconds(reports)
    reports = reports.where(np.isfinite(seconds) & (seconds > 0))
    seconds = _step_seconds(reports)
    if facts.cumulative:
        return _differenced(reports, reports.done * seconds, batch)
    samples = reports["step_samples"]
    if np.isfinite(samples).all() and (samples > 0).all():
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
        return StepTimes(
            Basis.STEP_TIMES, reports.steps * seconds, reports.steps * samples, factor, in_steps=False
        )
    return StepTimes(Basis.STEP_TIMES, reports.steps * seconds, reports.steps, batch)


def _differenced(
    reports: Reports, since_start: Floats, factor: float | None, in_steps: bool = True
) -> StepTimes:
    """Running means taken apart: what passed since the report before, or since the epoch began."""
    stride = 1
    while True:
        taken = reports.fresh | (np.arange(len(since_start)) % stride == stride - 1)
        fresh, done, passed = reports.fresh[taken], reports.done[taken], since_start[taken]
        seconds = np.where(fresh, passed, np.diff(passed, prepend=0.0))
        counts = np.where(fresh, done, np.diff(done, prepend=0.0))
        sound = (seconds > 0) & (counts > 0)
        if sound.all() or stride >= min(WIDEST_STRIDE, len(since_start)):
            return StepTimes(Basis.RUNNING_MEANS, seconds[sound], counts[sound], factor, in_steps)
        stride *= 2


def _step_seconds(reports: Reports) -> Floats:
    seconds = reports["seconds"]
    return np.where(np.isnan(seconds), reports["ms"] / 1000, seconds)


def _tick(wall: Floats) -> float:
    """The resolution of printed times: the largest of 1, 0.1 and 0.01 s that they all are multiples of."""
    finite = wall[np.isfinite(wall)]
    for tick in (1.0, 0.1):
        # Times since 1970 are doubles with a few ten-millionths of a second of rounding.
        if np.all(np.abs(finite / tick - np.round(finite / tick)) < 1e-4):
            return tick
    return FINEST_TICK
