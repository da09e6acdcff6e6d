"""Operations a second and utilization against the peak of the device and the tokens of the row.

Where a sentence gives both, their quotient has to be the peak of a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.audit.finding import AuditFinding, FindingSeverity
from trainmark.audit.grid import GridColumn, GridRow, TableGrid, all_grids
from trainmark.audit.models import (
    Convention,
    Quantity,
    conventions,
    count_in,
    is_known_dense,
    operations,
    paired_column,
    parameters,
    sequence_length,
    share_in,
    tokens_per_second,
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


@dataclass(frozen=True)
class DevicePeaks:
    """Dense peaks of the devices that a row may be of, with those of eight bits where it speaks of them."""

    names: str
    dense: tuple[float, ...]
    allowed: tuple[float, ...]


def check_utilization(report: Report) -> Iterator[AuditFinding]:
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
) -> Iterator[AuditFinding]:
    utilisation = share_in(row, column)
    if utilisation is None:
        return
    if utilisation.number.low > 1:
        yield _quantity_finding(
            report, "past-physical-limit", utilisation, "at most 100 %", "no device does more than its peak."
        )
        return
    peaks = _peaks(report, grid, row)
    achieved = operations(row, beside) if beside else None
    if peaks and achieved:
        yield from _check_against_peak(report, row, column, utilisation, achieved, peaks)
    elif peaks and column.role == "mfu":
        yield from _check_against_tokens(report, grid, row, utilisation, peaks)


def _check_against_peak(
    report: Report,
    row: GridRow,
    column: GridColumn,
    utilisation: Quantity,
    achieved: Quantity,
    peaks: DevicePeaks,
) -> Iterator[AuditFinding]:
    """Operations over utilisation are the peak that was taken."""
    sharing = [1.0] if is_per_device(achieved.figure.head) else [1.0, float(row.devices or 1)]
    if any(_is_peak(achieved.number, utilisation.number, each, p) for each in sharing for p in peaks.allowed):
        return
    # Operations of the model beside a utilisation that counts recomputation, or the reverse.
    factors = (3 / 4, 4 / 3) if column.role == "hfu" else (4 / 3,)
    if any(
        _is_peak(achieved.number, utilisation.number, each * factor, p)
        for each in sharing
        for factor in factors
        for p in peaks.allowed
    ):
        return
    derived = achieved.number.value / peaks.dense[0]
    if any(_is_peak(achieved.number, utilisation.number, 1.0, 2 * p) for p in peaks.dense):
        yield _sparse_finding(report, utilisation, derived, peaks)
        return
    yield _quantity_finding(
        report,
        "mfu-mismatch",
        utilisation,
        f"{derived:.1%}",
        f"{achieved.figure.cell.text} ({achieved.figure.head}) of the {peaks.dense[0] / 1e12:g} TFLOP/s "
        f"of {peaks.names} is {derived:.1%}.",
    )


def _is_peak(achieved: Number, utilisation: Number, sharing: float, peak: float) -> bool:
    low = achieved.low / sharing / utilisation.high
    high = achieved.high / sharing / max(utilisation.low, 1e-9)
    return low * (1 - PEAK_ROUNDING) <= peak <= high * (1 + PEAK_ROUNDING)


def _check_against_tokens(
    report: Report, grid: TableGrid, row: GridRow, utilisation: Quantity, peaks: DevicePeaks
) -> Iterator[AuditFinding]:
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
        yield _sparse_finding(report, utilisation, derived, peaks)
    elif row.devices and any(way.allows(each * peak / row.devices) for way in ways for peak in peaks.allowed):
        message = f"the tokens of all {row.devices} devices were held against the peak of one."
        yield _quantity_finding(report, "mfu-mismatch", utilisation, f"about {derived:.1%}", message)
    else:
        message = (
            f"{tokens.value:,.0f} tokens/s a device are about {derived:.1%} of the peak of {peaks.names}; "
            "no usual way to count gives the figure."
        )
        yield _quantity_finding(report, "mfu-mismatch", utilisation, f"about {derived:.1%}", message)


def _check_operations(
    report: Report, grid: TableGrid, row: GridRow, column: GridColumn
) -> Iterator[AuditFinding]:
    achieved = operations(row, column)
    if achieved is None:
        return
    peaks = _peaks(report, grid, row)
    if (
        peaks
        and is_per_device(column.head)
        and achieved.number.low > max(peaks.allowed) * (1 + PEAK_ROUNDING)
    ):
        limit = f"at most {max(peaks.allowed) / 1e12:g} TFLOP/s"
        message = f"{peaks.names} peaks at {max(peaks.allowed) / 1e12:g} TFLOP/s."
        yield _quantity_finding(report, "past-physical-limit", achieved, limit, message)
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
        yield _quantity_finding(report, "flops-mismatch", achieved, derived, message)
    elif ways[0] not in fitting:
        message = f"the figure holds by counting {fitting[0].name}."
        yield _quantity_finding(
            report, "unusual-convention", achieved, fitting[0].name, message, FindingSeverity.NOTE
        )


def _tokens_per_device(row: GridRow) -> Number | None:
    """Tokens a second of one device."""
    if each := tokens_per_second(row, per_device=True):
        return each.number
    every = tokens_per_second(row, per_device=False)
    return every.number.scaled(1 / row.devices) if every and row.devices else None


def _conventions(grid: TableGrid, row: GridRow) -> list[Convention]:
    size, length = parameters(grid, row), sequence_length(row)
    if size is None:
        return []
    layers, width = count_in(row, "layers"), count_in(row, "hidden")
    return conventions(
        size,
        is_exact=size.value > 1e6 and size.unit <= 1e-3 * size.value,
        length=length.number.value if length else None,
        layers=layers.number.value if layers else None,
        width=width.number.value if width else None,
    )


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


def _sparse_finding(
    report: Report, utilisation: Quantity, derived: float, peaks: DevicePeaks
) -> AuditFinding:
    message = (
        f"the figure takes {2 * peaks.dense[0] / 1e12:g} TFLOP/s for the peak of {peaks.names}, its rate "
        f"with 2:4 sparsity; of the dense {peaks.dense[0] / 1e12:g} TFLOP/s it is about {derived:.1%}."
    )
    return _quantity_finding(report, "sparse-peak", utilisation, f"about {derived:.1%}", message)


def _quantity_finding(
    report: Report,
    code: str,
    quantity: Quantity,
    derived: str,
    message: str,
    severity: FindingSeverity = FindingSeverity.ERROR,
) -> AuditFinding:
    cell = quantity.figure.cell
    return AuditFinding(code, severity, report.where(cell.line), cell.text, derived, message)


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


def check_utilization_sentences(report: Report) -> Iterator[AuditFinding]:
    for passage in report.prose:
        for sentence in SENTENCE_END.split(passage.text[:4000]):
            yield from _check_sentence(report, passage, sentence)


def _check_sentence(report: Report, passage: Passage, sentence: str) -> Iterator[AuditFinding]:
    rates, shares = OPERATIONS.findall(sentence), UTILIZATION.findall(sentence)
    if len(shares) != 1:
        return
    claimed = parse_number(shares[0][0] or shares[0][1])
    if claimed is None:
        return
    if claimed.value > 100:
        message = "no device does more than its peak."
        yield AuditFinding(
            "past-physical-limit",
            FindingSeverity.ERROR,
            report.where(passage.line),
            f"{claimed.value:g} %",
            "at most 100 %",
            message,
        )
        return
    achieved = parse_number(rates[0]) if len(rates) == 1 else None
    devices = devices_in_words((sentence,)) or devices_for(report, (passage.text,))
    if achieved is None or len(devices) != 1 or "fp8" in precisions_in(sentence) or claimed.value <= 0:
        return
    yield from _check_quotient(
        report, passage, sentence, devices[0], achieved.value * 1e12, claimed.value / 100
    )


def _check_quotient(
    report: Report, passage: Passage, sentence: str, device: NamedDevice, achieved: float, share: float
) -> Iterator[AuditFinding]:
    peaks = device.dense_peaks()
    taken = achieved / share
    # A sentence that quotes the peak gives what the share is of, not what was reached.
    if any(abs(achieved - times * peak) <= SENTENCE_ROUNDING * peak for peak in peaks for times in (1, 2)):
        return
    if (
        not peaks
        or any(abs(taken - peak) <= SENTENCE_ROUNDING * peak for peak in peaks)
        or achieved > max(peaks)
    ):
        return
    derived = f"{achieved / peaks[0]:.1%}"
    is_sparse = abs(taken - 2 * peaks[0]) <= SENTENCE_ROUNDING * 2 * peaks[0]
    reason = ", its rate with 2:4 sparsity" if is_sparse else ""
    yield AuditFinding(
        "sparse-peak" if is_sparse else "mfu-mismatch",
        FindingSeverity.ERROR,
        report.where(passage.line),
        claimed=f"{share:.1%}",
        derived=derived,
        message=(
            f"the figure takes {taken / 1e12:,.0f} TFLOP/s for the peak of {device.family}{reason}; "
            f"of its dense peak it is {derived}."
        ),
    )
