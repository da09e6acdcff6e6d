"""The files that a path means: itself, or what a folder holds that reads like a report."""

from __future__ import annotations

from pathlib import Path

from trainmark.audit.report import Report, UnreadableReportError, read_report

ENDINGS = {".md", ".markdown", ".html", ".htm", ".csv", ".tsv", ".txt", ".rst"}


def reports_at(path: Path) -> list[Report]:
    """Every report at a path; one that cannot be read is refused, unless a folder brought it along."""
    if not path.exists():
        raise UnreadableReportError(f"{path}: no such file or folder.")
    if not path.is_dir():
        return [read_report(path)]
    found = []
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() in ENDINGS and file.is_file():
            try:
                found.append(read_report(file))
            except UnreadableReportError:
                continue
    if not found:
        raise UnreadableReportError(f"{path}: holds no Markdown, HTML, CSV or text file to audit.")
    return found
