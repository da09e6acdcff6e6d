"""Figures that the device named cannot reach: more operations than its peak, more memory than it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.columns import is_per_device, seconds_per_unit, simplified
from trainmark.published.audit.claims.grid import Figure, Grid, Row, all_grids
from trainmark.published.audit.claims.models.resnet50 import (
    FLOP_AN_IMAGE,
    is_of_resnet50,
    names_another_model,
)
from trainmark.published.audit.claims.named_devices import NamedDevice, devices_for, devices_in_words
from trainmark.published.audit.claims.series import precision_of
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

SIZE = re.compile(r"(?<!\d)(\d{2,3}) ?[x×*,] ?\1(?!\d)")
USUAL_SIZE = "224"
IMAGENET = re.compile(r"imagenet|ILSVRC|\b224\b", re.I)
NOT_TRAINING = re.compile(r"inference|latency|推理|evaluation|serving|validation", re.I)
OF_ONE_DEVICE = re.compile(r"gpu (?:memory|ram)|显存|memory|(?:per|/) ?(?:gpu|device)")
GIBIBYTES = re.compile(r"(?<![a-z])gi?b?(?![a-z])")


def check(report: Report) -> Iterator[Finding]:
    has_usual_size = report.mentions(IMAGENET) and not _other_size(report)
    for grid in all_grids(report):
        is_limited = has_usual_size and is_of_resnet50(grid) and not NOT_TRAINING.search(grid.words)
        for row in grid.rows if is_limited or grid.with_role("memory") else ():
            own_words = (*grid.texts, *(cell.text[:200] for cell in row.cells))
            for figure in row.of("memory"):
                nearest = (*grid.table.headings, grid.table.caption, *own_words[len(grid.texts) :])
                yield from _memory(report, row, figure, devices_in_words(nearest))
            devices = devices_for(report, own_words) if is_limited and not names_another_model(row) else ()
            for figure in row.of("throughput") if devices else ():
                yield from _rate(report, grid, row, figure, devices)


def _rate(
    report: Report, grid: Grid, row: Row, figure: Figure, devices: tuple[NamedDevice, ...]
) -> Iterator[Finding]:
    sharing = 1 if is_per_device(figure.head) else row.devices
    precision = precision_of(grid.table, row, figure.head)
    peaks = [peak for device in devices if (peak := device.peak_flops(precision))]
    if not sharing or len(peaks) != len(devices):
        return
    each = figure.number.low / (seconds_per_unit(figure.head) or 1.0) / sharing
    if each * FLOP_AN_IMAGE > max(peaks):
        yield Finding(
            "past-physical-limit",
            Severity.ERROR,
            report.where(figure.cell.line),
            claimed=f"{each:,.0f} images/s a device",
            derived=f"at most {max(peaks) / FLOP_AN_IMAGE:,.0f} images/s a device",
            message=(
                f"{each * FLOP_AN_IMAGE / 1e12:.1f} TFLOP/s a device, where {devices[0].name} peaks at "
                f"{max(peaks) / 1e12:g} TFLOP/s{f' in {precision}' if precision else ''}."
            ),
        )


def _memory(report: Report, row: Row, figure: Figure, devices: tuple[NamedDevice, ...]) -> Iterator[Finding]:
    text = simplified(f"{figure.head} {figure.number.rest}")
    if not devices:
        return
    most = max(device.memory_mib for device in devices)
    if "%" in text or not OF_ONE_DEVICE.search(text) or re.search(r"total|host|cpu|system|系统", text):
        return
    in_gib = GIBIBYTES.search(text.replace("gpu", "")) or figure.number.value < 200
    used = figure.number.value * (1024 if in_gib else 1)
    # Of several devices the head may mean the sum.
    if used > most * (1 if (row.devices or 1) == 1 or "per" in text or "/" in text else row.devices or 1):
        yield Finding(
            "past-physical-limit",
            Severity.ERROR,
            report.where(figure.cell.line),
            claimed=f"{figure.cell.text} of memory",
            derived=f"at most {most} MiB",
            message=f"{devices[0].name} has {most} MiB.",
        )


def _other_size(report: Report) -> bool:
    """Smaller images need fewer operations: the count above does not hold."""
    sizes = {match[1] for passage in report.prose for match in SIZE.finditer(passage.text[:2000])}
    return bool(sizes - {USUAL_SIZE, "256", "1", "10", "11"})
