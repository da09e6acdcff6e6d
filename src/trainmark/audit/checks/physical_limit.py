"""Figures that the device named cannot reach: more operations than its peak, more memory than it has."""

from __future__ import annotations

import re

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridRow, TableFigure, TableGrid, all_grids, precision_of
from trainmark.audit.models import FLOP_AN_IMAGE, is_of_resnet50, names_another_model
from trainmark.audit.report import Report
from trainmark.audit.statements import SENTENCE
from trainmark.audit.terms import (
    ACCELERATOR,
    NamedDevice,
    devices_for,
    devices_in_words,
    is_per_device,
    seconds_per_unit,
    simplify_head,
)

SIZE = re.compile(r"(?<!\d)(\d{2,3}) ?[x×*,] ?\1(?!\d)")
USUAL_SIZE = "224"
IMAGENET = re.compile(r"imagenet|ILSVRC|\b224\b", re.I)
NOT_TRAINING = re.compile(r"inference|latency|推理|evaluation|serving|validation", re.I)
GB_FOR_GIB = 1.08  # 80 GiB are 86 GB
OF_ONE_DEVICE = re.compile(r"gpu (?:memory|ram)|显存|memory|(?:per|/) ?(?:gpu|device)")
# A sentence about what one device held, and not about what a job or a host has or would need.
SPEAKS_OF_USE = re.compile(
    r"\b(?:in use|uses?|used|usage|peaks?|allocated|reserved|consumed?)\b|占用|峰值", re.I
)
ON_DEVICE = re.compile(r"\b(?:gpu|device|card|vram|accelerator)\b|显存", re.I)
SPEAKS_OF_OTHER_MEMORY = re.compile(
    r"total|\ball\b|nodes?\b|system|host|\bcpu|across|combined|would|need|require|without|\boom\b|out of mem"
    r"|estimat|theor|aggregate|\d ?[x×] ?\S|\bgpus\b|offload|disk|dataset|storage|exceed|cannot|can't",
    re.I,
)
SIZES = re.compile(r"(?<![\d.,])(\d{1,4}(?:\.\d{1,3})?) ?Gi?B\b(?! ?/ ?s)")
OF_SIZE = re.compile(SIZES.pattern + r" ?(?:/|of|out of) ?(?:the )?(?:available )?" + SIZES.pattern)
SIZED = re.compile(rf"(?:{ACCELERATOR.pattern})[ \w-]{{0,8}}?\b\d{{2,3}} ?GB\b", re.I | re.A)
GIBIBYTES = re.compile(r"(?<![a-z])gi?b?(?![a-z])")


def check_physical_limits(report: Report) -> Findings:
    yield from _check_sentences(report)
    has_usual_size = report.mentions(IMAGENET) and not _other_size(report)
    for grid in all_grids(report):
        is_limited = has_usual_size and is_of_resnet50(grid) and not NOT_TRAINING.search(grid.words)
        for row in grid.rows if is_limited or grid.with_role("memory") else ():
            own_words = (*grid.texts, *(cell.text[:200] for cell in row.cells))
            for figure in row.of("memory"):
                nearest = (*grid.table.headings, grid.table.caption, *own_words[len(grid.texts) :])
                devices = devices_in_words(nearest)
                # A device named elsewhere may be another than the table's, unless with its memory.
                if not devices and report.mentions(SIZED):
                    devices = devices_for(report, nearest)
                yield from _check_memory(grid, row, figure, devices)
            devices = devices_for(report, own_words) if is_limited and not names_another_model(row) else ()
            for figure in row.of("throughput") if devices else ():
                yield from _check_rate(grid, row, figure, devices)


def _check_rate(
    grid: TableGrid, row: GridRow, figure: TableFigure, devices: tuple[NamedDevice, ...]
) -> Findings:
    sharing = 1 if is_per_device(figure.head) else row.devices
    precision = precision_of(grid.table, row, figure.head)
    peaks = [peak for device in devices if (peak := device.peak_flops(precision))]
    if not sharing or len(peaks) != len(devices):
        return
    each = figure.number.low / (seconds_per_unit(figure.head) or 1.0) / sharing
    if each * FLOP_AN_IMAGE > max(peaks):
        derived = f"at most {max(peaks) / FLOP_AN_IMAGE:,.0f} images/s a device"
        message = (
            f"{each * FLOP_AN_IMAGE / 1e12:.1f} TFLOP/s a device, where {devices[0].name} peaks at "
            f"{max(peaks) / 1e12:g} TFLOP/s{f' in {precision}' if precision else ''}."
        )
        yield AuditFinding(
            "past-physical-limit", figure.cell.line, f"{each:,.0f} images/s a device", derived, message
        )


def _check_sentences(report: Report) -> Findings:
    """Memory of one device in a sentence: more than the sentence gives it, or than any device named has."""
    for passage in report.prose:
        for sentence in SENTENCE.split(passage.text[:2000]):
            if not ("memory" in sentence.lower() or "显存" in sentence) or SPEAKS_OF_OTHER_MEMORY.search(
                sentence
            ):
                continue
            if not SPEAKS_OF_USE.search(sentence) or not ON_DEVICE.search(sentence):
                continue
            sizes = [float(size) for size in SIZES.findall(sentence)]
            devices = devices_for(report, (sentence,))
            most = max((device.memory_mib / 1024 for device in devices), default=None)
            if match := OF_SIZE.search(sentence):
                sizes, most = [float(match[1])], float(match[2])
            if len(sizes) == 1 and most and sizes[0] > most * GB_FOR_GIB:
                derived = f"at most {most:g} GB"
                message = f"a device has {most:g} GB of memory."
                yield AuditFinding(
                    "past-physical-limit", passage.line, f"{sizes[0]:g} GB of memory", derived, message
                )


def _is_of_one(grid: TableGrid, figure: TableFigure) -> bool:
    """Whether a column has the memory of one device: it is a peak, or does not grow with the devices."""
    if re.search(r"peak|max", figure.head, re.I):
        return True
    values = [(row.devices, row.in_column(figure.column)) for row in grid.rows]
    shown = [(devices, other.number.value) for devices, other in values if devices and other]
    if len(shown) < 2:
        return False
    (fewest, least), (most, value) = min(shown), max(shown)
    return most >= 4 * fewest and value < 2 * least


def _check_memory(
    grid: TableGrid, row: GridRow, figure: TableFigure, devices: tuple[NamedDevice, ...]
) -> Findings:
    text = simplify_head(f"{figure.head} {figure.number.rest}")
    if not devices:
        return
    most = max(device.memory_mib for device in devices)
    if "%" in text or not OF_ONE_DEVICE.search(text) or re.search(r"total|host|cpu|system|系统", text):
        return
    in_gib = GIBIBYTES.search(text.replace("gpu", "")) or figure.number.value < 200
    used = figure.number.value * (1024 if in_gib else 1)
    # Of several devices the head may mean the sum.
    is_of_one = (row.devices or 1) == 1 or "per" in text or "/" in text or _is_of_one(grid, figure)
    if used > most * (1 if is_of_one else row.devices or 1):
        derived = f"at most {most} MiB"
        message = f"{devices[0].name} has {most} MiB."
        yield AuditFinding(
            "past-physical-limit", figure.cell.line, f"{figure.cell.text} of memory", derived, message
        )


def _other_size(report: Report) -> bool:
    """Smaller images need fewer operations: the count above does not hold."""
    sizes = {match[1] for passage in report.prose for match in SIZE.finditer(passage.text[:2000])}
    return bool(sizes - {USUAL_SIZE, "256", "1", "10", "11"})
