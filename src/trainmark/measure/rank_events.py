"""The events of one rank in flat columns, and whether the clock that timed them went at its machine's pace.

A million steps are some fifty megabytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmark.events import Event, Mark, RunEnd, RunStart, Step
from trainmark.events.ranges import count_in, number_in
from trainmark.events.stream import StepBlock
from trainmark.measure.statistics import Floats, Integers

# Two hosts booted at different moments disagree on wall − mono by far more than this, two processes of
# one host by microseconds; so a larger difference means another host's monotonic clock.
SAME_CLOCK_SECONDS = 1.0

NOT_REPORTED = float("nan")


class TraceError(ValueError):
    """A stream that no figure can be taken from; the message is one sentence that says why."""


@dataclass(frozen=True)
class RankMark:
    """A mark on the rank's own clocks, NaN where one is not told; `step` is the first step not yet done."""

    kind: str
    step: int
    mono: float
    wall: float
    facts: dict[str, Any]

    @property
    def ends_a_pause(self) -> bool:
        """What lies between the step before and this mark is no training."""
        state = self.facts.get("state")
        return (self.kind, state if isinstance(state, str) else None) in PAUSE_ENDS or (
            self.kind == "checkpoint" and "seconds" in self.facts
        )


# The kind under which a resumption stands among the marks.
RESUME_MARK = "resume"
PAUSE_ENDS = frozenset({("epoch", "begin"), ("eval", "end"), (RESUME_MARK, None)})


class EventColumn:
    """One number of each step, where it was told; what no step tells takes no room."""

    def __init__(self) -> None:
        self.values = array("d")

    def put(self, position: int, value: float) -> None:
        self.values.extend(NOT_REPORTED for _ in range(position - len(self.values)))
        self.values.append(value)

    def put_all(self, position: int, values: Floats) -> None:
        self.values.extend(NOT_REPORTED for _ in range(position - len(self.values)))
        self.values.frombytes(values.tobytes())

    def first(self, steps: int) -> Floats:
        known = np.array(self.values[:steps])
        return np.concatenate([known, np.full(steps - len(known), NOT_REPORTED)])


class RankEvents:
    """The events of one rank; a resumption takes back the steps and marks that it made void."""

    def __init__(self) -> None:
        self.start: RunStart | None = None
        self.end: RunEnd | None = None
        self.numbers = array("q")
        self.mono = array("d")
        self.wall = array("d")
        self.samples = array("d")
        self.data_wait, self.compute, self.communication = EventColumn(), EventColumn(), EventColumn()
        self.memory: int | None = None
        self.loss_positions = array("q")
        self.losses = array("d")
        self.marks: list[RankMark] = []
        self._next = 0
        # Of a process on another host, or after a boot, to the clock of the first.
        self._mono_shift = 0.0

    @property
    def node(self) -> str | None:
        name = self.start.facts.get("node") if self.start else None
        return None if name is None else str(name)

    @property
    def resumed(self) -> bool:
        return any(mark.kind == RESUME_MARK for mark in self.marks)

    def begin(self, start: RunStart) -> None:
        if self.start is None:
            if self.numbers or self.end is not None:
                raise TraceError(f"rank {start.rank} tells of steps before its run_start.")
            self.start = start
        elif (step := count_in(start.facts, "resumed_step")) is not None:
            self._resume(start, step)
        else:
            raise TraceError(f"rank {start.rank} starts twice: the stream holds more than one run.")

    def add(self, step: Step) -> None:
        if self.end is not None:
            raise TraceError(f"step {step.step} of rank {step.rank} comes after its run_end.")
        position = len(self.numbers)
        if step.loss is not None:
            self.loss_positions.append(position)
            self.losses.append(step.loss)
        self.numbers.append(step.step)
        self.mono.append(NOT_REPORTED if step.mono is None else step.mono + self._mono_shift)
        self.wall.append(NOT_REPORTED if step.wall is None else step.wall)
        self.samples.append(NOT_REPORTED if step.samples is None else step.samples)
        if step.data_wait is not None:
            self.data_wait.put(position, step.data_wait)
        if step.compute is not None:
            self.compute.put(position, step.compute)
        if step.communication is not None:
            self.communication.put(position, step.communication)
        if step.memory is not None:
            self.memory = max(step.memory, self.memory or 0)
        self._next = step.step + 1

    def finish(self, end: RunEnd) -> None:
        if self.end is not None:
            raise TraceError(f"rank {end.rank} ends twice: the stream holds more than one run.")
        self.end = end

    def mark(self, kind: str, mono: float | None, wall: float | None, facts: dict[str, Any]) -> None:
        shifted = NOT_REPORTED if mono is None else mono + self._mono_shift
        self.marks.append(RankMark(kind, self._next, shifted, NOT_REPORTED if wall is None else wall, facts))

    def extend(self, block: StepBlock) -> None:
        """Add many steps at once: the same as `add` of each, in a tenth of the time."""
        if self.end is not None:
            raise TraceError(f"step {block.steps[0]} of rank {block.rank} comes after its run_end.")
        position, count = len(self.numbers), len(block.steps)

        def column(name: str) -> Floats:
            values = block.columns[name]
            return np.full(count, NOT_REPORTED) if values is None else np.array(values, dtype=np.float64)

        self.numbers.extend(block.steps)
        self.mono.frombytes((column("mono") + self._mono_shift).tobytes())
        self.wall.frombytes(column("wall").tobytes())
        self.samples.frombytes(column("samples").tobytes())
        for name in ("data_wait", "compute", "communication"):
            if block.columns[name] is not None:
                getattr(self, name).put_all(position, column(name))
        if (losses := block.columns["loss"]) is not None:
            reported = [at for at in range(count) if losses[at] is not None]
            self.loss_positions.extend(position + at for at in reported)
            self.losses.extend(losses[at] for at in reported)
        if (memory := block.columns["memory"]) is not None:
            self.memory = max(max(filter(None, memory), default=0), self.memory or 0)
        self._next = block.steps[-1] + 1

    def keep(self, positions: Integers) -> None:
        """Only these steps, in this order."""
        for column in (self.data_wait, self.compute, self.communication):
            if column.values:
                column.values = array("d", column.first(len(self.numbers))[positions].tobytes())
        places = {int(old): new for new, old in enumerate(positions)}
        losses = [(places[at], loss) for at, loss in self._reported_losses() if at in places]
        self.loss_positions = array("q", [at for at, _ in losses])
        self.losses = array("d", [loss for _, loss in losses])
        self.numbers = array("q", np.frombuffer(self.numbers, dtype=np.int64)[positions].tobytes())
        for name in ("mono", "wall", "samples"):
            own = np.frombuffer(getattr(self, name), dtype=np.float64)
            setattr(self, name, array("d", own[positions].tobytes()))

    def _reported_losses(self) -> Iterable[tuple[int, float]]:
        return zip(self.loss_positions, self.losses, strict=True)

    def _resume(self, start: RunStart, step: int) -> None:
        count = bisect_left(self.numbers, step)
        for column in (self.data_wait.values, self.compute.values, self.communication.values):
            del column[count:]
        del self.numbers[count:], self.mono[count:], self.wall[count:], self.samples[count:]
        losses = bisect_left(self.loss_positions, count)
        del self.loss_positions[losses:], self.losses[losses:]
        self.marks = [mark for mark in self.marks if mark.step <= step]
        self._mono_shift = self._shift_to_the_first(start)
        self._next, self.end = step, None
        self.mark(RESUME_MARK, start.mono, start.wall, start.facts)

    def _shift_to_the_first(self, start: RunStart) -> float:
        first = self.start
        if first is None or None in (first.mono, first.wall, start.mono, start.wall):
            return 0.0
        assert first.mono is not None and first.wall is not None
        assert start.mono is not None and start.wall is not None
        shift = (start.wall - start.mono) - (first.wall - first.mono)
        return shift if abs(shift) > SAME_CLOCK_SECONDS else 0.0


def events_by_rank(events: Iterable[Event | StepBlock]) -> dict[int, RankEvents]:
    ranks: dict[int, RankEvents] = {}
    for event in events:
        if isinstance(event, StepBlock):
            ranks.setdefault(event.rank, RankEvents()).extend(event)
        elif isinstance(event, Step):
            if (rank := ranks.get(event.rank)) is None:
                rank = ranks[event.rank] = RankEvents()
            rank.add(event)
        elif isinstance(event, RunStart):
            ranks.setdefault(event.rank, RankEvents()).begin(event)
        elif isinstance(event, Mark):
            if event.kind != "note" and (rank := ranks.get(event.rank)) is not None:
                rank.mark(event.kind, event.mono, event.wall, event.facts)
        elif isinstance(event, RunEnd):
            ranks.setdefault(event.rank, RankEvents()).finish(event)
    return ranks


# What the probe tells where its process's clock left the machine's; see ClockCheck there.
CLOCK_DRIFT = "clock_drift"
# By how much a device's or another host's clock may run faster than ours.
CLOCK_TOLERANCE, CLOCK_SLACK_SECONDS = 0.01, 1.0
# A wall clock is set in single jumps (a time server, a machine that slept); a false pace is in all steps.
MOST_JUMPS = 3
# A process may be held up between reading the one clock and the other; some wall times are rounded.
READING_SECONDS, ROUNDED_TO = 0.05, (1.0, 0.1, 0.01)


def require_machine_clock(ranks: Sequence[RankEvents]) -> None:
    """TraceError where a rank's times cannot be those of its machine."""
    for number, rank in enumerate(ranks):
        span = _span(rank)
        for facts in (each.facts for each in (rank.start, rank.end) if each is not None):
            if drift := number_in(facts, CLOCK_DRIFT):
                raise TraceError(
                    f"while the clock of rank {number} went on by {span:.3g} s, its machine's went on by "
                    f"{max(0.0, span + drift):.3g} s: run it without what replaces clocks (faketime, "
                    "freezegun, time-machine)."
                )
        if not rank.resumed and abs(apart := _wall_ahead(rank)) > _wall_slack(rank) + CLOCK_TOLERANCE * span:
            raise TraceError(
                f"the steps of rank {number} last {span:.3g} s by their monotonic times and "
                f"{span + apart:.3g} s by their wall times: one of the two clocks is not the machine's."
            )


def _span(rank: RankEvents) -> float:
    known = np.array(rank.mono)
    known = known[np.isfinite(known)]
    return float(known[-1] - known[0]) if len(known) else 0.0


def _wall_ahead(rank: RankEvents) -> float:
    """Seconds by which wall times go on further than monotonic ones, in all steps but those of jumps."""
    apart = np.diff(np.array(rank.wall) - np.array(rank.mono))
    if not np.isfinite(apart).all() or len(apart) <= MOST_JUMPS:
        return 0.0
    return float(np.sum(apart[np.argsort(np.abs(apart))[:-MOST_JUMPS]]))


def _wall_slack(rank: RankEvents) -> float:
    """By how much rounding can part the two: in the whole span, and in each jump that was set aside."""
    wall = np.array(rank.wall)
    rounded = (
        unit for unit in ROUNDED_TO if np.allclose(wall, np.round(wall / unit) * unit, rtol=0, atol=1e-6)
    )
    return max(READING_SECONDS, (MOST_JUMPS + 1) * next(rounded, 0.0))
