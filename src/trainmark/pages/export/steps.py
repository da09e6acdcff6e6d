"""The steps of one trial: what all ranks did together, at wall times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from pathlib import Path

from trainmark.events import Step, stream
from trainmark.measure.trace import Trace, TraceError, trace_of

# The end of the year 9999: dates beyond it have no form in any of the formats.
LAST_MOMENT = 253_402_300_799.0


@dataclass(frozen=True)
class StepRow:
    """One step of all ranks, its end at `wall`; what was not reported is None."""

    number: int
    wall: float
    seconds: float
    samples: float
    loss: float | None
    lr: float | None
    memory: int | None

    @property
    def rate(self) -> float | None:
        """Samples of all ranks a second, over this step alone; None where the clock did not advance."""
        return self.samples / self.seconds if self.seconds > 0 else None


@dataclass(frozen=True)
class Steps:
    start: float
    """Wall time at which the last rank began."""
    rows: tuple[StepRow, ...]

    first_start: float
    """Wall time at which the first rank began: the zero of a finish."""

    @property
    def end(self) -> float:
        return self.rows[-1].wall

    @property
    def samples(self) -> float:
        return sum(row.samples for row in self.rows)


def read_steps(files: Sequence[Path], started: float) -> Steps:
    """The steps in the event files of a trial's ranks.

    `started` places the steps of a stream without wall times. TraceError, StreamError or OSError where the
    files cannot carry a figure.
    """
    trace = trace_of(chain.from_iterable(map(stream.read, files)))
    walls = _walls(trace, started)
    if not all(0 <= wall <= LAST_MOMENT for wall in walls):
        raise TraceError("its times lie outside the years 1970 to 9999.")
    if not all(map(isfinite, trace.samples.tolist())):
        raise TraceError("a step trains on an infinite number of samples.")
    numbers, lrs, memory = _reported(files, trace)
    losses: list[float | None] = [None] * len(walls)
    for position, loss in zip(trace.loss_steps.tolist(), trace.losses.tolist(), strict=True):
        losses[position] = loss
    columns = zip(
        numbers, walls[1:], trace.step_seconds.tolist(), trace.samples.tolist(), losses, lrs, memory,
        strict=False,
    )  # fmt: skip
    first = trace.start if trace.first_start is None else trace.first_start
    return Steps(walls[0], tuple(StepRow(*row) for row in columns), walls[0] - trace.start + first)


def _walls(trace: Trace, started: float) -> list[float]:
    """The start and the end of every step on the wall clock."""
    times = [trace.start, *trace.ends.tolist()]
    if not trace.clock.monotonic:
        return times
    offset = trace.clock.wall_offset
    shift = started - trace.start if offset is None else offset
    return [time + shift for time in times]


def _reported(files: Sequence[Path], trace: Trace) -> tuple[list[int], list[float | None], list[int | None]]:
    """Step numbers and learning rates as rank 0 told them, and the most memory of any rank, by position."""
    lrs: dict[int, float | None] = {}
    memory: dict[int, int] = {}
    for event in chain.from_iterable(map(stream.read, files)):
        if isinstance(event, Step):
            if event.rank == 0:
                lrs[event.step] = event.lr  # of a step that was trained again after a kill, the last
            if event.memory is not None:
                memory[event.step] = max(event.memory, memory.get(event.step, 0))
    assert trace.numbers is not None
    numbers: list[int] = trace.numbers.tolist()
    return numbers, [lrs.get(number) for number in numbers], [memory.get(number) for number in numbers]
