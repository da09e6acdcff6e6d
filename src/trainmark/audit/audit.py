"""Every check over every report at a path, and over the logs in a folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from pkgutil import iter_modules
from typing import Any, BinaryIO

from trainmark.audit import checks
from trainmark.audit.checks.procedure import FEWEST_ITERATIONS
from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.report import LARGEST_FILE, Report, UnreadableReportError, read_report
from trainmark.audit.statements import LONGEST_LOG_LINE, TIME_STAMP
from trainmark.audit.terms import SHORT_TOPOLOGY
from trainmark.base.errors import UserError
from trainmark.base.files import open_regular
from trainmark.base.streams import SourceRefusal
from trainmark.logs.read import ParsedLog, parsed_logs
from trainmark.measure.log_figure import LogFacts as ColumnFacts
from trainmark.measure.log_figure import logged_figure

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


BATCH_IN_NAME = re.compile(r"(?:^|_)(?:b|bs|bsz)(\d{1,6})(?=[_.]|$)", re.I)
PRECISION_IN_NAME = re.compile(r"(?:^|_)(fp32|tf32|fp16|amp|bf16)(?=[_.]|$)", re.I)
# Mixed precision goes by both names.
SAME_PRECISION = {"fp16": "amp"}
# Fewer stamps can agree by chance.
LEAST_STAMPS = 3


@dataclass(frozen=True)
class AuditedLog:
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
    stamps: str | None = None


def stamps_digest(lines: Iterable[str]) -> str | None:
    """One digest over all time stamps of a log in order; None where it has too few to tell."""
    digest = hashlib.sha256()
    count = 0
    for line in lines:
        if stamp := TIME_STAMP.search(line[:LONGEST_LOG_LINE]):
            digest.update(stamp[1].replace("T", " ").replace(",", ".").encode())
            count += 1
    return digest.hexdigest() if count >= LEAST_STAMPS else None


def audit_logs(logs: Sequence[AuditedLog], iterations_needed: int | None = None) -> list[AuditFinding]:
    """All findings in a set of logs; `iterations_needed` is what the rule asks of each run."""
    findings = [*_find_copies(logs)]
    for log in logs:
        findings += [*_check_path(log), *_check_length(log, iterations_needed)]
    return sorted(findings, key=lambda finding: (finding.where, finding.code))


def _find_copies(logs: Sequence[AuditedLog]) -> Findings:
    by_content: dict[str, AuditedLog] = {}
    by_stamps: dict[str, AuditedLog] = {}
    for log in logs:
        twin = by_content.setdefault(log.digest, log)
        origin = by_stamps.setdefault(log.stamps, log) if log.stamps else log
        if twin is not log:
            yield _finding(
                log, "copied-log", "a run of its own", twin.path, f"the same content as {twin.path}."
            )
        elif origin is not log:
            message = f"every time stamp is that of {origin.path}, though the text differs: an edited copy."
            yield _finding(log, "edited-copy", "a run of its own", origin.path, message)


def _check_path(log: AuditedLog) -> Findings:
    path = PurePath(log.path)
    if (topology := SHORT_TOPOLOGY.search(path.parent.name)) and log.world_size is not None:
        named = int(topology[1]) * int(topology[2])
        if named != log.world_size:
            yield _differs(log, "world-size-mismatch", f"{named} devices", f"{log.world_size} devices")
    batch = BATCH_IN_NAME.search(path.name)
    if batch and log.batch_per_device not in (None, int(batch[1])):
        yield _differs(log, "batch-mismatch", f"batch {batch[1]}", f"batch {log.batch_per_device}")
    if (precision := PRECISION_IN_NAME.search(path.name)) and log.precision is not None:
        named_precision = precision[1].lower()
        if _precision_class(named_precision) != _precision_class(log.precision.lower()):
            yield _differs(log, "precision-mismatch", named_precision, log.precision)


def _check_length(log: AuditedLog, needed: int | None) -> Findings:
    if log.steps is None:
        return
    if needed is not None and log.steps < needed:
        message = f"the rule needs {needed} iterations, and the log ends after {log.steps}."
        yield _finding(log, "too-few-iterations", f"{needed} iterations", f"{log.steps} iterations", message)
    elif log.steps < FEWEST_ITERATIONS:
        message = f"{log.steps} iterations say little about steady training."
        yield _finding(log, "window-too-short", "a throughput", f"{log.steps} steps", message)


def _precision_class(precision: str) -> str:
    return SAME_PRECISION.get(precision, precision)


def _differs(log: AuditedLog, code: str, named: str, logged: str) -> AuditFinding:
    return _finding(log, code, named, logged, f"the path says {named}, the log {logged}.")


def _finding(log: AuditedLog, code: str, claimed: str, derived: str, message: str) -> AuditFinding:
    return AuditFinding(code, 1, claimed, derived, message, path=log.path)


LONGEST_PIECE = 1 << 20
LOG_ENDING = ".log"
# Logs often go by these endings, and so do reports; the content tells.
AMBIGUOUS_ENDINGS = {".txt", ".json", ".out"}
HEADING = re.compile(rb"^#{1,6} \S", re.MULTILINE)
TABLE_ROW = re.compile(rb"^\s*\|[^\n]*\|\s*$", re.MULTILINE)


def logs_at(path: Path) -> dict[Path, AuditedLog]:
    """Every log of a known format at a path, itself or a folder; whatever is none is passed over."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    logs = {}
    for file in files:
        # One that cannot be opened is passed over here, and named where it is looked at as a report.
        with suppress(OSError):
            if file.is_file() and _may_be_log(file) and (facts := _audited_log(file)):
                logs[file] = facts
    return logs


def _may_be_log(file: Path) -> bool:
    if file.suffix.lower() in AMBIGUOUS_ENDINGS:
        with open_regular(file) as stream:
            content = stream.read(LARGEST_FILE)
        return not (HEADING.search(content) and TABLE_ROW.search(content))
    return file.suffix.lower() == LOG_ENDING


def _audited_log(file: Path) -> AuditedLog | None:
    try:
        log = next(iter(parsed_logs([str(file)])), None)
    except UserError:
        return None
    if log is None or isinstance(log, SourceRefusal):
        return None
    digest = hashlib.sha256()
    with open_regular(file) as stream:
        stamps = stamps_digest(_log_lines(stream, digest.update))
    return AuditedLog(path=str(file), digest=digest.hexdigest(), stamps=stamps, **_run_facts(log))


def _log_lines(stream: BinaryIO, see: Callable[[bytes], None]) -> Iterator[str]:
    """The lines of a log, overlong ones in pieces; `see` gets every byte."""
    while piece := stream.readline(LONGEST_PIECE):
        see(piece)
        yield from piece.decode("utf-8", "replace").splitlines()


def _run_facts(log: ParsedLog) -> dict[str, Any]:
    """Nothing where a log holds several runs: no one fact is then the log's."""
    if len(log.runs) != 1:
        return {}
    (run,) = log.runs
    figure = logged_figure(run.columns(), ColumnFacts(**run.facts()))
    batch = figure.batch_per_device
    return {
        "world_size": figure.world_size,
        "batch_per_device": None if batch is None else int(batch),
        "precision": run.settings.get("precision"),
        "steps": figure.steps,
    }
