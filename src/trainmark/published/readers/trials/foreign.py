"""A trial of a program whose log we can read: each report of progress ends the steps that it stands for.

The times are the log's own where it prints them finely enough, and else those at which the lines came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.events import Event
from trainmark.published.readers.format import Format
from trainmark.published.readers.input.lines import ANSI
from trainmark.published.readers.steps import times
from trainmark.published.readers.trials.output import Output, ReaderError
from trainmark.published.readers.trials.pattern import Ended, arrived_lines, events, log_of

# A printed time with fewer decimals than this is coarser than the arrival of its line.
FINE_TIME = re.compile(rb"[.,]\d{2,}$")


def read(format: Format, output: Output) -> Iterator[Event]:
    reports = [list(_reports(format, output, rank)) for rank in range(output.world_size)]
    if not reports[0]:
        raise ReaderError(f"no line of rank 0 is one of {format.title}.")
    yield from events(reports, output, f"the log, read as {format.title}")


def _reports(format: Format, output: Output, rank: int) -> Iterator[Ended]:
    before: float | None = None
    for when, line in arrived_lines(log_of(output, rank)):
        clean = ANSI.sub(b"", line)
        for match in format.step.finditer(clean if format.prepare is None else format.prepare(clean)):
            groups = match.groupdict()
            wall = groups.get("wall")
            # Reports over a range of steps name its last one, and so need none before them.
            step = _number(groups.get("last_step") or groups.get("step"))
            steps = step - before if step is not None and before is not None and step > before else None
            before = step
            numbers = {"loss": _number(groups.get("loss")), "lr": _number(groups.get("lr"))}
            numbers["steps"] = steps if steps is not None else float(format.steps_a_line)
            ended = float(times((wall,), format.clock)[0]) if wall and FINE_TIME.search(wall) else when()
            yield ended, {name: value for name, value in numbers.items() if value is not None}


def _number(text: bytes | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
