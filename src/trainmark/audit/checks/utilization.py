"""What the device named can do: figures past its peak or its memory, and utilization against peak and tokens.

Where a sentence gives operations a second and utilization, their quotient has to be the peak of a device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import inf

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridColumn, GridRow, TableFigure, TableGrid, all_grids, precision_of
from trainmark.audit.models import (
    ACCELERATOR,
    FLOP_AN_IMAGE,
    Convention,
    NamedDevice,
    conventions,
    devices_for,
    devices_in_words,
    is_known_dense,
    is_of_resnet50,
    names_another_model,
    operations,
    paired_column,
    parameters,
    quantity,
    share_in,
    value_of,
)
from trainmark.audit.report import Passage, Report
from trainmark.audit.statements import SENTENCE
from trainmark.audit.terms import (
    Number,
    is_per_device,
    parse_number,
    precisions_in,
    seconds_per_unit,
    simplify_head,
)

# Datasheets round their peaks, and reports round them again: 989, 989.5 and 990.
PEAK_ROUNDING = 0.015
PEAK_IS_MOST = "no device does more than its peak."


@dataclass(frozen=True)
class DevicePeaks:
    """Dense peaks of the devices that a row may be of, with those of eight bits where it speaks of them."""

    names: str
    dense: tuple[float, ...]
    allowed: tuple[float, ...]


def check_utilization(report: Report) -> Findings:
    for grid in all_grids(report):
        contradicted: set[int] = set()
        for column in (*grid.with_role("mfu"), *grid.with_role("hfu")):
            beside = paired_column(grid, column, "tflops")
            for row in grid.rows:
                findings = list(_check_utilization(report, grid, row, column, beside))
                # A row that is wrong in one utilisation is wrong in the other for the same reason.
                yield from findings if column.role == "mfu" or row.line not in contradicted else ()
                contradicted |= {row.line} if findings else set()
        for column in grid.with_role("tflops"):
            for row in grid.rows:
                yield from _check_operations(report, grid, row, column)


def _check_utilization(
    report: Report, grid: TableGrid, row: GridRow, column: GridColumn, beside: GridColumn | None
) -> Findings:
    utilisation = share_in(row, column)
    if utilisation is None:
        return
    if utilisation.number.low > 1:
        yield utilisation.finding("past-physical-limit", "at most 100 %", PEAK_IS_MOST)
        return
    peaks = _peaks(report, grid, row)
    achieved = operations(row, beside) if beside else None
    if peaks and achieved:
        yield from _check_against_peak(row, column, utilisation, achieved, peaks)
    elif peaks and column.role == "mfu":
        yield from _check_against_tokens(grid, row, utilisation, peaks)


def _check_against_peak(
    row: GridRow, column: GridColumn, utilisation: TableFigure, achieved: TableFigure, peaks: DevicePeaks
) -> Findings:
    """Operations over utilisation are the peak that was taken."""
    sharing = [1.0] if is_per_device(achieved.head) else [1.0, float(row.devices or 1)]
    # Operations of the model may stand beside a utilisation that counts recomputation, or the reverse.
    factors = (1.0, 3 / 4, 4 / 3) if column.role == "hfu" else (1.0, 4 / 3)
    tried = product(sharing, factors, peaks.allowed)
    if any(_is_peak(achieved.number, utilisation.number, each * factor, p) for each, factor, p in tried):
        return
    derived = achieved.number.value / peaks.dense[0]
    if any(_is_peak(achieved.number, utilisation.number, 1.0, 2 * p) for p in peaks.dense):
        yield _sparse_finding(utilisation, derived, peaks)
        return
    message = (
        f"{achieved.cell.text} ({achieved.head}) of the {peaks.dense[0] / 1e12:g} TFLOP/s of {peaks.names} "
        f"is {derived:.1%}."
    )
    yield utilisation.finding("mfu-mismatch", f"{derived:.1%}", message)


def _is_peak(achieved: Number, utilisation: Number, sharing: float, peak: float) -> bool:
    low = achieved.low / sharing / utilisation.high
    high = achieved.high / sharing / max(utilisation.low, 1e-9)
    return low * (1 - PEAK_ROUNDING) <= peak <= high * (1 + PEAK_ROUNDING)


def _check_against_tokens(
    grid: TableGrid, row: GridRow, utilisation: TableFigure, peaks: DevicePeaks
) -> Findings:
    """Utilisation × peak over tokens are the operations of a token."""
    tokens, ways = _tokens_per_device(row), _conventions(grid, row)
    if tokens is None or not ways:
        return
    each = utilisation.number.value / tokens.value
    if any(way.allows(each * peak) for way in ways for peak in peaks.allowed):
        return
    if each * max(peaks.allowed) < ways[1].low and not is_known_dense(grid, row):
        return
    derived = ways[0].likely * tokens.value / peaks.dense[0]
    if any(ways[0].allows(2 * each * peak) for peak in peaks.dense):
        yield _sparse_finding(utilisation, derived, peaks)
    elif row.devices and any(way.allows(each * peak / row.devices) for way in ways for peak in peaks.allowed):
        message = f"the tokens of all {row.devices} devices were held against the peak of one."
        yield utilisation.finding("mfu-mismatch", f"about {derived:.1%}", message)
    else:
        message = (
            f"{tokens.value:,.0f} tokens/s a device are about {derived:.1%} of the peak of {peaks.names}; "
            "no usual way to count gives the figure."
        )
        yield utilisation.finding("mfu-mismatch", f"about {derived:.1%}", message)


def _check_operations(report: Report, grid: TableGrid, row: GridRow, column: GridColumn) -> Findings:
    achieved = operations(row, column)
    if achieved is None:
        return
    peaks = _peaks(report, grid, row)
    highest = max(peaks.allowed) if peaks and is_per_device(column.head) else inf
    if peaks and achieved.number.low > highest * (1 + PEAK_ROUNDING):
        peak = f"{highest / 1e12:g} TFLOP/s"
        yield achieved.finding("past-physical-limit", f"at most {peak}", f"{peaks.names} peaks at {peak}.")
        return
    tokens, ways = _tokens_per_device(row), _conventions(grid, row)
    if tokens is None or not ways:
        return
    counts = [achieved.number.value / tokens.value]
    if row.devices and not is_per_device(column.head):
        counts.append(counts[0] / row.devices)
    fitting = [way for way in ways for each in counts if way.allows(each)]
    if not fitting and max(counts) < ways[1].low and not is_known_dense(grid, row):
        # Fewer operations than parameters: experts of which a token sees only some.
        return
    if not fitting:
        derived = f"about {ways[0].likely * tokens.value / 1e12:,.0f} TFLOP/s a device"
        message = (
            f"{counts[-1] / 1e9:,.4g} GFLOP a token, where the parameters give {ways[0].low / 1e9:,.4g} to "
            f"{ways[-1].high / 1e9:,.4g}; no usual way to count gives the figure."
        )
        yield achieved.finding("flops-mismatch", derived, message)
    elif ways[0] not in fitting:
        message = f"the figure holds by counting {fitting[0].name}."
        yield achieved.finding("unusual-convention", fitting[0].name, message)


def _tokens_per_device(row: GridRow) -> Number | None:
    """Tokens a second of one device."""
    if each := quantity(row, "device_tokens"):
        return each.number
    every = quantity(row, "tokens")
    return every.number.scaled(1 / row.devices) if every and row.devices else None


def _conventions(grid: TableGrid, row: GridRow) -> list[Convention]:
    size = parameters(grid, row)
    if size is None:
        return []
    is_exact = size.value > 1e6 and size.unit <= 1e-3 * size.value
    length, layers, width = (value_of(row, name) for name in ("sequence_length", "layers", "hidden"))
    return conventions(size, is_exact, length, layers, width)


def _peaks(report: Report, grid: TableGrid, row: GridRow) -> DevicePeaks | None:
    cells = tuple(cell.text[:200] for cell in row.cells)
    named = any(ACCELERATOR.search(cell) for cell in cells)
    devices = devices_in_words(cells) if named else devices_for(report, grid.texts)
    spoken = precisions_in(" ".join((*cells, *grid.texts, *(column.head for column in grid.columns))))
    if "fp4" in spoken:
        return None
    dense = tuple(peak for device in devices for peak in device.dense_peaks())
    if not dense or any(not device.dense_peaks() for device in devices):
        return None
    eight = [peak for device in devices if "fp8" in spoken and (peak := device.fp8_peak())]
    return DevicePeaks(" or ".join(device.family for device in devices), dense, (*dense, *eight))


def _sparse_finding(utilisation: TableFigure, derived: float, peaks: DevicePeaks) -> AuditFinding:
    message = (
        f"the figure takes {2 * peaks.dense[0] / 1e12:g} TFLOP/s for the peak of {peaks.names}, its rate "
        f"with 2:4 sparsity; of the dense {peaks.dense[0] / 1e12:g} TFLOP/s it is about {derived:.1%}."
    )
    return utilisation.finding("sparse-peak", f"about {derived:.1%}", message)


SENTENCE_END = re.compile(r"(?<=[.;!?。；])\s+|。")
OPERATIONS = re.compile(
    r"(?<![\d.,-])(\d{1,4}(?:\.\d{1,3})?) ?(?:T|tera) ?FLOP(?:/?s|S)?(?:/s(?:ec)?)?", re.I
)
UTILIZATION = re.compile(
    r"(?<![\d.,~-])(\d{1,3}(?:\.\d{1,2})?) ?% (?:\w+ ){0,2}?"
    r"(?:MFU|model FLOPs? utili[sz]ation|of (?:the )?(?:theoretical |hardware )?peak)"
    r"|(?:MFU|model FLOPs? utili[sz]ation)(?: \(MFU\))?(?: of| is|:| =)? (?:about |around |~)?"
    r"(\d{1,3}(?:\.\d{1,2})?) ?%",
    re.I,
)
SENTENCE_ROUNDING = 0.03


def check_utilization_sentences(report: Report) -> Findings:
    for passage in report.prose:
        for sentence in SENTENCE_END.split(passage.text[:4000]):
            yield from _check_sentence(report, passage, sentence)


def _check_sentence(report: Report, passage: Passage, sentence: str) -> Findings:
    rates, shares = OPERATIONS.findall(sentence), UTILIZATION.findall(sentence)
    if len(shares) != 1:
        return
    claimed = parse_number(shares[0][0] or shares[0][1])
    if claimed is None:
        return
    if claimed.value > 100:
        share = f"{claimed.value:g} %"
        yield AuditFinding("past-physical-limit", passage.line, share, "at most 100 %", PEAK_IS_MOST)
        return
    achieved = parse_number(rates[0]) if len(rates) == 1 else None
    devices = devices_in_words((sentence,)) or devices_for(report, (passage.text,))
    if achieved is None or len(devices) != 1 or "fp8" in precisions_in(sentence) or claimed.value <= 0:
        return
    yield from _check_quotient(passage.line, devices[0], achieved.value * 1e12, claimed.value / 100)


def _check_quotient(line: int, device: NamedDevice, achieved: float, share: float) -> Findings:
    peaks = device.dense_peaks()
    taken = achieved / share
    # A sentence that quotes the peak gives what the share is of, not what was reached.
    if any(abs(achieved - times * peak) <= SENTENCE_ROUNDING * peak for peak in peaks for times in (1, 2)):
        return
    is_right = any(abs(taken - peak) <= SENTENCE_ROUNDING * peak for peak in peaks)
    if not peaks or is_right or achieved > max(peaks):
        return
    derived = f"{achieved / peaks[0]:.1%}"
    is_sparse = abs(taken - 2 * peaks[0]) <= SENTENCE_ROUNDING * 2 * peaks[0]
    reason = ", its rate with 2:4 sparsity" if is_sparse else ""
    message = (
        f"the figure takes {taken / 1e12:,.0f} TFLOP/s for the peak of {device.family}{reason}; "
        f"of its dense peak it is {derived}."
    )
    code = "sparse-peak" if is_sparse else "mfu-mismatch"
    yield AuditFinding(code, line, f"{share:.1%}", derived, message)


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
