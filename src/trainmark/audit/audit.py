"""Every check over every report at a path."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from trainmark.audit import checks
from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.report import Report, UnreadableReportError, read_report

REPORT_ENDINGS = {".md", ".markdown", ".html", ".htm", ".csv", ".tsv", ".txt", ".rst"}


def reports_at(path: Path, logs: Collection[Path] = ()) -> list[Report]:
    """Every report at a path but the logs; one that cannot be read is refused, unless a folder brought it."""
    if not path.exists():
        raise UnreadableReportError(f"{path}: no such file or folder.")
    if not path.is_dir():
        return [] if path in logs else [read_report(path)]
    reports = []
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() in REPORT_ENDINGS and file.is_file() and file not in logs:
            try:
                reports.append(read_report(file))
            except UnreadableReportError:
                continue
    if not reports and not logs:
        raise UnreadableReportError(f"{path}: holds no report and no log to audit.")
    return reports


Check = Callable[[Report], Findings]


@cache
def all_checks() -> tuple[Check, ...]:
    """A function `check_…` of a file in checks/ is a check: a new one is known by standing there."""
    modules = [import_module(each.name) for each in iter_modules(checks.__path__, f"{checks.__name__}.")]
    return tuple(
        function for module in modules for name, function in vars(module).items() if name.startswith("check_")
    )


# A product that does not multiply spoils what is computed from its factors.
CAUSES = {
    "flops-mismatch": ("product-mismatch", "mfu-mismatch", "sparse-peak"),
    "mfu-mismatch": ("product-mismatch",),
    "superlinear-scaling": ("product-mismatch",),
}


def audit_report(report: Report) -> list[AuditFinding]:
    """All findings in a report, in the order of its lines, each cause once."""
    findings = dict.fromkeys(finding for check in all_checks() for finding in check(report))
    places = {(finding.line, finding.code) for finding in findings}
    causes = [
        replace(finding, path=report.path)
        for finding in findings
        if not any((finding.line, cause) in places for cause in CAUSES.get(finding.code, ()))
    ]
    return sorted(causes, key=lambda finding: (finding.line, finding.code))
