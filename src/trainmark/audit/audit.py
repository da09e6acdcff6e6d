"""Every check over every report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from trainmark.audit import checks as all_checks
from trainmark.audit.finding import Finding
from trainmark.audit.report import Report

Check = Callable[[Report], Iterator[Finding]]
# A file in checks/ is a check: a new one is known by lying there.
CHECKS: tuple[Check, ...] = tuple(
    import_module(f"{all_checks.__name__}.{found.name}").check for found in iter_modules(all_checks.__path__)
)


def audit_report(report: Report, checks: Iterable[Check] = CHECKS) -> list[Finding]:
    """All findings in a report, in the order of its lines."""
    found = [finding for check in checks for finding in check(report)]
    return sorted(dict.fromkeys(found), key=lambda finding: (_line(finding), finding.code))


def _line(finding: Finding) -> int:
    return int(finding.where.rpartition(":")[2])
