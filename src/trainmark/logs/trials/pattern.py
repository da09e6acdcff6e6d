"""Steps of any program that prints a line a step: lines that match a pattern, or reports of a known format.

The times are those at which the lines reached us, so the program must not hold its output back (in Python:
`python -u`). What comes in a burst all the same, as from a program that does or to an agent that could not
read, is spread over the time since the burst before. A known format's own times are taken where it prints
them finely enough. Named groups are read where the pattern has them: `samples`, `loss`, `lr`.
"""

from __future__ import annotations

import bisect
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from trainmark.base.files import open_regular
from trainmark.events import Event, RunEnd, RunStart, Scope, Step
from trainmark.logs.format import Format
from trainmark.logs.input import ANSI
from trainmark.logs.logged_run import parse_times
from trainmark.logs.trials.output import Output, ReaderError

# When a step ended, and what its line says of it.
StepEnd = tuple[float, dict[str, float]]
NUMBERS = ("samples", "loss", "lr")
# A longer line is looked at in pieces: what a program prints must not fill our memory.
LONGEST_LINE = 1 << 20
# Lines this close, and by this share of the mean distance, are one burst: a relay passes it on line by line.
BURST_SECONDS, BURST_SHARE = 0.0002, 0.1


def read(output: Output) -> Iterator[Event]:
    if output.pattern is None:
        raise ReaderError("the reader 'pattern' needs a 'pattern', a regular expression that matches a step.")
    pattern = re.compile(output.pattern.encode())
    steps = [list(_steps(log_of(output, rank), pattern)) for rank in range(output.world_size)]
    if not steps[0]:
        raise ReaderError(f"no line of rank 0 matches the pattern {output.pattern!r}.")
    yield from events(steps, output, "lines that match the pattern")


def events(steps: Sequence[Sequence[StepEnd]], output: Output, source: str) -> Iterator[Event]:
    """The steps of each rank, in order, as events; the first one only starts the clock.

    `source` names what they are read from.
    """
    # Where rank 0 alone prints, it speaks for all of them.
    alone = output.world_size > 1 and not any(steps[1:])
    spoken = [_spread(ended, rank) for rank, ended in enumerate(steps[:1] if alone else steps)]
    first = max(lines.first for lines in spoken)
    facts = {"source": source, **_burst_facts(spoken)}
    ranks = output.world_size if alone else 1
    per_line = output.samples_per_step or (output.batch_per_device or 1) * ranks
    known = output.samples_per_step or output.batch_per_device or "samples" in steps[0][0][1]
    for rank, lines in enumerate(spoken):
        ended = lines.ended[first:]
        began = ended[0][0] if ended else None
        yield RunStart(
            rank=rank,
            world_size=1 if alone else output.world_size,
            mono=began,
            wall=None,
            unit=output.unit if known else "steps",
            scope=Scope.GLOBAL if alone else Scope.RANK,
            facts=facts,
        )
        for number, (mono, groups) in enumerate(ended[1:]):
            yield Step(
                rank=rank,
                step=number,
                mono=mono,
                wall=None,
                samples=groups.get("samples", per_line * groups.get("steps", 1)),
                loss=groups.get("loss"),
                lr=groups.get("lr"),
            )
        if ended:
            # Only what ended well is read.
            yield RunEnd(rank, mono=ended[-1][0], wall=None)


@dataclass(frozen=True)
class _Lines:
    """One rank's lines: that at `first` starts the clock; `printed` lines came in so many bursts."""

    ended: Sequence[StepEnd]
    first: int
    printed: int
    bursts: int

    @property
    def mostly_together(self) -> bool:
        return 2 * self.bursts < self.printed


def _spread(ended: Sequence[StepEnd], rank: int) -> _Lines:
    """Spread the lines of each burst over the time since the burst before, so that a window may begin at any.

    Before the first burst is no time, so its last line starts the clock. Where most lines come in bursts, the
    last one is left out: it came when the program ended, whenever its steps did.
    """
    if len(ended) < 2:
        return _Lines(ended, 0, len(ended), len(ended))
    times = np.array([mono for mono, _ in ended])
    gaps = np.diff(times)
    close = min(BURST_SECONDS, BURST_SHARE * float(gaps.mean()))
    lasts = np.flatnonzero(np.append((gaps < 0) | (gaps > close), True))
    spread = np.interp(np.arange(len(times)), lasts, times[lasts]).tolist()
    apart = [(mono, numbers) for mono, (_, numbers) in zip(spread, ended, strict=True)]
    lines = _Lines(apart, int(lasts[0]), len(ended), len(lasts))
    if lines.bursts < (3 if lines.mostly_together else 2):
        raise ReaderError(
            f"the {lines.printed} lines of rank {rank}'s steps came in too few bursts ({lines.bursts}) to be "
            "timed: let the program flush each line (`python -u`, `stdbuf -oL`), or run more steps."
        )
    return replace(lines, ended=apart[: lasts[-2] + 1]) if lines.mostly_together else lines


def _burst_facts(spoken: Sequence[_Lines]) -> dict[str, int]:
    """Of the rank whose lines tell the least, where most of them came together."""
    worst = min(spoken, key=lambda lines: lines.bursts / max(1, lines.printed))
    return {"lines_in_bursts": worst.printed, "line_bursts": worst.bursts} if worst.mostly_together else {}


def log_of(output: Output, rank: int) -> Path:
    return output.folder / "logs" / f"rank{rank}.log"


def _steps(log: Path, pattern: re.Pattern[bytes]) -> Iterator[StepEnd]:
    for when, line in arrived_lines(log):
        if match := pattern.search(line):
            yield when(), _numbers(match)


def arrived_lines(log: Path) -> Iterator[tuple[Callable[[], float], bytes]]:
    """The lines of a log, each with what tells when it came."""
    offsets, times = _arrivals(log.with_suffix(".arrivals"))

    def when(end: int) -> float:
        arrival = bisect.bisect_left(offsets, end)
        if arrival == len(times):
            raise ReaderError(f"{log.name} holds more than its arrivals tell: was the disk full?")
        return times[arrival]

    end = 0
    try:
        with open_regular(log) as file:
            while line := file.readline(LONGEST_LINE):
                end += len(line)
                yield partial(when, end), line
    except OSError as error:
        raise ReaderError(f"{log.name} cannot be read: {error.strerror}.") from error


def _arrivals(path: Path) -> tuple[Sequence[int], Sequence[float]]:
    """Up to which byte the log had come by when; a last line cut short by a killed agent is left out."""
    offsets, times = array("q"), array("d")
    try:
        with open_regular(path) as file:
            for line in file:
                if line.endswith(b"\n"):
                    offset, seconds = line.split()
                    offsets.append(int(offset))
                    times.append(float(seconds))
        return offsets, times
    except (OSError, ValueError) as error:
        raise ReaderError(f"{path.name} does not tell when the lines came: {error}.") from error


def _numbers(match: re.Match[bytes]) -> dict[str, float]:
    """The groups that mean something here; a pattern may name others for its own use."""
    numbers = {}
    for name, text in match.groupdict().items():
        if name in NUMBERS and text is not None:
            try:
                numbers[name] = float(text)
            except ValueError as error:
                raise ReaderError(f"the pattern's group '{name}' matched {text!r}, no number.") from error
    return numbers


# A printed time with fewer decimals than this is coarser than the arrival of its line.
FINE_TIME = re.compile(rb"[.,]\d{2,}$")


def read_format(format: Format, output: Output) -> Iterator[Event]:
    reports = [list(_reports(format, output, rank)) for rank in range(output.world_size)]
    if not reports[0]:
        raise ReaderError(f"no line of rank 0 is one of {format.title}.")
    yield from events(reports, output, f"the log, read as {format.title}")


def _reports(format: Format, output: Output, rank: int) -> Iterator[StepEnd]:
    before: float | None = None
    for when, line in arrived_lines(log_of(output, rank)):
        for match in format.step.finditer(format.prepare(ANSI.sub(b"", line))):
            groups = match.groupdict()
            wall = groups.get("wall")
            # Reports over a range of steps name its last one, and so need none before them.
            step = _optional_number(groups.get("last_step") or groups.get("step"))
            steps = step - before if step is not None and before is not None and step > before else None
            before = step
            numbers = {"loss": _optional_number(groups.get("loss")), "lr": _optional_number(groups.get("lr"))}
            numbers["steps"] = steps if steps is not None else float(format.steps_a_line)
            ended = (
                float(parse_times((wall,), format.clock)[0]) if wall and FINE_TIME.search(wall) else when()
            )
            yield ended, {name: value for name, value in numbers.items() if value is not None}


def _optional_number(text: bytes | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
