"""The logs at a path, read for the audit: what each says of itself, beside the digests that tell copies."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from trainmark.audit.logs import LogFacts, stamps_digest
from trainmark.errors import UserError
from trainmark.measure.logged import LogFacts as ColumnFacts
from trainmark.measure.logged import logged_figure
from trainmark.readers.archives import Refusal
from trainmark.readers.read import Log, read_logs

LOG_ENDING = ".log"
# Logs often go by these endings, and so do reports; the content tells.
EITHER = {".txt", ".json", ".out"}
HEADING = re.compile(rb"^#{1,6} \S", re.MULTILINE)
TABLE_ROW = re.compile(rb"^\s*\|[^\n]*\|\s*$", re.MULTILINE)


def logs_at(path: Path) -> dict[Path, LogFacts]:
    """Every log of a known format at a path, itself or a folder; whatever is none is passed over."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = {}
    for file in files:
        if file.is_file() and _may_be_log(file) and (facts := _facts(file)):
            found[file] = facts
    return found


def _may_be_log(file: Path) -> bool:
    if file.suffix.lower() in EITHER:
        content = file.read_bytes()
        return not (HEADING.search(content) and TABLE_ROW.search(content))
    return file.suffix.lower() == LOG_ENDING


def _facts(file: Path) -> LogFacts | None:
    try:
        log = next(iter(read_logs([str(file)])), None)
    except UserError:
        return None
    if log is None or isinstance(log, Refusal):
        return None
    content = file.read_bytes()
    return LogFacts(
        path=str(file),
        digest=hashlib.sha256(content).hexdigest(),
        stamps=stamps_digest(content.decode("utf-8", "replace").splitlines()),
        **_of_only_run(log),
    )


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
