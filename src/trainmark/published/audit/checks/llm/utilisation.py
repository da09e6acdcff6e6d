"""Operations a second and utilisation against the peak of the device and the tokens of the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.claims.columns import is_per_device
from trainmark.published.audit.claims.grid import Column, Grid, Row, all_grids
from trainmark.published.audit.claims.models.conventions import Convention, conventions
from trainmark.published.audit.claims.models.language import (
    Quantity,
    count,
    is_known_dense,
    operations,
    paired,
    parameters,
    sequence_length,
    share,
    tokens_per_second,
)
from trainmark.published.audit.claims.named_devices import ACCELERATOR, devices_for, devices_in_words
from trainmark.published.audit.claims.precision import precisions_in
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

# Datasheets round their peaks, and reports round them again: 989, 989.5 and 990.
PEAK_ROUNDING = 0.015


@dataclass(frozen=True)
class Peaks:
    """Dense peaks of the devices that a row may be of, with those of eight bits where it speaks of them."""

    names: str
    dense: tuple[float, ...]
    allowed: tuple[float, ...]


def check(report: Report) -> Iterator[Finding]:
    for grid in all_grids(report):
        contradicted: set[int] = set()
        for column in (*grid.with_role("mfu"), *grid.with_role("hfu")):
            beside = paired(grid, column, "tflops")
            for row in grid.rows:
                findings = list(_utilisation(report, grid, row, column, beside))
                # A row that is wrong in one utilisation is wrong in the other for the same reason.
                yield from findings if column.role == "mfu" or row.line not in contradicted else ()
                contradicted |= {row.line} if findings else set()
        for column in grid.with_role("tflops"):
            for row in grid.rows:
                yield from _operations(report, grid, row, column)


def _utilisation(
    report: Report, grid: Grid, row: Row, column: Column, beside: Column | None
) -> Iterator[Finding]:
    utilisation = share(row, column)
    if utilisation is None:
        return
    if utilisation.number.low > 1:
        yield _finding(
            report, "past-physical-limit", utilisation, "at most 100 %", "no device does more than its peak."
        )
        return
    peaks = _peaks(report, grid, row)
    achieved = operations(row, beside) if beside else None
    if peaks and achieved:
        yield from _of_peak(report, row, column, utilisation, achieved, peaks)
    elif peaks and column.role == "mfu":
        yield from _of_tokens(report, grid, row, utilisation, peaks)


def _of_peak(
    report: Report, row: Row, column: Column, utilisation: Quantity, achieved: Quantity, peaks: Peaks
) -> Iterator[Finding]:
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
        yield _sparse(report, utilisation, derived, peaks)
        return
    yield _finding(
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


def _of_tokens(
    report: Report, grid: Grid, row: Row, utilisation: Quantity, peaks: Peaks
) -> Iterator[Finding]:
    """Utilisation × peak over tokens are the operations of a token."""
    tokens, ways = _tokens_of_each(row), _conventions(grid, row)
    if tokens is None or not ways:
        return
    each = utilisation.number.value / tokens.value
    if any(way.allows(each * peak) for way in ways for peak in peaks.allowed):
        return
    if each * max(peaks.allowed) < ways[1].low and not is_known_dense(grid, row):
        return
    derived = ways[0].likely * tokens.value / peaks.dense[0]
    if any(ways[0].allows(2 * each * peak) for peak in peaks.dense):
        yield _sparse(report, utilisation, derived, peaks)
    elif row.devices and any(way.allows(each * peak / row.devices) for way in ways for peak in peaks.allowed):
        message = f"the tokens of all {row.devices} devices were held against the peak of one."
        yield _finding(report, "mfu-mismatch", utilisation, f"about {derived:.1%}", message)
    else:
        message = (
            f"{tokens.value:,.0f} tokens/s a device are about {derived:.1%} of the peak of {peaks.names}; "
            "no usual way to count gives the figure."
        )
        yield _finding(report, "mfu-mismatch", utilisation, f"about {derived:.1%}", message)


def _operations(report: Report, grid: Grid, row: Row, column: Column) -> Iterator[Finding]:
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
        yield _finding(report, "past-physical-limit", achieved, limit, message)
        return
    tokens, ways = _tokens_of_each(row), _conventions(grid, row)
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
        yield _finding(report, "flops-mismatch", achieved, derived, message)
    elif ways[0] not in fitting:
        message = f"the figure holds by counting {fitting[0].name}."
        yield _finding(report, "unusual-convention", achieved, fitting[0].name, message, Severity.NOTE)


def _tokens_of_each(row: Row) -> Number | None:
    """Tokens a second of one device."""
    if each := tokens_per_second(row, per_device=True):
        return each.number
    every = tokens_per_second(row, per_device=False)
    return every.number.scaled(1 / row.devices) if every and row.devices else None


def _conventions(grid: Grid, row: Row) -> list[Convention]:
    size, length = parameters(grid, row), sequence_length(row)
    if size is None:
        return []
    layers, width = count(row, "layers"), count(row, "hidden")
    return conventions(
        size,
        is_exact=size.value > 1e6 and size.unit <= 1e-3 * size.value,
        length=length.number.value if length else None,
        layers=layers.number.value if layers else None,
        width=width.number.value if width else None,
    )


def _peaks(report: Report, grid: Grid, row: Row) -> Peaks | None:
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
    return Peaks(" or ".join(device.family for device in devices), dense, (*dense, *eight))


def _sparse(report: Report, utilisation: Quantity, derived: float, peaks: Peaks) -> Finding:
    message = (
        f"the figure takes {2 * peaks.dense[0] / 1e12:g} TFLOP/s for the peak of {peaks.names}, its rate "
        f"with 2:4 sparsity; of the dense {peaks.dense[0] / 1e12:g} TFLOP/s it is about {derived:.1%}."
    )
    return _finding(report, "sparse-peak", utilisation, f"about {derived:.1%}", message)


def _finding(
    report: Report,
    code: str,
    quantity: Quantity,
    derived: str,
    message: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    cell = quantity.figure.cell
    return Finding(code, severity, report.where(cell.line), cell.text, derived, message)
