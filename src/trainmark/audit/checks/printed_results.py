"""Printed results: averages, medians and speed-ups against the runs listed, and one number in two places.

Runs may stand in what a script printed, in a column each, or in a row each; how many there are is compared
with what the text speaks of, and tables with printed results and with each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean, geometric_mean, harmonic_mean, median

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import TableGrid, all_grids, all_series, counts_whole_job, precision_of
from trainmark.audit.models import devices_in_words
from trainmark.audit.ratios import agrees, ratio_of
from trainmark.audit.report import Report
from trainmark.audit.statements import PrintedCase, PrintedResult, printed_results, stated_repeats
from trainmark.audit.tables import ReportTable, TableCell
from trainmark.audit.terms import Number, devices_in, parse_number, simplify_head, uses_decimal_comma

RUN_HEAD = re.compile(r"(?:(?:run|test|trial|repeat|第|round) ?#? ?)?\d{1,3} ?次?")
MEAN_HEAD = re.compile(r"average|\bmean\b|\bavg\b|平均|均值")
MEDIAN_HEAD = re.compile(r"median|中位|中值")


def check_averages(report: Report) -> Findings:
    for result in printed_results(report):
        yield from _check_changed_runs(result)
        for case in result.cases:
            yield from _check_case(case)
            yield from _check_case_speedup(case, result)
    for table in report.tables:
        yield from _check_run_columns(table)


def _check_case(case: PrintedCase) -> Findings:
    runs = list(case.runs.values())
    for word in ("average", "median") if runs else ():
        if entry := case.figures.get(f"{word}_speed"):
            yield from _check_estimate(entry[1], word, entry[0], runs, f"{len(runs)} runs of {case.topology}")


def _check_estimate(
    line: int, word: str, claimed: Number, listed: list[Number], what: str, of_rates: bool = False
) -> Findings:
    """An average or a median against the numbers listed; of rates a mean may be any of the three."""
    values, slack = [number.value for number in listed], claimed.unit + max(n.unit for n in listed)
    estimators: list[Callable[[list[float]], float]] = [median] if word == "median" else [fmean]
    if of_rates and word == "average":
        estimators += [harmonic_mean, geometric_mean]
    estimates = [estimate(values) for estimate in estimators]
    if all(abs(claimed.value - estimate) > slack for estimate in estimates):
        places = claimed.decimals
        derived = f"{estimates[0]:.{places}f}"
        message = f"the {word} of the {what} is {derived}."
        yield AuditFinding(f"{word}-mismatch", line, f"{claimed.value:.{places}f}", derived, message)


def _estimate_in(head: str) -> str | None:
    """Whether a head names an average or a median."""
    is_mean, is_median = MEAN_HEAD.search(head), MEDIAN_HEAD.search(head)
    if bool(is_mean) == bool(is_median):
        return None
    return "average" if is_mean else "median"


def _check_case_speedup(case: PrintedCase, result: PrintedResult) -> Findings:
    start = next((c for c in result.cases if c.topology == "1n1g" and c.model == case.model), None)
    if start is None or "speedup" not in case.figures or start is case:
        return
    claimed, line = case.figures["speedup"]
    ratios = [
        ratio
        for name in ("median_speed", "average_speed")
        if (above := case.figure(name))
        and (below := start.figure(name))
        and (ratio := ratio_of(above, below))
    ]
    if ratios and not any(agrees(claimed, ratio) for ratio in ratios):
        message = f"the speed-up of {case.topology} is {ratios[0].value:.2f} by the printed speeds."
        yield AuditFinding("speedup-mismatch", line, f"{claimed.value:g}", f"{ratios[0].value:.2f}", message)


def _check_changed_runs(result: PrintedResult) -> Findings:
    """A run is printed again with each later file of its topology; it has to stay the same."""
    first: dict[tuple[str, str, int], tuple[Number, int]] = {}
    for line in result.lines:
        for run, number in line.runs.items():
            earlier, where = first.setdefault((line.folder, line.topology, run), (number, line.line))
            if earlier.value != number.value:
                message = f"run {run} of {line.topology} is {earlier.value:g} on line {where}."
                yield AuditFinding(
                    "two-values", line.line, f"{number.value:g}", f"{earlier.value:g}", message
                )


def _check_run_columns(table: ReportTable) -> Findings:
    """Tables with a column for each run and one for their mean or median."""
    heads = [simplify_head(cell.text) for cell in table.head]
    runs = [index for index, head in enumerate(heads) if len(head) < 20 and RUN_HEAD.fullmatch(head)]
    if len(runs) < 2:
        return
    comma = uses_decimal_comma([cell.text for row in table.rows for cell in row])
    for index, head in enumerate(heads):
        word = _estimate_in(head)
        for row in table.rows if word else ():
            listed = [number for run in runs if (number := parse_number(row[run].text, comma))]
            claimed = parse_number(row[index].text, comma)
            if word and claimed and len(listed) > 1:
                what = f"{len(listed)} runs listed"
                yield from _check_estimate(row[index].line, word, claimed, listed, what)


# What the head of the first column calls its rows; `| 1 |` alone may be a count of devices.
RUN_COLUMN_HEAD = re.compile(
    r"(?:run|trial|repeat|repetition|round|seed)s?(?: ?(?:#|no\.?|number|id))?|实验|次数|轮次"
)
NAMED_RUN = re.compile(r"(?:run|trial|repeat|round) ?#? ?\d{1,3}|第 ?\d{1,3} ?次")
LONGEST_ROW_NAME = 20
CellRow = tuple[TableCell, ...]


def check_run_rows(report: Report) -> Findings:
    lists = [(table, runs) for table in report.tables if len(runs := _run_rows(table)) > 1]
    for table, runs in lists:
        for row in table.rows:
            yield from _check_estimates(table, runs, row)
    repeats = {count: line for line, count in stated_repeats(report)}
    if len(lists) != 1 or len(repeats) != 1:
        return
    ((table, runs),), ((count, line),) = lists, repeats.items()
    if len(runs) < count:
        message = f"{len(runs)} runs are listed."
        yield AuditFinding(
            "repeats-mismatch", runs[0][0].line, f"{count} runs (line {line})", f"{len(runs)} runs", message
        )


def _run_rows(table: ReportTable) -> list[CellRow]:
    """The rows of runs; none where a label stands twice, as under two configurations."""
    by_number = RUN_COLUMN_HEAD.fullmatch(simplify_head(table.head[0].text)) is not None
    pattern = RUN_HEAD if by_number else NAMED_RUN
    rows = [row for row in table.rows if pattern.fullmatch(simplify_head(row[0].text))]
    return rows if len({simplify_head(row[0].text) for row in rows}) == len(rows) else []


def _check_estimates(table: ReportTable, runs: list[CellRow], row: CellRow) -> Findings:
    name = simplify_head(row[0].text)
    word = _estimate_in(name)
    if word is None or len(name) > LONGEST_ROW_NAME:
        return
    comma = uses_decimal_comma([cell.text for cells in table.rows for cell in cells])
    for column in range(1, len(table.head)):
        listed = [number for run in runs if (number := parse_number(run[column].text, comma))]
        claimed = parse_number(row[column].text, comma)
        if claimed and len(listed) == len(runs) and min(number.value for number in listed) > 0:
            what = f"{len(runs)} runs listed"
            yield from _check_estimate(row[column].line, word, claimed, listed, what, of_rates=True)


# Two series are one result shown twice where this many values agree to the digit, and more than differ.
LEAST_SHARED = 2
# A value that stands in more places than this ties nothing together.
MOST_PLACES = 8
# Two versions of a figure lie close together; further apart, they are of two configurations.
LARGEST_DIFFERENCE = 0.1

CurvePoint = tuple[Number, int]


@dataclass(frozen=True)
class ThroughputCurve:
    """Throughput by number of devices, as one place gives it; a printed result gives several estimates."""

    place: str
    points: dict[int, tuple[CurvePoint, ...]]
    families: frozenset[str] = frozenset()
    precision: str | None = None


def check_two_places(report: Report) -> Findings:
    tables = list(_table_curves(report))
    for result in printed_results(report):
        if printed := _printed_curve(result):
            for table in tables:
                yield from _compare_curves(table, printed)
    for table, other in _curve_pairs(tables):
        if _may_be_same(table, other):
            yield from _compare_curves(table, other)


def _compare_curves(curve: ThroughputCurve, other: ThroughputCurve) -> Findings:
    shared = sorted(curve.points.keys() & other.points.keys())
    wrong = [n for n in shared if not _points_agree(curve.points[n][0], other.points[n])]
    agreeing = len(shared) - len(wrong)
    if not wrong or agreeing < LEAST_SHARED or agreeing <= len(wrong):
        return
    for devices in wrong:
        (number, line), (reference, place) = curve.points[devices][0], other.points[devices][0]
        if abs(number.value - reference.value) > LARGEST_DIFFERENCE * reference.value:
            continue
        derived = f"{reference.value:.{reference.decimals}f}"
        message = f"{other.place} gives another figure for {devices} devices on line {place}."
        yield AuditFinding("two-values", line, f"{number.value:.{number.decimals}f}", derived, message)


def _points_agree(point: CurvePoint, estimates: tuple[CurvePoint, ...]) -> bool:
    number = point[0]
    return any(abs(number.value - other.value) <= number.unit + other.unit for other, _ in estimates)


def _table_curves(report: Report) -> Iterator[ThroughputCurve]:
    families = {id(grid.table): _device_families(grid) for grid in all_grids(report)}
    for series in all_series(report):
        columns = sorted({figure.column for row in series.rows for figure in row.of("throughput")})
        for column in columns:
            points: dict[int, tuple[CurvePoint, ...]] = {}
            for row in series.rows:
                figure = row.in_column(column)
                if row.devices and figure and counts_whole_job(figure):
                    points[row.devices] = ((figure.number, figure.cell.line),)
            if len(points) >= LEAST_SHARED:
                place = f"the table on line {series.table.line}"
                precision = precision_of(series.table, series.rows[0], series.table.head[column].text)
                yield ThroughputCurve(place, points, families[id(series.table)], precision)


def _device_families(grid: TableGrid) -> frozenset[str]:
    """The devices that the words nearest to a table name."""
    for text in (grid.table.caption, *reversed(grid.table.headings)):
        if devices := devices_in_words((text,)):
            return frozenset(device.name for device in devices)
    return frozenset()


def _may_be_same(one: ThroughputCurve, other: ThroughputCurve) -> bool:
    """Whether nothing that the tables say of themselves sets them apart."""
    devices_differ = one.families and other.families and not one.families & other.families
    precisions_differ = one.precision and other.precision and one.precision != other.precision
    return not devices_differ and not precisions_differ


def _printed_curve(result: PrintedResult) -> ThroughputCurve | None:
    """Average and median of a printed result: a table may have taken either."""
    points: dict[int, tuple[CurvePoint, ...]] = {}
    for case in result.cases:
        devices = devices_in(case.topology)
        estimates = [case.figures[name] for name in ("median_speed", "average_speed") if name in case.figures]
        if devices and estimates:
            points[devices] = tuple(estimates)
    return ThroughputCurve("the printed result", points) if len(points) > LEAST_SHARED else None


def _curve_pairs(curves: list[ThroughputCurve]) -> Iterator[tuple[ThroughputCurve, ThroughputCurve]]:
    """Later curves with the earlier ones that they share values with."""
    holders: dict[tuple[int, float], list[int]] = {}
    shared: Counter[tuple[int, int]] = Counter()
    for index, curve in enumerate(curves):
        for devices, ((number, _), *_) in curve.points.items():
            places = holders.setdefault((devices, number.value), [])
            if len(places) < MOST_PLACES:
                shared.update((index, earlier) for earlier in places)
                places.append(index)
    for (later, earlier), count in sorted(shared.items()):
        if count >= LEAST_SHARED:
            yield curves[later], curves[earlier]
