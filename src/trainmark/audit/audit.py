"""Every check over every report at a path, and a finding: what is claimed, what follows; as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules

from trainmark.audit import checks
from trainmark.audit.report import Report, UnreadableReportError, read_report


class FindingSeverity(str, Enum):
    """Error: the report contradicts itself or physics. Warning: it needs explaining. Note: it is missing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


# What is not listed is an error.
WARNINGS = frozenset({
    "accuracy-too-soon", "empty-block", "empty-row", "missing-environment", "missing-logs", "missing-rows",
    "misspelt-in-code", "mixed-precision-names", "network-driver-missing", "partial-dataset", "placeholder",
    "recipe-contradicted", "row-of-two-runs", "script-of-another-model", "stated-difference",
    "window-too-short",
})  # fmt: skip
NOTES = frozenset({
    "collapsed-scaling", "line-number-mismatch", "longer-but-less-accurate", "missing-repeats",
    "superlinear-scaling", "throughput-falls", "unusual-convention",
})  # fmt: skip


@dataclass(frozen=True)
class AuditFinding:
    """One finding on a line of a file; `is_warning` where the code alone does not tell how serious it is."""

    code: str
    line: int
    claimed: str
    derived: str
    message: str
    is_warning: bool = False
    path: str = ""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def severity(self) -> FindingSeverity:
        if self.is_warning or self.code in WARNINGS:
            return FindingSeverity.WARNING
        return FindingSeverity.NOTE if self.code in NOTES else FindingSeverity.ERROR

    def as_dict(self) -> dict[str, str]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "where": self.where,
            "claimed": self.claimed,
            "derived": self.derived,
            "message": self.message,
        }


Findings = Iterator[AuditFinding]


def as_text(findings: Sequence[AuditFinding], files: Sequence[str]) -> str:
    """One finding in two lines, under the name of its file; a file without any says so."""
    by_file = {file: list(group) for file, group in groupby(findings, key=lambda finding: finding.path)}
    lines = []
    for file in files:
        file_findings = by_file.get(file, [])
        lines.append(f"{file}: {_counted(file_findings)}")
        for found in file_findings:
            message, claimed, derived = map(_one_line, (found.message, found.claimed, found.derived))
            lines.append(f"  {found.severity.value:7} line {found.line}: {message}  [{found.code}]")
            lines.append(f"          claimed {claimed}; found {derived}")
    return "\n".join(lines)


def _counted(findings: Sequence[AuditFinding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    named = [
        f"{counts[severity]} {severity.value}{'s' * (counts[severity] != 1)}" for severity in FindingSeverity
    ]
    return ", ".join(named) if findings else "nothing found"


def _one_line(text: str) -> str:
    """A report's words, unable to move the cursor or break the line."""
    return "".join(character if character.isprintable() else " " for character in text)


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
