"""What an audit says: a claim, what follows from the rest of the report, how serious it is; as text, JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import groupby


class FindingSeverity(str, Enum):
    """Error: the report contradicts itself or physics. Warning: it needs explaining. Note: it is missing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class AuditFinding:
    """One finding; `where` is `file:line`."""

    code: str
    severity: FindingSeverity
    where: str
    claimed: str
    derived: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {**asdict(self), "severity": self.severity.value}


def as_json(findings: Sequence[AuditFinding]) -> str:
    return json.dumps({"findings": [finding.as_dict() for finding in findings]}, indent=2, ensure_ascii=False)


def as_text(findings: Sequence[AuditFinding], files: Sequence[str]) -> str:
    """One finding in two lines, under the name of its file; a file without any says so."""
    by_file = {file: list(group) for file, group in groupby(findings, key=_file)}
    lines = []
    for file in files:
        file_findings = by_file.get(file, [])
        lines.append(f"{file}: {_counted(file_findings)}")
        for finding in file_findings:
            place = finding.where.rpartition(":")[2]
            lines.append(
                f"  {finding.severity.value:7} line {place}: {_one_line(finding.message)}  [{finding.code}]"
            )
            lines.append(
                f"          claimed {_one_line(finding.claimed)}; found {_one_line(finding.derived)}"
            )
    return "\n".join(lines)


def _file(finding: AuditFinding) -> str:
    return finding.where.rpartition(":")[0]


def _counted(findings: Sequence[AuditFinding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    named = [
        f"{counts[severity]} {severity.value}{'s' * (counts[severity] != 1)}" for severity in FindingSeverity
    ]
    return ", ".join(named) if findings else "nothing found"


def _one_line(text: str) -> str:
    """A report's words, unable to move the cursor or break the line."""
    return "".join(character if character.isprintable() else " " for character in text)
