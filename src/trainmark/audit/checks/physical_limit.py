"""Figures that the device named cannot reach: more operations than its peak, more memory than it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.audit.columns import is_per_device, seconds_per_unit
from trainmark.audit.finding import Finding, Severity
from trainmark.audit.named_devices import NamedDevice, named_devices
from trainmark.audit.report import Report
from trainmark.audit.series import Figure, Row, Series, all_series, precision_of

RESNET50 = re.compile(r"resnet-?_? ?50|\brn50\b", re.I)
ANOTHER_MODEL = re.compile(r"\b(bert|gpt|vgg|inception|mobilenet|alexnet|resnet-?(?:18|34|101|152))\b", re.I)
# Forward and backward pass of ResNet-50 v1.5 over one image of 224 × 224: 3 × 2 × 4.09 G multiply-adds.
FLOP_AN_IMAGE = 24.5e9
OTHER_SIZE = re.compile(r"(?<!\d)(\d{2,3}) ?[x×] ?\1(?!\d)")
USUAL_SIZE = 224


def check(report: Report) -> Iterator[Finding]:
    devices = named_devices(report)
    if not devices:
        return
    is_resnet50 = report.mentions(RESNET50) and not _other_size(report)
    for series in all_series(report):
        for row in series.rows:
            for figure in row.of("memory"):
                yield from _memory(report, figure, devices)
            if is_resnet50 and not _names_another_model(series, row):
                for figure in row.of("throughput"):
                    yield from _rate(report, series, row, figure, devices)


def _rate(
    report: Report, series: Series, row: Row, figure: Figure, devices: tuple[NamedDevice, ...]
) -> Iterator[Finding]:
    sharing = 1 if is_per_device(figure.head) else row.devices
    precision = precision_of(series.table, row, figure.head)
    peaks = [peak for device in devices if (peak := device.peak_flops(precision))]
    if not sharing or not peaks:
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


def _memory(report: Report, figure: Figure, devices: tuple[NamedDevice, ...]) -> Iterator[Finding]:
    most = max(device.memory_mib for device in devices)
    text = f"{figure.head} {figure.number.rest}".lower()
    in_gib = re.search(r"\bgi?b?\b", text.replace("gpu", ""), re.A) or figure.number.value < 200
    used = figure.number.value * (1024 if in_gib else 1)
    if "%" not in text and used > most:
        yield Finding(
            "past-physical-limit",
            Severity.ERROR,
            report.where(figure.cell.line),
            claimed=f"{figure.cell.text} of memory",
            derived=f"at most {most} MiB",
            message=f"{devices[0].name} has {most} MiB.",
        )


def _names_another_model(series: Series, row: Row) -> bool:
    words = " ".join((*series.table.headings, series.table.caption, *row.key))
    return bool(ANOTHER_MODEL.search(words))


def _other_size(report: Report) -> bool:
    """Smaller images need fewer operations: the count above does not hold."""
    sizes = {int(found[1]) for p in report.prose if (found := OTHER_SIZE.search(p.text[:2000]))}
    return bool(sizes - {USUAL_SIZE})
