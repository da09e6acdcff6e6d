"""What was found of one framework: does it train the model that the recipe describes?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainmark.base.typed_json import encode, flattened
from trainmark.workloads import registry


@dataclass(frozen=True)
class Check:
    """One training: on so many ranks, in one variant. `failed` says why there is nothing to compare.

    `variant` is the label of a declared one; empty is the training as it comes.
    """

    ranks: int
    variant: str
    differs: tuple[str, ...] = ()
    refused: str | None = None
    failed: str | None = None
    largest_loss_error: float | None = None
    observations: tuple[tuple[str, str], ...] = field(default=(), metadata=flattened())
    remark: str | None = None

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
    workload: str = registry.DEFAULT

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
        return {**encode(self), "conformant": self.conformant, "differs": self.differs}


def words(check: Check) -> str:
    ranks = f"{check.ranks} rank{'s' if check.ranks > 1 else ''}"
    return f"{ranks}, {check.variant}" if check.variant else ranks
