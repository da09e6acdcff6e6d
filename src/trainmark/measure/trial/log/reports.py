"""The progress lines of a log, ranks joined: how many steps each report stands for, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainmark.measure.statistics.arrays import Floats

# A report's place: room for 10⁹ steps an epoch, exact in a double up to nine million epochs.
STEPS_AN_EPOCH = 1e9
# A step number this far below the highest is that of a new epoch; ranks that print by turns differ by less.
RESTART_SHARE = 0.5
# Reports that a rank may lie behind another where all of them write to one file.
MOST_BEHIND = 10


@dataclass(frozen=True)
class Reports:
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

    def where(self, mask: NDArray[np.bool_]) -> Reports:
        columns = {name: column[mask] for name, column in self.columns.items()}
        return replace(
            self, steps=self.steps[mask], done=self.done[mask], fresh=self.fresh[mask], columns=columns
        )


def reports(columns: Mapping[str, Floats], steps_a_line: int = 1, rates_add_up: bool = False) -> Reports:
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
    falls = _falls(np.floor(epoch) * STEPS_AN_EPOCH + number) if has_epochs else _falls_within(number)
    return Reports(steps, done, fresh, columns, ranks, falls, restarts)


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


def _falls(place: Floats) -> int:
    return int((np.diff(place) < 0).sum())


def _falls_within(number: Floats) -> int:
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
