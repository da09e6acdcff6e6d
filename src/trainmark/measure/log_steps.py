"""How long the steps of a logged run took, by the most trustworthy of what its lines say.

Progress lines of all ranks are joined first: how many steps each report stands for, and what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from trainmark.events import Scope
from trainmark.measure.figure import Window
from trainmark.measure.statistics import Floats

# A report's place: room for 10⁹ steps an epoch, exact in a double up to nine million epochs.
STEPS_AN_EPOCH = 1e9
# A step number this far below the highest is that of a new epoch; ranks that print by turns differ by less.
RESTART_SHARE = 0.5
# Reports that a rank may lie behind another where all of them write to one file.
MOST_BEHIND = 10


@dataclass(frozen=True)
class LogReports:
    """One entry a report; NaN is what it does not say. `fresh` marks the first of each epoch.

    `steps` is how many training steps the report ends, `done` how many its epoch had by then, and `ranks`
    how many printed it. `falls` counts reports of an earlier step than the one before them, `restarts` tells
    that the epochs begin again.
    """

    steps: Floats
    done: Floats
    fresh: NDArray[np.bool_]
    columns: Mapping[str, Floats]
    ranks: int
    falls: int = 0
    restarts: bool = False

    def __getitem__(self, name: str) -> Floats:
        column = self.columns.get(name)
        return np.full(len(self.steps), np.nan) if column is None else column

    def where(self, mask: NDArray[np.bool_]) -> LogReports:
        columns = {name: column[mask] for name, column in self.columns.items()}
        return replace(
            self, steps=self.steps[mask], done=self.done[mask], fresh=self.fresh[mask], columns=columns
        )


def join_reports(
    columns: Mapping[str, Floats], steps_a_line: int = 1, rates_add_up: bool = False
) -> LogReports:
    """Lines of the same step become one report: a time is the last rank's, other numbers are their mean.

    The mean of rates that each count all ranks is harmonic (that of their times); rates that add up to the
    whole have an arithmetic one.
    """
    columns = _numbered(columns)
    lines = len(next(iter(columns.values())))
    number = columns.get("step", np.full(lines, np.nan))
    if not np.isfinite(number).all():
        number, columns = np.arange(1.0, lines + 1), {**columns, "counted": np.full(lines, 1.0)}
        epoch = np.zeros(lines)
    else:
        epoch = _epochs(number, columns.get("epoch"))
    place = np.floor(epoch) * STEPS_AN_EPOCH + number
    has_epochs = "counted" not in columns and _has_all(columns.get("epoch"))
    restarts = has_epochs and _restarts(place, columns.get("rank"))
    ranks = 1
    if not (np.diff(place) > 0).all():
        _, first, which, count = np.unique(place, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first, kind="stable")
        index = np.empty(len(order), dtype=np.intp)
        index[order] = np.arange(len(order))
        which = index[which.reshape(-1)]
        ranks = int(np.median(count))
        columns = {
            name: _joined(name, column, which, len(order), rates_add_up) for name, column in columns.items()
        }
        number, epoch = number[first[order]], epoch[first[order]]
    # Some programs count an epoch in fractions.
    fresh = np.concatenate([[True], np.diff(np.floor(epoch)) != 0])
    steps, done = _covered(number, fresh, columns, steps_a_line)
    falls = (
        _count_falls(np.floor(epoch) * STEPS_AN_EPOCH + number) if has_epochs else _count_falls_within(number)
    )
    return LogReports(steps, done, fresh, columns, ranks, falls, restarts)


def _numbered(columns: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """The lines that name their step, where most do: one that does not cannot be placed among them."""
    named = np.isfinite(columns["step"]) if "step" in columns else np.zeros(0, dtype=np.bool_)
    if named.all() or 2 * named.sum() < len(named):
        return columns
    return {name: column[named] for name, column in columns.items()}


def _epochs(number: Floats, epoch: Floats | None) -> Floats:
    if epoch is not None and _has_all(epoch):
        return epoch
    highest = np.maximum.accumulate(number)
    restarts = (np.diff(number) < 0) & (number[1:] < RESTART_SHARE * highest[1:])
    return np.concatenate([[0.0], np.cumsum(restarts)])


def _has_all(column: Floats | None) -> bool:
    return column is not None and bool(np.isfinite(column).all())


def _restarts(place: Floats, ranks: Floats | None) -> bool:
    """Whether a line is of a step long past; those of ranks that print by turns are close to each other."""
    for rank in [None] if ranks is None else np.unique(ranks):
        own = place if rank is None else place[(ranks == rank) | np.isnan(rank)]
        if len(own):
            _, order = np.unique(own, return_inverse=True)
            order = order.reshape(-1)
            if (np.maximum.accumulate(order) - order).max() > MOST_BEHIND:
                return True
    return False


def _count_falls(place: Floats) -> int:
    return int((np.diff(place) < 0).sum())


def _count_falls_within(number: Floats) -> int:
    """Falls that do not lead back to the first steps, as those of a new epoch do."""
    distinct = np.unique(number)
    if len(distinct) < 2:
        return 0
    first_steps = distinct[0] + 2 * np.median(np.diff(distinct))
    return int(((np.diff(number) < 0) & (number[1:] > first_steps)).sum())


def _joined(name: str, column: Floats, which: NDArray[np.intp], size: int, rates_add_up: bool) -> Floats:
    """One value a report, over the lines that have one."""
    present = ~np.isnan(column)
    if name in ("wall", "last_step"):
        latest = np.full(size, -np.inf)
        np.maximum.at(latest, which[present], column[present])
        return np.where(np.isinf(latest), np.nan, latest)
    harmonic = name == "rate" and not rates_add_up
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 1 / column if harmonic else column
        count = np.bincount(which[present], minlength=size)
        mean = np.bincount(which[present], weights=values[present], minlength=size) / count
        return np.asarray(1 / mean if harmonic else mean, dtype=np.float64)


def _covered(
    number: Floats, fresh: NDArray[np.bool_], columns: Mapping[str, Floats], steps_a_line: int
) -> tuple[Floats, Floats]:
    """Steps that each report ends, from the step numbers, and how many of its epoch are done by then."""
    last = columns.get("last_step")
    if last is not None and np.isfinite(last).all():
        return last - number + 1, last + 1
    lines = columns.get("joined", np.ones(len(number)))
    lines = np.where(np.isnan(lines), 1.0, lines)
    if "counted" in columns:
        return lines * steps_a_line, np.cumsum(lines) * steps_a_line
    from_zero = float(number.min() == 0)
    done = number + from_zero
    gaps = np.diff(number, prepend=number[:1])
    inside = ~fresh & (gaps > 0)
    # Where every report is the first of its epoch, it ends the whole of it.
    stride = float(np.median(gaps[inside] / lines[inside])) if inside.any() else np.nan
    begun = np.where(lines > 1, lines * stride, np.fmin(done, stride))
    return np.maximum(np.where(inside, gaps, begun), 1.0), done


# Printed times coarser than this blur single steps.
FINEST_TICK = 0.01
# Rounded running means can cross when differenced; wider strides let the rounding vanish.
WIDEST_STRIDE = 1024
# A report is of another pace where it took so many times as long as the median, or as little.
OUTLYING_PACE = 3.0
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
class LoggedStepTimes:
    """`counts` took `seconds`, up to the same constant; times `factor` it is samples a second.

    `in_steps` tells that counts are steps and seconds are seconds, so that steps a second follow.
    """

    basis: Basis
    seconds: Floats
    counts: Floats
    factor: float | None
    in_steps: bool = True


def step_times(reports: LogReports, facts: LogFacts) -> LoggedStepTimes | None:
    """The times of the steps; None where the log has neither times nor rates."""
    batch = facts.samples_of_a_step()
    stamps = _times_by_timestamps(reports, facts, batch)
    if stamps is not None and batch is not None and _tick(reports["wall"]) <= FINEST_TICK:
        return stamps
    rates = _times_by_rates(reports, facts, batch) if np.isfinite(reports["rate"]).any() else None
    if rates is not None and rates.factor is not None:
        return rates
    if np.isfinite(_step_seconds(reports)).any():
        printed = _printed_times(reports, facts, batch)
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
    is_outlier = (inside > OUTLYING_PACE * middle) | (inside < middle / OUTLYING_PACE)
    return replace(window, stop=window.stop - 1) if is_outlier[-1] and is_outlier.sum() == 1 else window


def _times_by_timestamps(reports: LogReports, facts: LogFacts, batch: float | None) -> LoggedStepTimes | None:
    """From line to line within an epoch; between epochs there is evaluation, which is no training."""
    gaps = np.diff(reports["wall"], prepend=np.nan)
    usable = np.isfinite(gaps) & (gaps >= 0) & ~reports.fresh
    if not usable.any() or gaps[usable].sum() <= 0:
        return None
    samples = reports["samples"][usable]
    if np.isfinite(samples).all():
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
        return LoggedStepTimes(Basis.TIMESTAMPS, gaps[usable], samples, factor, in_steps=False)
    return LoggedStepTimes(Basis.TIMESTAMPS, gaps[usable], reports.steps[usable], batch)


def _times_by_rates(reports: LogReports, facts: LogFacts, batch: float | None) -> LoggedStepTimes:
    """n steps at rate r took n ÷ r, up to the batch, which cancels where rates give a rate again."""
    in_steps = facts.unit == "steps"
    factor = batch if in_steps else 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
    reports = reports.where(np.isfinite(reports["rate"]) & (reports["rate"] > 0))
    if facts.cumulative:
        return _differenced(reports, reports.done / reports["rate"], factor, in_steps)
    return LoggedStepTimes(Basis.RATES, *_weighed(reports), factor, in_steps)


def _weighed(reports: LogReports) -> tuple[Floats, Floats]:
    """Seconds and counts of each report: by its samples or its time where they are told, else by its steps.

    Batches of sentences differ in their tokens: of two rates, the one that held for longer counts for more.
    """
    rate, seconds, samples = reports["rate"], _step_seconds(reports), reports["samples"]
    if np.isfinite(samples).all():
        return samples / rate, samples
    if np.isfinite(seconds).all() and (seconds > 0).all():
        return reports.steps * seconds, reports.steps * seconds * rate
    return reports.steps / rate, reports.steps


def _printed_times(reports: LogReports, facts: LogFacts, batch: float | None) -> LoggedStepTimes:
    """Printed times of a step, which samples printed beside them make a rate of."""
    seconds = _step_seconds(reports)
    reports = reports.where(np.isfinite(seconds) & (seconds > 0))
    seconds = _step_seconds(reports)
    if facts.cumulative:
        return _differenced(reports, reports.done * seconds, batch)
    samples = reports["step_samples"]
    if np.isfinite(samples).all() and (samples > 0).all():
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
        return LoggedStepTimes(
            Basis.STEP_TIMES, reports.steps * seconds, reports.steps * samples, factor, in_steps=False
        )
    return LoggedStepTimes(Basis.STEP_TIMES, reports.steps * seconds, reports.steps, batch)


def _differenced(
    reports: LogReports, since_start: Floats, factor: float | None, in_steps: bool = True
) -> LoggedStepTimes:
    """Running means taken apart: what passed since the report before, or since the epoch began."""
    stride = 1
    while True:
        taken = reports.fresh | (np.arange(len(since_start)) % stride == stride - 1)
        fresh, done, passed = reports.fresh[taken], reports.done[taken], since_start[taken]
        seconds = np.where(fresh, passed, np.diff(passed, prepend=0.0))
        counts = np.where(fresh, done, np.diff(done, prepend=0.0))
        sound = (seconds > 0) & (counts > 0)
        if sound.all() or stride >= min(WIDEST_STRIDE, len(since_start)):
            return LoggedStepTimes(Basis.RUNNING_MEANS, seconds[sound], counts[sound], factor, in_steps)
        stride *= 2


def _step_seconds(reports: LogReports) -> Floats:
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
