"""A difference between two tables that the text gives as a range."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.series import Series, all_series
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Passage, Report

RANGE = re.compile(r"(\d{1,2}(?:\.\d{1,2})?) ?%? ?(?:~|-|–|至|to) ?(\d{1,2}(?:\.\d{1,2})?) ?%")
SPEAKS_OF_DIFFERENCE = re.compile(r"性能差异|速度差异|difference", re.I)
SPEAKS_OF_BOTH = re.compile(r"两份|both|two (?:sets|tables)", re.I)
LEAST_SHARED = 2


def check(report: Report) -> Iterator[Finding]:
    series = list(all_series(report))
    for passage in report.prose:
        text = passage.text[:2000]
        match = RANGE.search(text)
        if match and SPEAKS_OF_DIFFERENCE.search(text) and SPEAKS_OF_BOTH.search(text):
            after = [one for one in series if one.table.line > passage.line][:2]
            if len(after) == 2:
                yield from _compare(report, passage, match, after)


def _compare(report: Report, passage: Passage, match: re.Match[str], pair: list[Series]) -> Iterator[Finding]:
    one, other = (_by_devices(series) for series in pair)
    shares = [abs(other[n] / one[n] - 1) * 100 for n in one.keys() & other.keys() if one[n] > 0]
    if len(shares) < LEAST_SHARED:
        return
    low, high = min(shares), max(shares)
    slack = 0.5 * 10.0 ** -len(match[1].partition(".")[2]) + 0.15
    if abs(low - float(match[1])) > slack or abs(high - float(match[2])) > slack:
        yield Finding(
            "stated-difference",
            Severity.WARNING,
            report.where(passage.line),
            claimed=match[0],
            derived=f"{low:.1f} % to {high:.1f} %",
            message=(
                f"the tables on lines {pair[0].table.line} and {pair[1].table.line} differ by "
                f"{low:.1f} % to {high:.1f} % where both have a row."
            ),
        )


def _by_devices(series: Series) -> dict[int, float]:
    return {
        row.devices: row.of("throughput")[0].number.value
        for row in series.rows
        if row.devices and len(row.of("throughput")) == 1
    }
