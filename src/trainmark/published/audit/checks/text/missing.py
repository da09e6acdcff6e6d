"""What a report leaves out: placeholders, empty blocks and rows, environment, repeats, logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.named_devices import names_device
from trainmark.published.audit.claims.series import all_series
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import is_blank
from trainmark.published.audit.report.report import Report

PLACEHOLDER = re.compile(r"\bTODO\b|\bFIXME\b|\bTBD\b|\[X{3,}\]|待补充|待完善", re.A)
EMPTY_LINK = re.compile(r"\[[^\[\]]{1,200}\]\(\s{0,4}\)")
LOGS = re.compile(r"\.log\b|日志|\blogs?\b|\.tar\.gz|\.tgz", re.I | re.A)
REPEATS = re.compile(r"\d ?次|\bmedian\b|\brepeat|\bruns\b|\btrials\b|中位|中值|median_speed", re.I | re.A)
# A table with a heading is a table; only a whole report owes its reader the circumstances.
LINES_OF_A_REPORT = 40


def check(report: Report) -> Iterator[Finding]:
    for passage in report.prose:
        text = passage.text[:2000]
        if match := PLACEHOLDER.search(text) or EMPTY_LINK.search(text):
            yield _finding(report, "placeholder", passage.line, match[0], "a place left to fill in.")
    for block in report.code:
        if not any(line.strip() for line in block.lines):
            yield _finding(report, "empty-block", block.line - 1, "a script or output", "the block is empty.")
    yield from _empty_rows(report)
    yield from _circumstances(report)


def _empty_rows(report: Report) -> Iterator[Finding]:
    """Rows that name a configuration and measure nothing."""
    for series in all_series(report):
        heads = [figure.column for row in series.rows for figure in row.of("throughput")]
        if not heads:
            continue
        for row in series.rows:
            if row.of("throughput") or row.of("speedup") or row.of("time_to_train"):
                continue
            if all(is_blank(row.cells[column].text) for column in set(heads)):
                message = "the row names a configuration and has no figure."
                yield _finding(report, "empty-row", row.line, row.cells[0].text or "a row", message)


def _circumstances(report: Report) -> Iterator[Finding]:
    length = len(report.prose) + len(report.headings) + sum(len(block.lines) for block in report.code)
    rates = [row.line for series in all_series(report) for row in series.rows if row.of("throughput")]
    if length < LINES_OF_A_REPORT or not rates:
        return
    if not names_device(report):
        yield _finding(
            report,
            "missing-environment",
            rates[0],
            "a throughput",
            "no device is named: the figure compares with none.",
        )
    if not report.mentions(LOGS):
        yield _finding(report, "missing-logs", rates[0], "a throughput", "no log is given to check it by.")
    if not report.mentions(REPEATS):
        message = "the report does not say how often a figure was measured."
        yield _finding(report, "missing-repeats", rates[0], "a throughput", message)


def _finding(report: Report, code: str, line: int, claimed: str, message: str) -> Finding:
    severity = Severity.NOTE if code == "missing-repeats" else Severity.WARNING
    return Finding(code, severity, report.where(line), claimed, "nothing", message)
