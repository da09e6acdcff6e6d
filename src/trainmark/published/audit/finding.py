"""What an audit says: a claim, what follows from the rest of the report, and how serious that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum


class Severity(str, Enum):
    """Error: the report contradicts itself or physics. Warning: it needs explaining. Note: it is missing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding; `where` is `file:line`."""

    code: str
    severity: Severity
    where: str
    claimed: str
    derived: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {**asdict(self), "severity": self.severity.value}
