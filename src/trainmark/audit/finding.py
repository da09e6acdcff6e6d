"""What an audit says: a claim, what follows from the rest of the report, how serious it is; as text, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby


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
