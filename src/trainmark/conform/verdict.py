"""What was found of one framework: does it train the model that the recipe describes?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.conform import reference
from trainmark.conform.differences import differences, statistics_convention

WORKLOAD = Path(__file__).resolve().parent.parent / "workloads" / "resnet50"


@dataclass(frozen=True)
class Check:
    """One training: on so many ranks, in one layout. `failed` says why there is nothing to compare."""

    ranks: int
    layout: str
    differs: tuple[str, ...] = ()
    refused: str | None = None
    failed: str | None = None
    largest_loss_error: float | None = None
    running_variance: str | None = None

    @property
    def passed(self) -> bool:
        return self.failed is None and self.refused is None and not self.differs


@dataclass(frozen=True)
class Verdict:
    """`code` is the digest of what was compared; another program or reference needs another verdict."""

    framework: str
    version: str | None
    python: str
    device: str
    code: str
    checked: str
    checks: tuple[Check, ...]

    @property
    def conformant(self) -> bool:
        """What the framework refuses it cannot do wrong; but something must have been compared."""
        done = [check for check in self.checks if check.refused is None]
        return bool(done) and all(check.passed for check in done)

    @property
    def differs(self) -> list[str]:
        """In a sentence each, the gravest first."""
        return [
            f"{words(check)}: {difference}"
            for check in self.checks
            for difference in ((check.failed,) if check.failed else check.differs)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "conformant": self.conformant, "differs": self.differs}


def from_dict(kept: Mapping[str, Any]) -> Verdict:
    fields = {name: kept[name] for name in ("framework", "version", "python", "device", "code", "checked")}
    checks = tuple(Check(**{**check, "differs": tuple(check["differs"])}) for check in kept["checks"])
    return Verdict(**fields, checks=checks)


def words(check: Check) -> str:
    return f"{check.ranks} rank{'s' if check.ranks > 1 else ''}, {check.layout}"


def compared(ranks: int, layout: str, shown: Sequence[Mapping[str, Any]]) -> Check:
    """From what every rank wrote down."""
    expected = reference.expected(ranks)
    found = [differences(seen, right) for seen, right in zip(shown, expected, strict=True)]
    named = [
        f"rank {rank}: {difference}" if ranks > 1 else str(difference)
        for rank, wrong in enumerate(found)
        for difference in wrong
    ]
    errors = [
        abs(loss / right_loss - 1)
        for seen, right in zip(shown, expected, strict=True)
        for loss, right_loss in zip(seen["losses"], right["losses"], strict=True)
    ]
    return Check(
        ranks,
        layout,
        differs=tuple(named),
        largest_loss_error=max(errors),
        running_variance=None if named else statistics_convention(shown[0], expected[0]),
    )


def code_digest(framework: str, workload: Path = WORKLOAD) -> str:
    """Of the program, of all that it shares with the others, and of what it is held against."""
    digest = hashlib.sha256()
    shared = sorted([*(workload / "shared").glob("*.py"), *(workload / "shared").glob("recipes/*.json")])
    own = (workload / "models" / f"{framework}.py", workload / f"{framework}.py")
    for file in (*shared, *own, reference.FILE):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
