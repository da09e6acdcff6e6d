"""The logs at a path, read for the audit: what each says of itself, beside the digests that tell copies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from trainmark.errors import UserError
from trainmark.measure.log_figure import LogFacts as ColumnFacts
from trainmark.measure.log_figure import logged_figure
from trainmark.published.audit.logs import LogFacts, stamps_digest
from trainmark.published.audit.report.report import LARGEST_FILE
from trainmark.published.readers.input.refusal import Refusal
from trainmark.published.readers.read import Log, read_logs
from trainmark.regular_file import open_regular

LONGEST_PIECE = 1 << 20
LOG_ENDING = ".log"
# Logs often go by these endings, and so do reports; the content tells.
EITHER = {".txt", ".json", ".out"}
HEADING = re.compile(rb"^#{1,6} \S", re.MULTILINE)
TABLE_ROW = re.compile(rb"^\s*\|[^\n]*\|\s*$", re.MULTILINE)


def logs_at(path: Path) -> dict[Path, LogFacts]:
    """Every log of a known format at a path, itself or a folder; whatever is none is passed over."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    logs = {}
    for file in files:
        # One that cannot be opened is passed over here, and named where it is looked at as a report.
        with suppress(OSError):
            if file.is_file() and _may_be_log(file) and (facts := _facts(file)):
                logs[file] = facts
    return logs


def _may_be_log(file: Path) -> bool:
    if file.suffix.lower() in EITHER:
        with open_regular(file) as stream:
            content = stream.read(LARGEST_FILE)
        return not (HEADING.search(content) and TABLE_ROW.search(content))
    return file.suffix.lower() == LOG_ENDING


def _facts(file: Path) -> LogFacts | None:
    try:
        log = next(iter(read_logs([str(file)])), None)
    except UserError:
        return None
    if log is None or isinstance(log, Refusal):
        return None
    digest = hashlib.sha256()
    with open_regular(file) as stream:
        stamps = stamps_digest(_lines(stream, digest.update))
    return LogFacts(path=str(file), digest=digest.hexdigest(), stamps=stamps, **_of_only_run(log))


def _lines(stream: BinaryIO, see: Callable[[bytes], None]) -> Iterator[str]:
    """The lines of a log, overlong ones in pieces; `see` gets every byte."""
    while piece := stream.readline(LONGEST_PIECE):
        see(piece)
        yield from piece.decode("utf-8", "replace").splitlines()


def _of_only_run(log: Log) -> dict[str, Any]:
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
        "throughput": figure.throughput,
        "config": run.settings,
    }
