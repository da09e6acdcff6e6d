"""One trial's event stream, all ranks together, as columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import isfinite
from typing import Any

import numpy as np

from trainmark.events import DeviceSample, Event, RunStart, Scope
from trainmark.events.ranges import number_in
from trainmark.events.stream import StepBlock
from trainmark.measure.rank_events import (
    CLOCK_SLACK_SECONDS,
    CLOCK_TOLERANCE,
    RESUME_MARK,
    SAME_CLOCK_SECONDS,
    EventColumn,
    RankEvents,
    TraceError,
    events_by_rank,
    require_machine_clock,
)
from trainmark.measure.statistics import Floats, Integers
from trainmark.metric import Metric, declared_metrics

LONGEST_STEP_SECONDS = 7 * 86400.0

__all__ = ["Clock", "Floats", "Integers", "TimedMark", "Trace", "TraceError", "trace_of"]


@dataclass(frozen=True)
class Clock:
    """The time line of a trace: rank 0's monotonic clock, or the wall clock where that is missing."""

    monotonic: bool
    wall_offset: float | None
    """Wall minus monotonic time on rank 0's host, where both are known."""

    def moment(self, mono: float, wall: float) -> float:
        """A pair of times on this clock, also when `mono` was read on another host."""
        if not self.monotonic:
            return wall
        offset = wall - mono
        if self.wall_offset is None or not abs(offset - self.wall_offset) > SAME_CLOCK_SECONDS:
            return mono
        return wall - self.wall_offset

    def of_sample(self, sample: DeviceSample) -> float:
        return self.moment(sample.mono, sample.wall)


@dataclass(frozen=True)
class TimedMark:
    """A mark of one rank on the clock of the trace; `step` is the first step that was not yet done."""

    kind: str
    rank: int
    step: int
    at: float
    facts: dict[str, Any]
    ends_a_pause: bool

    @property
    def trained_before(self) -> float:
        """Seconds of the step that were trained before the pause, where a step was interrupted."""
        return number_in(self.facts, "trained_before") or 0.0


@dataclass(frozen=True)
class Trace:
    """The steps that every rank finished, in order; a step's end is that of its latest rank.

    A step begins where the one before it ends, or where what stood between them does: an evaluation, a
    checkpoint, the change of an epoch, the way back after a kill. Steps and marks that a resumption made
    void are not here.

    Columns by rank have one row for each rank that reports, in rank order.
    """

    world_size: int
    unit: str
    facts: dict[str, Any]
    end_facts: tuple[dict[str, Any], ...]
    """Of each rank that ended by its own will, in rank order."""
    clock: Clock
    start: float
    ends: Floats
    samples: Floats
    loss_steps: Integers
    """Positions (not step numbers) at which a loss was reported; `losses` holds their values."""
    losses: Floats
    data_wait: Floats | None
    memory: int | None
    rank_seconds: Floats
    """Step durations."""
    nodes: tuple[str | None, ...] = (None,)
    """The host of each rank, where it is told."""
    one_clock: bool = True
    """Whether the ranks' own clocks agree; where they do not, only durations can be compared."""
    rank_data_wait: Floats | None = None
    rank_compute: Floats | None = None
    rank_communication: Floats | None = None
    """None where not every rank tells it for every step."""
    numbers: Integers | None = None
    """The number of each step, as the ranks count; None stands for 0, 1, 2, …"""
    begins: Floats | None = None
    """None where nothing stood between the steps."""
    first_start: float | None = None
    """When the first rank started; `start` is when the last one did."""
    process_start: float | None = None
    """When the first process began, where the ranks tell it."""
    marks: tuple[TimedMark, ...] = ()
    """In the order of the ranks, and of each rank in that of its stream."""
    metrics: tuple[Metric, ...] = ()
    """What the evaluations give, as rank 0 declares it; the first ranks trainings."""

    @property
    def step_seconds(self) -> Floats:
        return np.diff(self.ends, prepend=self.start) if self.begins is None else self.ends - self.begins

    def spans(self, first: int, stop: int) -> list[tuple[float, float]]:
        """From when to when the steps `first` ≤ i < `stop` trained without a pause between them."""
        before = self.start if first == 0 else float(self.ends[first - 1])
        if self.begins is None:
            return [(before, float(self.ends[stop - 1]))]
        previous = np.concatenate([[self.start], self.ends[:-1]])[first:stop]
        cuts = [0, *(np.flatnonzero(self.begins[first + 1 : stop] > previous[1:]) + 1), stop - first]
        return [(float(self.begins[first + a]), float(self.ends[first + b - 1])) for a, b in pairwise(cuts)]


def trace_of(events: Iterable[Event | StepBlock]) -> Trace:
    """The columns of one trial; TraceError where its events cannot carry a figure.

    Where the start of the run has no time (a log that prints none), the first step only serves as start.
    """
    ranks = events_by_rank(events)
    starts = {rank: own_events.start for rank, own_events in ranks.items() if own_events.start is not None}
    if 0 not in starts:
        raise TraceError("rank 0 never started: its run_start event is missing.")
    lead = starts[0]
    _require_all_ranks(ranks, starts)
    speaking = [ranks[rank] for rank in sorted(starts)]
    _close_holes(speaking)
    require_machine_clock(speaking)
    steps = _common_steps(speaking)
    clock = _clock(speaking, lead)
    elsewhere = [_elsewhere(rank, speaking[0], clock) for rank in speaking]
    own_starts, ends_by_rank, shifts = _times(speaking, steps, clock, elsewhere)
    known_starts = [own for own in own_starts if own is not None]
    start = max(known_starts) if len(known_starts) == len(speaking) else None
    numbers = np.array(speaking[0].numbers[:steps])
    samples = _samples(speaking, steps, lead.scope)
    loss_steps, losses = _losses(speaking, steps)
    data_wait = _by_rank([rank.data_wait for rank in speaking], steps)
    compute = _by_rank([rank.compute for rank in speaking], steps)
    communication = _by_rank([rank.communication for rank in speaking], steps)
    if start is None:
        if steps < 2:
            raise TraceError("the run has one step and no time for its start, so nothing was timed.")
        start = float(ends_by_rank[:, 0].max())
        ends_by_rank, samples, numbers = ends_by_rank[:, 1:], samples[1:], numbers[1:]
        data_wait, compute, communication = (
            None if column is None else column[:, 1:] for column in (data_wait, compute, communication)
        )
        losses, loss_steps = losses[loss_steps > 0], loss_steps[loss_steps > 0] - 1
    ends = ends_by_rank.max(axis=0)
    if ends[0] < start:
        raise TraceError("time runs backwards: the first step ends before the run starts.")
    marks = _marks(speaking, clock, shifts)
    begins = _begins(start, ends, numbers, marks)
    _require_one_time_line(start, ends, begins, numbers)
    metrics = declared_metrics(lead.facts)
    _require_possible_shares(marks, metrics)
    return Trace(
        world_size=lead.world_size,
        unit=lead.unit,
        facts=lead.facts,
        end_facts=tuple(rank.end.facts for rank in speaking if rank.end is not None),
        clock=clock,
        start=start,
        ends=ends,
        samples=samples,
        loss_steps=loss_steps,
        losses=losses,
        data_wait=None if data_wait is None else np.nan_to_num(data_wait).max(axis=0),
        memory=max((rank.memory for rank in speaking if rank.memory is not None), default=None),
        rank_seconds=_rank_seconds(start, ends_by_rank, begins),
        nodes=tuple(rank.node for rank in speaking),
        one_clock=not any(elsewhere),
        rank_data_wait=_complete(data_wait),
        rank_compute=_complete(compute),
        rank_communication=_complete(communication),
        numbers=numbers,
        begins=begins,
        first_start=min(known_starts, default=None),
        process_start=_process_start(speaking, own_starts),
        marks=marks,
        metrics=metrics,
    )


def _require_possible_shares(marks: Iterable[TimedMark], metrics: Sequence[Metric]) -> None:
    """TraceError where an evaluation reports a share that cannot be: less than none, or more than 100 %."""
    for mark in marks:
        for metric in metrics if mark.kind == "eval" else ():
            value = metric.value_in(mark.facts)
            if metric.share and value is not None and not 0.0 <= value <= 100.0:
                raise TraceError(f"an evaluation cannot have {metric.name} {value:g}.")


def require_span_within(trace: Trace, seconds: float) -> None:
    """TraceError where the steps span more time than the trial took by the clock of whoever watched it.

    A training that went on from a checkpoint was watched in parts: nothing is said of it.
    """
    if any(mark.kind == RESUME_MARK for mark in trace.marks):
        return
    span = float(trace.ends[-1]) - trace.start
    if span > seconds * (1 + CLOCK_TOLERANCE) + CLOCK_SLACK_SECONDS:
        raise TraceError(
            f"its steps span {span:.6g} s and the whole trial took {seconds:.6g} s: its clock is wrong."
        )


def _require_all_ranks(ranks: dict[int, RankEvents], starts: dict[int, RunStart]) -> None:
    """Every rank must have spoken, unless rank 0 alone speaks for all of them."""
    lead = starts[0]
    if lead.scope is Scope.GLOBAL and set(ranks) == {0}:
        return
    # Never as large as the world size, which is the program's word: only what is there is counted.
    if absent := lead.world_size - sum(rank < lead.world_size for rank in starts):
        missing = islice((rank for rank in range(lead.world_size) if rank not in starts), 9)
        shown = ", ".join(["…" if count == 8 else str(rank) for count, rank in enumerate(missing)])
        raise TraceError(
            f"{absent} of {lead.world_size} ranks never started (missing: {shown}): "
            "their run_start events are not in the stream."
        )
    if (strange := max(ranks)) >= lead.world_size:
        raise TraceError(f"rank {strange} does not belong to a run of {lead.world_size} ranks.")


def _close_holes(ranks: list[RankEvents]) -> None:
    """A rank that was killed may not have written its last steps; what only others wrote does not count."""
    if not any(rank.resumed for rank in ranks):
        return
    numbers = [np.array(rank.numbers, dtype=np.int64) for rank in ranks]
    common = numbers[0]
    for own in numbers[1:]:
        common = np.intersect1d(common, own, assume_unique=True)
    for rank, own in zip(ranks, numbers, strict=True):
        if len(common) < len(own):
            rank.keep(np.flatnonzero(np.isin(own, common)))


def _common_steps(ranks: list[RankEvents]) -> int:
    """How many leading steps all ranks finished."""
    steps = min(len(rank.numbers) for rank in ranks)
    if steps == 0:
        raise TraceError("the stream holds no step that every rank finished.")
    lead = np.frombuffer(ranks[0].numbers, dtype=np.int64)[:steps]
    if (back := np.flatnonzero(np.diff(lead) <= 0)).size:
        raise TraceError(
            f"step {lead[back[0] + 1]} of rank 0 comes after step {lead[back[0]]}: "
            "the stream holds a step twice or out of order."
        )
    for index, rank in enumerate(ranks):
        numbers = np.frombuffer(rank.numbers, dtype=np.int64)[:steps]
        if (other := np.flatnonzero(numbers != lead)).size:
            position = other[0]
            raise TraceError(
                f"rank {index} reports step {numbers[position]} where rank 0 reports step {lead[position]}: "
                "events are missing or out of order."
            )
    return steps


def _clock(ranks: list[RankEvents], lead: RunStart) -> Clock:
    monotonic = not any(np.isnan(rank.mono).any() for rank in ranks)
    if not monotonic and any(np.isnan(rank.wall).any() for rank in ranks):
        raise TraceError("some steps have neither a monotonic nor a wall time, so nothing was timed.")
    offset = None if lead.mono is None or lead.wall is None else lead.wall - lead.mono
    return Clock(monotonic, offset)


def _elsewhere(rank: RankEvents, lead: RankEvents, clock: Clock) -> bool:
    """Whether a rank reads another clock than rank 0 does: it says so, or its clocks do."""
    assert rank.start is not None
    if rank.node is not None and lead.node is not None and rank.node != lead.node:
        return True
    mono, wall = rank.start.mono, rank.start.wall
    if not clock.monotonic or clock.wall_offset is None or mono is None or wall is None:
        return False
    return abs(wall - mono - clock.wall_offset) > SAME_CLOCK_SECONDS


def _times(
    ranks: list[RankEvents], steps: int, clock: Clock, elsewhere: list[bool]
) -> tuple[list[float | None], Floats, list[float]]:
    """Every rank's start and step ends, all on rank 0's clock, and by how much that is ahead of its own.

    Hosts agree on the time to a second at best, which is many steps. But ranks that wait for each other end
    a step together: the median distance of their step ends is the distance of their clocks.
    """
    starts: list[float | None] = []
    shifts: list[float] = []
    ends = np.empty((len(ranks), steps))
    for index, rank in enumerate(ranks):
        assert rank.start is not None
        own = np.array((rank.mono if clock.monotonic else rank.wall)[:steps])
        if (back := np.flatnonzero(np.diff(own) < 0)).size:
            raise TraceError(
                f"time runs backwards: step {rank.numbers[back[0] + 1]} of rank {index} "
                "ends before the one before it."
            )
        shift = float(np.median(ends[0] - own)) if elsewhere[index] else 0.0
        began = rank.start.mono if clock.monotonic else rank.start.wall
        starts.append(None if began is None else began + shift)
        ends[index] = own + shift
        shifts.append(shift)
    return starts, ends, shifts


def _marks(ranks: Sequence[RankEvents], clock: Clock, shifts: Sequence[float]) -> tuple[TimedMark, ...]:
    return tuple(
        TimedMark(mark.kind, rank, mark.step, at, mark.facts, mark.ends_a_pause)
        for rank, (own, shift) in enumerate(zip(ranks, shifts, strict=True))
        for mark in own.marks
        if isfinite(at := (mark.mono if clock.monotonic else mark.wall) + shift)
    )


def _begins(start: float, ends: Floats, numbers: Integers, marks: Iterable[TimedMark]) -> Floats | None:
    """A pause lasts until the last rank is through with it."""
    through = [mark for mark in marks if mark.ends_a_pause]
    if not through:
        return None
    begins = np.concatenate([[start], ends[:-1]])
    for mark, step in zip(through, np.searchsorted(numbers, [mark.step for mark in through]), strict=True):
        if step < len(begins):
            begins[step] = max(begins[step], mark.at - mark.trained_before)
    return np.asarray(np.minimum(begins, ends), dtype=np.float64)


def _require_one_time_line(start: float, ends: Floats, begins: Floats | None, numbers: Integers) -> None:
    """No step lasts for weeks: a clock that was set, or is of another unit, does."""
    seconds = np.diff(ends, prepend=start) if begins is None else ends - begins
    longest = int(np.argmax(seconds))
    if seconds[longest] > LONGEST_STEP_SECONDS:
        raise TraceError(
            f"step {numbers[longest]} lasts {seconds[longest]:.3g} s, which is weeks: its clock jumped."
        )


def _rank_seconds(start: float, ends_by_rank: Floats, begins: Floats | None) -> Floats:
    seconds = np.diff(ends_by_rank, axis=1, prepend=start)
    if begins is not None:
        ends = ends_by_rank.max(axis=0)
        paused = np.flatnonzero(begins > np.concatenate([[start], ends[:-1]]))
        seconds[:, paused] = np.maximum(ends_by_rank[:, paused] - begins[paused], 0.0)
    return seconds


def _process_start(ranks: Sequence[RankEvents], starts: Sequence[float | None]) -> float | None:
    """On each rank the process is as much older than the start as its own wall clock says."""
    process_starts = []
    for rank, start in zip(ranks, starts, strict=True):
        assert rank.start is not None
        began, wall = number_in(rank.start.facts, "process_started"), rank.start.wall
        if began is not None and wall is not None and start is not None:
            process_starts.append(start - max(0.0, wall - began))
    return min(process_starts, default=None)


def _samples(ranks: list[RankEvents], steps: int, scope: Scope) -> Floats:
    counted = ranks if scope is Scope.RANK else ranks[:1]
    samples = np.sum([rank.samples[:steps] for rank in counted], axis=0)
    if (silent := np.flatnonzero(np.isnan(samples))).size:
        raise TraceError(f"step {ranks[0].numbers[silent[0]]} does not say how many samples it trained on.")
    if (empty := np.flatnonzero(samples <= 0)).size:
        raise TraceError(f"step {ranks[0].numbers[empty[0]]} trained on no sample.")
    return np.asarray(samples, dtype=np.float64)


def _losses(ranks: list[RankEvents], steps: int) -> tuple[Integers, Floats]:
    total, reports = np.zeros(steps), np.zeros(steps)
    for rank in ranks:
        positions = np.array(rank.loss_positions, dtype=np.int64)
        within = positions < steps
        total[positions[within]] += np.array(rank.losses)[within]
        reports[positions[within]] += 1
    where = np.flatnonzero(reports)
    return where, total[where] / reports[where]


def _by_rank(columns: list[EventColumn], steps: int) -> Floats | None:
    if not any(column.values for column in columns):
        return None
    return np.array([column.first(steps) for column in columns])


def _complete(column: Floats | None) -> Floats | None:
    return None if column is None or np.isnan(column).any() else column
