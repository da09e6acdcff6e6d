"""What the sentences say against what the tables show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from trainmark.published.audit.claims.grid import Figure, Row
from trainmark.published.audit.claims.series import all_series
from trainmark.published.audit.claims.statements import Statement, statements
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

LIST_OF_CARDS = re.compile(r"(?:单卡|\d{1,4} ?卡)(?:[、,及和] ?\d{1,4} ?卡){1,12}")
LIST_OF_DEVICES = re.compile(
    r"(?:number of (?:devices|gpus): ?|\bon )((?:\d{1,4},? (?:and )?){2,12}\d{1,4})(?= gpus| devices|\.|$)",
    re.I,
)
ACCURACY_PER_ROUNDING = 1e-9


def check(report: Report) -> Iterator[Finding]:
    claims = list(statements(report))
    rows = [row for series in all_series(report) for row in series.rows]
    yield from _single(report, rows, claims)
    for row in rows:
        yield from _accuracy(report, row, claims)
    yield from _longer_but_worse(report, claims)
    yield from _missing_rows(report, rows)


def _single(report: Report, rows: list[Row], claims: list[Statement]) -> Iterator[Finding]:
    """Where the tables hold one figure of a kind and the text gives one, they are the same."""
    for role, what, mentions in (
        ("throughput", "throughput", [(s.rate, s.line) for s in claims if s.rate]),
        ("time_to_train", "time", [(s.seconds, s.line) for s in claims if s.seconds and s.epochs]),
    ):
        shown = [figure for row in rows for figure in row.of(role)]
        if len(shown) != 1 or len(mentions) != 1:
            continue
        number, (stated, line) = shown[0].number, mentions[0]
        in_seconds = role != "time_to_train" or "sec" in shown[0].head.lower() or "秒" in shown[0].head
        if in_seconds and abs(number.value - stated.value) > number.half_unit + stated.half_unit:
            yield _differs(report, shown[0], f"{stated.value:,g}", line, what)


def _accuracy(report: Report, row: Row, claims: list[Statement]) -> Iterator[Finding]:
    """The accuracy of a row against the sentence that gives the same time to train."""
    times, accuracies = row.of("time_to_train"), row.of("accuracy")
    if len(times) != 1 or len(accuracies) != 1:
        return
    shown = accuracies[0]
    for statement in claims:
        if not (statement.seconds and statement.accuracy) or statement.seconds.value != times[0].number.value:
            continue
        if _same(statement.accuracy, shown.number):
            continue
        other = next((s for s in claims if s.accuracy and s.epochs and _same(s.accuracy, shown.number)), None)
        if other is None:
            yield _differs(report, shown, f"{statement.accuracy.value:g}", statement.line, "accuracy")
            continue
        yield Finding(
            "row-of-two-runs",
            Severity.WARNING,
            report.where(shown.cell.line),
            claimed=f"accuracy {shown.cell.text} in {times[0].cell.text} s",
            derived=f"accuracy {statement.accuracy.value:g} in {times[0].cell.text} s",
            message=(
                f"line {statement.line} gives {statement.accuracy.value:g} for the run of this time; "
                f"{shown.cell.text} is of another run, of {other.epochs} epochs (line {other.line})."
            ),
        )


def _longer_but_worse(report: Report, claims: list[Statement]) -> Iterator[Finding]:
    runs = sorted(
        (s.epochs, s.accuracy.value, s.line)
        for s in claims
        if s.epochs and s.accuracy and s.accuracy.value > 50
    )
    for (epochs, accuracy, line), (more, later, place) in pairwise(runs):
        if more > epochs and later < accuracy:
            yield Finding(
                "longer-but-less-accurate",
                Severity.NOTE,
                report.where(place),
                claimed=f"{later:g} % after {more} epochs",
                derived=f"{accuracy:g} % after {epochs} epochs (line {line})",
                message=f"{more} epochs end below {epochs}: one run of each does not tell which is right.",
            )


def _missing_rows(report: Report, rows: list[Row]) -> Iterator[Finding]:
    """Device counts that the text says were tested, and no table has."""
    shown = {row.devices for row in rows if row.devices}
    if len(shown) < 2:
        return
    lines: dict[int, int] = {}
    for passage in report.prose:
        for devices in _listed(passage.text[:2000]):
            lines.setdefault(devices, passage.line)
    for devices, line in sorted(lines.items()):
        if devices not in shown:
            yield Finding(
                "missing-rows",
                Severity.WARNING,
                report.where(line),
                claimed=f"tested on {devices} devices",
                derived=f"tables of {', '.join(map(str, sorted(shown)))} devices",
                message=f"no table has a row of {devices} devices.",
            )


def _listed(text: str) -> set[int]:
    chinese = " ".join(match[0] for match in LIST_OF_CARDS.finditer(text))
    english = " ".join(match[1] for match in LIST_OF_DEVICES.finditer(text))
    counts = {int(count) for count in re.findall(r"\d+", f"{chinese} {english}")}
    return counts | ({1} if "单卡" in chinese else set())


def _differs(report: Report, shown: Figure, stated: str, line: int, what: str) -> Finding:
    return Finding(
        "text-against-table",
        Severity.ERROR,
        report.where(shown.cell.line),
        claimed=f"{what} {shown.cell.text}",
        derived=f"{what} {stated}",
        message=f"the text on line {line} gives {stated}.",
    )


def _same(one: Number, other: Number) -> bool:
    return abs(one.value - other.value) <= ACCURACY_PER_ROUNDING
