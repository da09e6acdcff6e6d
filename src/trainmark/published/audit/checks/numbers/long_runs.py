"""Epochs in sentences: how long they took, against the time of one epoch and the fastest throughput shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.columns import is_per_device, seconds_per_unit
from trainmark.published.audit.claims.grid import all_grids
from trainmark.published.audit.claims.models.resnet50 import (
    IMAGENET_IMAGES,
    is_of_resnet50,
    names_another_model,
)
from trainmark.published.audit.claims.statements import NOT_MEASURED, SENTENCE
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.duration import WHOLE, parse_duration
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

DURATION = rf"(?P<time>{WHOLE.pattern})(?![a-z])"
TOOK = re.compile(
    rf"(?<![\d.,])(?P<epochs>\d{{1,4}}) epochs?\b[^.;\d]{{0,40}}?\b(?:took|takes?|in|within|of)\b"
    rf" (?:about |only |just |~)?{DURATION}",
    re.I | re.A,
)
ONE = re.compile(
    rf"\b(?:an|one|each|every|per) epoch\b[^.;\d]{{0,20}}?\b(?:took|takes?|in|is)\b (?:about |~)?{DURATION}",
    re.I | re.A,
)
# Epochs may be shortened by less than a rounded time shows.
LEAST_SHARE = 0.97


def check(report: Report) -> Iterator[Finding]:
    sentences = [
        (p.line, s) for p in report.prose for s in SENTENCE.split(p.text[:2000]) if "epoch" in s.lower()
    ]
    each = [parse_duration(match["time"]) for _, text in sentences for match in ONE.finditer(text)]
    rate = _fastest(report)
    for line, text in sentences:
        for match in TOOK.finditer(text) if not NOT_MEASURED.search(text) else ():
            epochs, time = int(match["epochs"]), parse_duration(match["time"])
            if not time or epochs < 2:
                continue
            if shortest := [number.value - number.unit for number in each if number]:
                yield from _too_short(
                    report, line, match, time, epochs * min(shortest), "the stated time of one"
                )
            elif rate:
                needed = epochs * IMAGENET_IMAGES / rate
                yield from _too_short(report, line, match, time, needed, f"{rate:,.0f} images/s")


def _fastest(report: Report) -> float | None:
    """The highest rate of a report whose rates are all of ResNet-50: no run of it was faster."""
    rates = []
    for grid in all_grids(report):
        for row in grid.rows if grid.with_role("throughput") else ():
            if not is_of_resnet50(grid) or names_another_model(row):
                return None
            for figure in row.of("throughput"):
                each = (row.devices or 0) if is_per_device(figure.head) else 1
                if not each:
                    return None
                rates.append(figure.number.high * each / (seconds_per_unit(figure.head) or 1.0))
    return max(rates, default=None)


def _too_short(
    report: Report, line: int, match: re.Match[str], time: Number, needed: float, by: str
) -> Iterator[Finding]:
    if time.value + time.unit < LEAST_SHARE * needed:
        yield Finding(
            "time-throughput-mismatch",
            Severity.ERROR,
            report.where(line),
            claimed=f"{match['epochs']} epochs in {match['time'].strip()}",
            derived=f"{needed / 60:.1f} minutes",
            message=f"{match['epochs']} epochs take {needed / 60:.1f} minutes at {by}.",
        )
