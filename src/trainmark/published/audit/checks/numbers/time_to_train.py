"""Throughput times time against epochs times the images of an epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.grid import Figure, Row, all_grids, counts_whole_job
from trainmark.published.audit.claims.models.resnet50 import IMAGENET_IMAGES, is_of_resnet50
from trainmark.published.audit.claims.statements import EPOCHS, LONGEST_LINE, statements
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

OPTION = re.compile(r"--(?:num_)?epochs?[ =](\d{1,4})\b|--iter_unit=epoch --num_iter=(\d{1,4})\b")
# Start-up, evaluation and checkpoints take time that the throughput of training leaves out.
USUAL_OVERHEAD = 1.05
# More than this much on top, and something other than that was counted.
LARGEST_OVERHEAD = 1.5
ROUNDING = 0.995
TOO_LITTLE = "too little time for the epochs"


def check(report: Report) -> Iterator[Finding]:
    epochs_by_seconds = {
        statement.seconds.value: statement.epochs
        for statement in statements(report)
        if statement.seconds and statement.epochs
    }
    options = {int(a or b) for block in report.code for a, b in OPTION.findall(" ".join(block.lines))}
    only_option = min(options) if len(options) == 1 else None
    told = {int(count) for passage in report.prose for count in EPOCHS.findall(passage.text[:LONGEST_LINE])}
    for grid in all_grids(report):
        for row in grid.rows if is_of_resnet50(grid) else ():
            times, rates = row.of("time_to_train"), row.of("throughput")
            if len(times) != 1 or len(rates) != 1 or not counts_whole_job(rates[0]):
                continue
            seconds = times[0].number.value
            epochs = _epochs_of(row) or epochs_by_seconds.get(seconds) or only_option
            if epochs and seconds > 0:
                yield from _compare(report, times[0], rates[0].number, seconds, epochs)
            elif len(told) == 1 and seconds > 0:
                # The one number of epochs in the text may be of another run: only too little time is told.
                found = _compare(report, times[0], rates[0].number, seconds, *told)
                yield from (finding for finding in found if TOO_LITTLE in finding.message)


def _compare(report: Report, time: Figure, rate: Number, seconds: float, epochs: int) -> Iterator[Finding]:
    if rate.value <= 0:
        return
    needed = epochs * IMAGENET_IMAGES / rate.value
    share = seconds / needed
    if ROUNDING <= share <= USUAL_OVERHEAD:
        return
    impossible = share < ROUNDING or share > LARGEST_OVERHEAD
    effective = epochs * IMAGENET_IMAGES / seconds
    seen = rate.value * seconds / IMAGENET_IMAGES
    reason = (
        TOO_LITTLE
        if share < 1
        else f"{share - 1:.0%} of time on top, which evaluation and start-up would have to explain"
    )
    yield Finding(
        "time-throughput-mismatch",
        Severity.ERROR if impossible else Severity.WARNING,
        report.where(time.cell.line),
        claimed=f"{time.cell.text} for {epochs} epochs at {rate.value:g} images/s",
        derived=f"{effective:.1f} images/s over the whole time",
        message=f"time and throughput make {seen:.1f} epochs of {IMAGENET_IMAGES:,} images: {reason}.",
    )


def _epochs_of(row: Row) -> int | None:
    figures = row.of("epochs")
    return int(figures[0].number.value) if len(figures) == 1 and figures[0].number.value < 1e6 else None
