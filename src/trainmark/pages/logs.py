"""What logs of other programs say: a table of their runs, how each was recognised, and the doubts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from trainmark.base.text import one_line
from trainmark.logs.read import LogReading, ReadLog, ReadRun, as_record
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.log_figure import LoggedFigure
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.view.blocks import Items, Page, Table

RIGHT_ALIGNED = frozenset({2, 4, 5, 6})
HEADER = ("log", "format", "devices", "precision", "batch", "steps", "throughput", "interval", "doubts")


def logs_page(reading: LogReading) -> Page:
    common = _common_folder([log.name for log in reading.logs])
    rows = [_cells(run, common) for run in reading.runs]
    return Page("", [Table(HEADER, rows, RIGHT_ALIGNED), Items(list(_sentences(reading, common)))])


def _sentences(reading: LogReading, common: str) -> Iterator[str]:
    if common:
        yield one_line(f"below {common}")
    for log in reading.logs:
        yield one_line(_recognised(log, common))
    for run in reading.runs:
        for doubt in run.doubts:
            if doubt.code is not DoubtCode.COPIED_LOGS:
                yield one_line(f"{run.source.removeprefix(common)}: {doubt.code.value}: {doubt.message}")
    for sentence in reading.copies:
        yield one_line(f"{DoubtCode.COPIED_LOGS.value}: {sentence}")


def _common_folder(names: Sequence[str]) -> str:
    """What the names of several logs begin with, up to a folder; it would fill half of the table."""
    try:
        folder = os.path.commonpath(names) + "/"
    except ValueError:  # whole paths beside relative ones
        return ""
    return folder if all(name.startswith(folder) for name in names) else ""


def _cells(run: ReadRun, common: str) -> list[str]:
    record = as_record(run)
    throughput = record["throughput"]
    return [
        run.source.removeprefix(common),
        run.format,
        _or_missing(record["world_size"]),
        _or_missing(run.precision),
        _or_missing(record["batch_per_device"]),
        f"{run.figure.steps:,}",
        _speed(run.figure),
        number.bounds(throughput["low"], throughput["high"]),
        ", ".join(doubt.code.value for doubt in run.doubts),
    ]


def _speed(figure: LoggedFigure) -> str:
    """Samples a second, or steps a second where the log tells no more."""
    if figure.throughput is not None:
        return f"{number.throughput(figure.throughput)} {rate_unit(figure.unit)}"
    pace = figure.steps_per_second
    return number.MISSING if pace is None else f"{number.throughput(pace)} steps/s"


def _recognised(log: ReadLog, common: str) -> str:
    sentence = f"{log.name.removeprefix(common)}: {log.title}"
    if log.recognition is None:
        sentence += ", as you said"
    else:
        matches, confidence = log.recognition.matches, log.recognition.confidence
        sentence += f", recognised by {matches} line{'s' * (matches != 1)} ({confidence:.0%} sure)"
    if len(log.runs) > 1:
        sentence += f"; it holds {len(log.runs)} runs"
    if log.damaged_lines:
        sentence += f"; {log.damaged_lines} overlong lines were cut"
    return f"{sentence}."


def _or_missing(value: Any) -> str:
    return number.MISSING if value is None else str(value)
