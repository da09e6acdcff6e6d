"""A folder of logs checked: copies, and what each says against the path that it stands at."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from trainmark.published.audit.checks.text.measuring_rule import FEWEST_ITERATIONS
from trainmark.published.audit.claims.shown_logs import LONGEST_LINE, STAMP
from trainmark.published.audit.claims.topology import SHORT
from trainmark.published.audit.finding import Finding, Severity

BATCH_IN_NAME = re.compile(r"(?:^|_)(?:b|bs|bsz)(\d{1,6})(?=[_.]|$)", re.I)
PRECISION_IN_NAME = re.compile(r"(?:^|_)(fp32|tf32|fp16|amp|bf16)(?=[_.]|$)", re.I)
# Mixed precision goes by both names.
SAME_PRECISION = {"fp16": "amp"}
# Fewer stamps can agree by chance.
LEAST_STAMPS = 3


@dataclass(frozen=True)
class LogFacts:
    """What a reader found in one log; None is what the log does not say.

    `digest` is that of the whole content, `stamps` that of its time stamps alone: two logs of one run keep
    the same stamps, whatever else was edited.
    """

    path: str
    digest: str
    world_size: int | None = None
    batch_per_device: int | None = None
    precision: str | None = None
    steps: int | None = None
    throughput: float | None = None
    config: dict[str, Any] = field(default_factory=dict)
    stamps: str | None = None


def stamps_digest(lines: Iterable[str]) -> str | None:
    """One digest over all time stamps of a log in order; None where it has too few to tell."""
    digest = hashlib.sha256()
    count = 0
    for line in lines:
        if stamp := STAMP.search(line[:LONGEST_LINE]):
            digest.update(stamp[1].replace("T", " ").replace(",", ".").encode())
            count += 1
    return digest.hexdigest() if count >= LEAST_STAMPS else None


def audit_logs(logs: Sequence[LogFacts], iterations_needed: int | None = None) -> list[Finding]:
    """All findings in a set of logs; `iterations_needed` is what the rule asks of each run."""
    findings = [*_copies(logs)]
    for log in logs:
        findings += [*_against_path(log), *_length(log, iterations_needed)]
    return sorted(findings, key=lambda finding: (finding.where, finding.code))


def _copies(logs: Sequence[LogFacts]) -> Iterator[Finding]:
    by_content: dict[str, LogFacts] = {}
    by_stamps: dict[str, LogFacts] = {}
    for log in logs:
        twin = by_content.setdefault(log.digest, log)
        origin = by_stamps.setdefault(log.stamps, log) if log.stamps else log
        if twin is not log:
            yield _error(
                log, "copied-log", "a run of its own", twin.path, f"the same content as {twin.path}."
            )
        elif origin is not log:
            message = f"every time stamp is that of {origin.path}, though the text differs: an edited copy."
            yield _error(log, "edited-copy", "a run of its own", origin.path, message)


def _against_path(log: LogFacts) -> Iterator[Finding]:
    path = PurePath(log.path)
    if (topology := SHORT.search(path.parent.name)) and log.world_size is not None:
        named = int(topology[1]) * int(topology[2])
        if named != log.world_size:
            yield _differs(log, "world-size-mismatch", f"{named} devices", f"{log.world_size} devices")
    batch = BATCH_IN_NAME.search(path.name)
    if batch and log.batch_per_device not in (None, int(batch[1])):
        yield _differs(log, "batch-mismatch", f"batch {batch[1]}", f"batch {log.batch_per_device}")
    if (precision := PRECISION_IN_NAME.search(path.name)) and log.precision is not None:
        named_precision = precision[1].lower()
        if _plain(named_precision) != _plain(log.precision.lower()):
            yield _differs(log, "precision-mismatch", named_precision, log.precision)


def _length(log: LogFacts, needed: int | None) -> Iterator[Finding]:
    if log.steps is None:
        return
    if needed is not None and log.steps < needed:
        message = f"the rule needs {needed} iterations, and the log ends after {log.steps}."
        yield _error(log, "too-few-iterations", f"{needed} iterations", f"{log.steps} iterations", message)
    elif log.steps < FEWEST_ITERATIONS:
        message = f"{log.steps} iterations say little about steady training."
        yield Finding(
            "window-too-short",
            Severity.WARNING,
            f"{log.path}:1",
            "a throughput",
            f"{log.steps} steps",
            message,
        )


def _plain(precision: str) -> str:
    return SAME_PRECISION.get(precision, precision)


def _differs(log: LogFacts, code: str, named: str, logged: str) -> Finding:
    return _error(log, code, named, logged, f"the path says {named}, the log {logged}.")


def _error(log: LogFacts, code: str, claimed: str, derived: str, message: str) -> Finding:
    return Finding(code, Severity.ERROR, f"{log.path}:1", claimed, derived, message)
