"""Every check over every report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import walk_packages

from trainmark.published.audit import checks as all_checks
from trainmark.published.audit.finding import Finding
from trainmark.published.audit.report.report import Report

Check = Callable[[Report], Iterator[Finding]]
# A file in a folder of checks/ is a check: a new one is known by lying there.
CHECKS: tuple[Check, ...] = tuple(
    import_module(module.name).check
    for module in sorted(
        walk_packages(all_checks.__path__, f"{all_checks.__name__}."),
        key=lambda module: module.name.rpartition(".")[2],
    )
    if not module.ispkg
)


# A product that does not multiply spoils what is computed from its factors.
CAUSES = {
    "flops-mismatch": ("product-mismatch", "mfu-mismatch", "sparse-peak"),
    "mfu-mismatch": ("product-mismatch",),
    "superlinear-scaling": ("product-mismatch",),
}


def audit_report(report: Report, checks: Iterable[Check] = CHECKS) -> list[Finding]:
    """All findings in a report, in the order of its lines, each cause once."""
    findings = dict.fromkeys(finding for check in checks for finding in check(report))
    places = {(finding.where, finding.code) for finding in findings}
    causes = [finding for finding in findings if not _follows(finding, places)]
    return sorted(causes, key=lambda finding: (_line(finding), finding.code))


def _follows(finding: Finding, places: set[tuple[str, str]]) -> bool:
    """Whether another finding on the same line is the cause of this one."""
    return any((finding.where, code) in places for code in CAUSES.get(finding.code, ()))


def _line(finding: Finding) -> int:
    return int(finding.where.rpartition(":")[2])
