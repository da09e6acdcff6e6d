"""Does a framework train the model of the recipe: the verdict, its digest, and what is known here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.base.typed_json import encode, flattened
from trainmark.store.files import LocalRecords
from trainmark.workloads import registry
from trainmark.workloads.registry import FOLDER, Family


@dataclass(frozen=True)
class ConformanceCheck:
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
class ConformanceVerdict:
    """`code` is the digest of what was compared; another program or reference needs another verdict."""

    framework: str
    version: str | None
    python: str
    device: str
    code: str
    checked: str
    checks: tuple[ConformanceCheck, ...]
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
            f"{check_label(check)}: {difference}"
            for check in self.checks
            for difference in ((check.failed,) if check.failed else check.differs)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**encode(self), "conformant": self.conformant, "differs": self.differs}


def check_label(check: ConformanceCheck) -> str:
    ranks = f"{check.ranks} rank{'s' if check.ranks > 1 else ''}"
    return f"{ranks}, {check.variant}" if check.variant else ranks


SUFFIXES = (".py", ".json")
COMMON = "common"  # what the programs of all families share


def code_digest(family: Family, framework: str, folder: Path | None = None) -> str:
    """Hash the program of one framework with what it shares with others, but not their own files.

    `folder` is a copy of the family's folder in the code of a run, the folder itself where none is given.
    """
    workloads = folder.parents[family.package.count(".")] / "trainmark" / "workloads" if folder else FOLDER
    others = {*family.frameworks} - {framework}
    digest = hashlib.sha256()
    shared = [workloads / name for name in (COMMON, *family.workload.shares)]
    for root in (folder or family.folder, *shared):
        for file in sorted(root.rglob("*")):
            # An empty `__init__.py` may have been added to the copy of a folder that is no package.
            if file.suffix in SUFFIXES and file.stem not in others and (content := file.read_bytes()):
                digest.update(str(file.relative_to(root)).encode())
                digest.update(content)
    return digest.hexdigest()[:16]


VERDICTS = LocalRecords("conformance", ConformanceVerdict)


def keep(verdict: ConformanceVerdict) -> Path:
    """Write a verdict in place of an earlier one of the same subject."""
    VERDICTS.replace(verdict.framework, lambda other: _subject(other) == _subject(verdict), verdict)
    return VERDICTS.path(verdict.framework)


def find(
    workload: str, framework: str, version: str | None, python: str, device: str, code: str
) -> ConformanceVerdict | None:
    """Return the verdict on code of that digest; None where it has not been checked."""
    subject = (workload, version, python, device)
    verdicts = (verdict for verdict in VERDICTS.read(framework) if _subject(verdict) == subject)
    return next((verdict for verdict in verdicts if verdict.code == code), None)


def _subject(verdict: ConformanceVerdict) -> tuple[str, str | None, str, str]:
    return verdict.workload, verdict.version, verdict.python, verdict.device
