"""Throughput times time against epochs times the images of an epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.audit.columns import simplified
from trainmark.audit.finding import Finding, Severity
from trainmark.audit.number import Number
from trainmark.audit.report import Report
from trainmark.audit.series import Figure, Row, all_series, counts_whole_job
from trainmark.audit.statements import statements

IMAGENET_IMAGES = 1_281_167
IMAGENET = re.compile(r"imagenet|ILSVRC|resnet-?50", re.I)
OPTION = re.compile(r"--(?:num_)?epochs?[ =](\d{1,4})\b|--iter_unit=epoch --num_iter=(\d{1,4})\b")
# Start-up, evaluation and checkpoints take time that the throughput of training leaves out.
USUAL_OVERHEAD = 1.05
# More than this much on top, and something other than that was counted.
LARGEST_OVERHEAD = 1.5
ROUNDING = 0.995


def check(report: Report) -> Iterator[Finding]:
    if not report.mentions(IMAGENET):
        return
    told = {said.seconds.value: said.epochs for said in statements(report) if said.seconds and said.epochs}
    options = {int(a or b) for block in report.code for a, b in OPTION.findall(" ".join(block.lines))}
    only_option = min(options) if len(options) == 1 else None
    for series in all_series(report):
        for row in series.rows:
            times, rates = row.of("time_to_train"), row.of("throughput")
            if len(times) != 1 or len(rates) != 1 or not counts_whole_job(rates[0]):
                continue
            seconds = times[0].number.value * _unit(times[0].head)
            epochs = _epochs_of(row) or told.get(seconds) or only_option
            if epochs and seconds > 0:
                yield from _compare(report, times[0], rates[0].number, seconds, epochs)


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
        "too little time for the epochs"
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
    found = row.of("epochs")
    return int(found[0].number.value) if len(found) == 1 and found[0].number.value < 1e6 else None


def _unit(head: str) -> float:
    plain = simplified(head)
    if re.search(r"\b(min|minutes?)\b|分钟", plain):
        return 60.0
    return 3600.0 if re.search(r"\b(h|hours?|hrs?)\b|小时", plain) else 1.0
