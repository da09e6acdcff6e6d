"""One trial's event stream, all ranks together, as columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.events import DeviceSample, Event, RunEnd, RunStart, Scope, Step

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Two hosts booted at different moments disagree on wall − mono by far more than this, two processes of
# one host by microseconds; so a larger difference means another host's monotonic clock.
SAME_CLOCK_SECONDS = 1.0

_UNKNOWN = float("nan")


class TraceError(ValueError):
    """A stream that no figure can be taken from; the message is one sentence that says why."""


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
class Trace:
    """The steps that every rank finished, in order; a step's end is that of its latest rank.

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

    @property
    def step_seconds(self) -> Floats:
        return np.diff(self.ends, prepend=self.start)


class _Column:
    """One number of each step, where it was told; what no step tells takes no room."""

    def __init__(self) -> None:
        self.values = array("d")

    def put(self, position: int, value: float) -> None:
        self.values.extend(_UNKNOWN for _ in range(position - len(self.values)))
        self.values.append(value)

    def first(self, steps: int) -> Floats:
        known = np.array(self.values[:steps])
        return np.concatenate([known, np.full(steps - len(known), _UNKNOWN)])


class _Rank:
    """What one rank said, gathered in flat arrays: a million steps are some fifty megabytes."""

    def __init__(self) -> None:
        self.start: RunStart | None = None
        self.end: RunEnd | None = None
        self.numbers = array("q")
        self.mono = array("d")
        self.wall = array("d")
        self.samples = array("d")
        self.data_wait, self.compute, self.communication = _Column(), _Column(), _Column()
        self.memory: int | None = None
        self.loss_positions = array("q")
        self.losses = array("d")

    @property
    def node(self) -> str | None:
        told = self.start.facts.get("node") if self.start else None
        return None if told is None else str(told)

    def add(self, step: Step) -> None:
        position = len(self.numbers)
        if step.loss is not None:
            self.loss_positions.append(position)
            self.losses.append(step.loss)
        self.numbers.append(step.step)
        self.mono.append(_UNKNOWN if step.mono is None else step.mono)
        self.wall.append(_UNKNOWN if step.wall is None else step.wall)
        self.samples.append(_UNKNOWN if step.samples is None else step.samples)
        if step.data_wait is not None:
            self.data_wait.put(position, step.data_wait)
        if step.compute is not None:
            self.compute.put(position, step.compute)
        if step.communication is not None:
            self.communication.put(position, step.communication)
        if step.memory is not None:
            self.memory = max(step.memory, self.memory or 0)


def trace_of(events: Iterable[Event]) -> Trace:
    """The columns of one trial; TraceError where its events cannot carry a figure.

    Where the start of the run has no time (a log that prints none), the first step only serves as start.
    """
    ranks = _gathered(events)
    starts = {rank: said.start for rank, said in ranks.items() if said.start is not None}
    if 0 not in starts:
        raise TraceError("rank 0 never started: its run_start event is missing.")
    lead = starts[0]
    _require_all_ranks(ranks, starts)
    speaking = [ranks[rank] for rank in sorted(starts)]
    steps = _common_steps(speaking)
    clock = _clock(speaking, lead)
    elsewhere = [_elsewhere(rank, speaking[0], clock) for rank in speaking]
    start, ends_by_rank = _times(speaking, steps, clock, elsewhere)
    samples = _samples(speaking, steps, lead.scope)
    loss_steps, losses = _losses(speaking, steps)
    data_wait = _by_rank([rank.data_wait for rank in speaking], steps)
    compute = _by_rank([rank.compute for rank in speaking], steps)
    communication = _by_rank([rank.communication for rank in speaking], steps)
    if start is None:
        if steps < 2:
            raise TraceError("the run has one step and no time for its start, so nothing was timed.")
        start = float(ends_by_rank[:, 0].max())
        ends_by_rank, samples = ends_by_rank[:, 1:], samples[1:]
        data_wait, compute, communication = (
            None if column is None else column[:, 1:] for column in (data_wait, compute, communication)
        )
        losses, loss_steps = losses[loss_steps > 0], loss_steps[loss_steps > 0] - 1
    ends = ends_by_rank.max(axis=0)
    if ends[0] < start:
        raise TraceError("time runs backwards: the first step ends before the run starts.")
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
        rank_seconds=np.diff(ends_by_rank, axis=1, prepend=start),
        nodes=tuple(rank.node for rank in speaking),
        one_clock=not any(elsewhere),
        rank_data_wait=_complete(data_wait),
        rank_compute=_complete(compute),
        rank_communication=_complete(communication),
    )


def _gathered(events: Iterable[Event]) -> dict[int, _Rank]:
    ranks: dict[int, _Rank] = {}
    for event in events:
        if isinstance(event, Step):
            if (rank := ranks.get(event.rank)) is None:
                rank = ranks[event.rank] = _Rank()
            rank.add(event)
        elif isinstance(event, RunStart):
            rank = ranks.setdefault(event.rank, _Rank())
            if rank.start is not None:
                raise TraceError(f"rank {event.rank} starts twice: the stream holds more than one run.")
            rank.start = event
        elif isinstance(event, RunEnd):
            ranks.setdefault(event.rank, _Rank()).end = event
    return ranks


def _require_all_ranks(ranks: dict[int, _Rank], starts: dict[int, RunStart]) -> None:
    """Every rank must have spoken, unless rank 0 alone speaks for all of them."""
    lead = starts[0]
    if lead.scope is Scope.GLOBAL and set(ranks) == {0}:
        return
    if missing := sorted(set(range(lead.world_size)) - set(starts)):
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        raise TraceError(
            f"{len(missing)} of {lead.world_size} ranks never started (missing: {shown}): "
            "their run_start events are not in the stream."
        )
    if strange := sorted(set(ranks) - set(range(lead.world_size))):
        raise TraceError(f"rank {strange[0]} does not belong to a run of {lead.world_size} ranks.")


def _common_steps(ranks: list[_Rank]) -> int:
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


def _clock(ranks: list[_Rank], lead: RunStart) -> Clock:
    monotonic = not any(np.isnan(rank.mono).any() for rank in ranks)
    if not monotonic and any(np.isnan(rank.wall).any() for rank in ranks):
        raise TraceError("some steps have neither a monotonic nor a wall time, so nothing was timed.")
    offset = None if lead.mono is None or lead.wall is None else lead.wall - lead.mono
    return Clock(monotonic, offset)


def _elsewhere(rank: _Rank, lead: _Rank, clock: Clock) -> bool:
    """Whether a rank reads another clock than rank 0 does: it says so, or its clocks do."""
    assert rank.start is not None
    if rank.node is not None and lead.node is not None and rank.node != lead.node:
        return True
    mono, wall = rank.start.mono, rank.start.wall
    if not clock.monotonic or clock.wall_offset is None or mono is None or wall is None:
        return False
    return abs(wall - mono - clock.wall_offset) > SAME_CLOCK_SECONDS


def _times(
    ranks: list[_Rank], steps: int, clock: Clock, elsewhere: list[bool]
) -> tuple[float | None, Floats]:
    """The latest rank's start and every rank's step ends, all on rank 0's clock.

    Hosts agree on the time to a second at best, which is many steps. But ranks that wait for each other end
    a step together: the median distance of their step ends is the distance of their clocks.
    """
    starts: list[float | None] = []
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
    known = [start for start in starts if start is not None]
    return (max(known) if len(known) == len(starts) else None), ends


def _samples(ranks: list[_Rank], steps: int, scope: Scope) -> Floats:
    counted = ranks if scope is Scope.RANK else ranks[:1]
    samples = np.sum([rank.samples[:steps] for rank in counted], axis=0)
    if (silent := np.flatnonzero(np.isnan(samples))).size:
        raise TraceError(f"step {ranks[0].numbers[silent[0]]} does not say how many samples it trained on.")
    return np.asarray(samples, dtype=np.float64)


def _losses(ranks: list[_Rank], steps: int) -> tuple[Integers, Floats]:
    total, reports = np.zeros(steps), np.zeros(steps)
    for rank in ranks:
        positions = np.array(rank.loss_positions, dtype=np.int64)
        kept = positions < steps
        total[positions[kept]] += np.array(rank.losses)[kept]
        reports[positions[kept]] += 1
    where = np.flatnonzero(reports)
    return where, total[where] / reports[where]


def _by_rank(columns: list[_Column], steps: int) -> Floats | None:
    if not any(column.values for column in columns):
        return None
    return np.array([column.first(steps) for column in columns])


def _complete(column: Floats | None) -> Floats | None:
    return None if column is None or np.isnan(column).any() else column
