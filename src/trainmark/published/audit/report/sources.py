"""The files that a path means: itself, or what a folder holds that reads like a report."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from trainmark.published.audit.report.report import Report, UnreadableReportError, read_report

ENDINGS = {".md", ".markdown", ".html", ".htm", ".csv", ".tsv", ".txt", ".rst"}


def reports_at(path: Path, logs: Collection[Path] = ()) -> list[Report]:
    """Every report at a path but the logs; one that cannot be read is refused, unless a folder brought it."""
    if not path.exists():
        raise UnreadableReportError(f"{path}: no such file or folder.")
    if not path.is_dir():
        return [] if path in logs else [read_report(path)]
    reports = []
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() in ENDINGS and file.is_file() and file not in logs:
            try:
                reports.append(read_report(file))
            except UnreadableReportError:
                continue
    if not reports and not logs:
        raise UnreadableReportError(f"{path}: holds no report and no log to audit.")
    return reports
