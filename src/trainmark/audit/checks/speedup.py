"""Speed-ups against the rows that they were computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trainmark.audit.finding import Finding, Severity
from trainmark.audit.number import Number
from trainmark.audit.report import Report
from trainmark.audit.series import Figure, Row, Series, all_series

CODE = "speedup-mismatch"
# Floating point, not judgement: a ratio of printed numbers lies on the border of its rounding.
SLACK = 1e-9

Ratio = tuple[float, float, float]
Rule = Callable[[Row, Row], "Ratio | None"]


def check(report: Report) -> Iterator[Finding]:
    for series in all_series(report):
        columns = sorted({figure.column for row in series.rows for figure in row.of("speedup")})
        for column in columns:
            yield from _check_column(report, series, column)


def _check_column(report: Report, series: Series, column: int) -> Iterator[Finding]:
    start = series.start
    rows = [(row, figure) for row in series.rows if (figure := row.in_column(column))]
    if start is None or not rows:
        return
    rules = _rules(series, column)
    if not rules:
        return
    judged = [[(row, figure, rule(start, row)) for row, figure in rows if row is not start] for rule in rules]
    best = min(judged, key=_failures)
    wrong = [
        (row, figure, ratio) for row, figure, ratio in best if ratio and not _agrees(figure.number, ratio)
    ]
    own = start.in_column(column)
    says_one = own is not None and own.number.value == 1
    if not wrong or all(_is_cut(figure.number, ratio) for _, figure, ratio in best if ratio):
        return
    # Without a row of 1 the baseline may stand elsewhere: only an odd one out among agreeing rows is wrong.
    if not says_one and len(wrong) * 3 > len(best):
        return
    for row, figure, ratio in wrong:
        yield _finding(report, row, start, figure, ratio)


def _finding(report: Report, row: Row, start: Row, figure: Figure, ratio: Ratio) -> Finding:
    places = max(figure.number.decimals, 2)
    devices = f"{row.devices} devices" if row.devices else "this row"
    return Finding(
        CODE,
        Severity.ERROR,
        report.where(figure.cell.line),
        claimed=figure.cell.text,
        derived=f"{ratio[0]:.{places}f}",
        message=f"the speed-up of {devices} is {ratio[0]:.{places}f} by the row on line {start.line}.",
    )


def _rules(series: Series, column: int) -> list[Rule]:
    """Ways to compute the column: from a throughput, nearest to the left first, or from the time to train."""
    rates = {figure.column for row in series.rows for figure in row.of("throughput")}
    times = {figure.column for row in series.rows for figure in row.of("time_to_train")}
    nearest = sorted(rates, key=lambda rate: (rate > column, abs(rate - column)))
    return [*(_growth_of(rate) for rate in nearest), *(_shrinking_of(time) for time in sorted(times))]


def _growth_of(column: int) -> Rule:
    def ratio(start: Row, row: Row) -> Ratio | None:
        return _ratio(row.in_column(column), start.in_column(column))

    return ratio


def _shrinking_of(column: int) -> Rule:
    def ratio(start: Row, row: Row) -> Ratio | None:
        return _ratio(start.in_column(column), row.in_column(column))

    return ratio


def _ratio(above: Figure | None, below: Figure | None) -> Ratio | None:
    if above is None or below is None:
        return None
    return ratio_of(above.number, below.number)


def ratio_of(above: Number, below: Number) -> Ratio | None:
    """The ratio of two printed numbers, and its bounds within their rounding."""
    if above.low <= 0 or below.low <= 0:
        return None
    return above.value / below.value, above.low / below.high, above.high / below.low


def _agrees(claimed: Number, ratio: Ratio) -> bool:
    return claimed.low - SLACK <= ratio[2] and ratio[1] <= claimed.high + SLACK


def _is_cut(claimed: Number, ratio: Ratio) -> bool:
    """Whether the digits were cut off rather than rounded: odd, but the arithmetic holds."""
    unit = 10.0**-claimed.decimals
    return any(
        math.isclose(math.floor(r / unit + SLACK) * unit, claimed.value, abs_tol=unit / 10) for r in ratio
    )


def _failures(judged: list[tuple[Row, Figure, Ratio | None]]) -> tuple[int, int]:
    missing = sum(ratio is None for _, _, ratio in judged)
    return missing, sum(
        bool(ratio) and not _agrees(figure.number, ratio) for _, figure, ratio in judged if ratio
    )
