"""The verdicts that were reached on this machine, one file for each framework."""

from __future__ import annotations

from pathlib import Path

from trainmark.runner.conform.verdict import Verdict
from trainmark.store.files import LocalRecords

VERDICTS = LocalRecords("conformance", Verdict)


def keep(verdict: Verdict) -> Path:
    """Write a verdict in place of an earlier one of the same subject."""
    VERDICTS.replace(verdict.framework, lambda other: _subject(other) == _subject(verdict), verdict)
    return VERDICTS.path(verdict.framework)


def find(
    workload: str, framework: str, version: str | None, python: str, device: str, code: str
) -> Verdict | None:
    """Return the verdict on code of that digest; None where it has not been checked."""
    subject = (workload, version, python, device)
    verdicts = (verdict for verdict in VERDICTS.read(framework) if _subject(verdict) == subject)
    return next((verdict for verdict in verdicts if verdict.code == code), None)


def _subject(verdict: Verdict) -> tuple[str, str | None, str, str]:
    return verdict.workload, verdict.version, verdict.python, verdict.device
