"""The steps of one trial: what all ranks did together, at wall times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from pathlib import Path

from trainmark.events import RunStart, Step, stream
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
    return Steps(walls[0], tuple(StepRow(*row) for row in columns))


def _walls(trace: Trace, started: float) -> list[float]:
    """The start and the end of every step on the wall clock."""
    times = [trace.start, *trace.ends.tolist()]
    if not trace.clock.monotonic:
        return times
    offset = trace.clock.wall_offset
    shift = started - trace.start if offset is None else offset
    return [time + shift for time in times]


def _reported(files: Sequence[Path], trace: Trace) -> tuple[list[int], list[float | None], list[int | None]]:
    """Step numbers and learning rates as rank 0 told them, and the most memory of any rank, by position.

    Where a start has no time, the trace's first step is the stream's second: see `trace_of`.
    """
    numbers: list[int] = []
    lrs: list[float | None] = []
    memory: list[int | None] = []
    untimed = False
    for file in files:
        position = 0
        for event in stream.read(file):
            if isinstance(event, RunStart):
                read = event.mono if trace.clock.monotonic else event.wall
                untimed |= read is None
            elif isinstance(event, Step):
                if event.rank == 0:
                    numbers.append(event.step)
                    lrs.append(event.lr)
                if position == len(memory):
                    memory.append(None)
                if event.memory is not None:
                    memory[position] = max(event.memory, memory[position] or 0)
                position += 1
    first = int(untimed)
    return numbers[first:], lrs[first:], memory[first:]
