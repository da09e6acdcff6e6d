"""Every check over every report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainmark.audit.checks import (
    averages,
    copied_logs,
    counts,
    efficiency,
    measuring_rule,
    missing,
    physical_limit,
    recipe,
    shown_code,
    shown_run,
    shown_world_size,
    speedup,
    stated_difference,
    text_against_tables,
    time_to_train,
    two_places,
    units,
)
from trainmark.audit.finding import Finding
from trainmark.audit.report import Report

Check = Callable[[Report], Iterator[Finding]]
CHECKS: tuple[Check, ...] = tuple(
    module.check
    for module in (
        averages,
        copied_logs,
        counts,
        efficiency,
        measuring_rule,
        missing,
        physical_limit,
        recipe,
        shown_code,
        shown_run,
        shown_world_size,
        speedup,
        stated_difference,
        text_against_tables,
        time_to_train,
        two_places,
        units,
    )
)


def audit_report(report: Report, checks: Iterable[Check] = CHECKS) -> list[Finding]:
    """All findings in a report, in the order of its lines."""
    found = [finding for check in checks for finding in check(report)]
    return sorted(dict.fromkeys(found), key=lambda finding: (_line(finding), finding.code))


def _line(finding: Finding) -> int:
    return int(finding.where.rpartition(":")[2])
