"""`trainmark audit`: published reports checked against themselves."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.options import json_option

SOUND, CONTRADICTED = 0, 1


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def audit_command(paths: tuple[Path, ...], as_json: bool) -> int:
    """Check published reports (Markdown, HTML or CSV, in English or Chinese) against themselves.

    Each PATH is a file, or a folder of them. A finding names the place, what is claimed and what follows from
    the rest of the report. Exits with 1 where one is an error: the report contradicts itself or physics.

    \b
    Examples:
      trainmark audit README.md
      trainmark audit reports/ --json
    """
    from trainmark.audit import show
    from trainmark.audit.audit import audit_report
    from trainmark.audit.finding import Severity
    from trainmark.audit.sources import reports_at

    reports = [report for path in paths for report in reports_at(path)]
    findings = [finding for report in reports for finding in audit_report(report)]
    if as_json:
        click.echo(show.as_json(findings))
    else:
        click.echo(show.as_text(findings, [report.path for report in reports]))
    is_contradicted = any(finding.severity is Severity.ERROR for finding in findings)
    return CONTRADICTED if is_contradicted else SOUND
