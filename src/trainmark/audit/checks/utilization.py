"""Operations a second and utilization against the peak of the device and the tokens of the row.

Where a sentence gives both, their quotient has to be the peak of a device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import inf

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridColumn, GridRow, TableFigure, TableGrid, all_grids
from trainmark.audit.models import (
    Convention,
    conventions,
    is_known_dense,
    operations,
    paired_column,
    parameters,
    quantity,
    share_in,
    value_of,
)
from trainmark.audit.number import Number, parse_number
from trainmark.audit.report import Passage, Report
from trainmark.audit.terms import (
    ACCELERATOR,
    NamedDevice,
    devices_for,
    devices_in_words,
    is_per_device,
    precisions_in,
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
