"""`trainmark audit`: published reports and logs checked against themselves."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.options import json_option

SOUND, CONTRADICTED = 0, 1


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--iterations", type=click.IntRange(1), help="How many the measuring rule needs of each log.")
@json_option
def audit_command(paths: tuple[Path, ...], iterations: int | None, as_json: bool) -> int:
    """Check published reports (Markdown, HTML or CSV, in English or Chinese) and logs against themselves.

    Each PATH is a file, or a folder of them; logs in a folder such as 1n8g/rn50_b128_fp32_1.log are held
    against their path and each other. A finding names the place, what is claimed and what follows from
    the rest of the report. Exits with 1 where one is an error: the report contradicts itself or physics.

    \b
    Examples:
      trainmark audit README.md
      trainmark audit reports/ --json
      trainmark audit logs/ --iterations 120
    """
    from trainmark.audit import show
    from trainmark.audit.audit import audit_report
    from trainmark.audit.finding import Severity
    from trainmark.audit.log_files import logs_at
    from trainmark.audit.logs import audit_logs
    from trainmark.audit.sources import reports_at

    logs = {file: facts for path in paths for file, facts in logs_at(path).items()}
    reports = [report for path in paths for report in reports_at(path, logs)]
    findings = [finding for report in reports for finding in audit_report(report)]
    findings += audit_logs(list(logs.values()), iterations)
    if as_json:
        click.echo(show.as_json(findings))
    else:
        click.echo(show.as_text(findings, [*(report.path for report in reports), *map(str, logs)]))
    is_contradicted = any(finding.severity is Severity.ERROR for finding in findings)
    return CONTRADICTED if is_contradicted else SOUND
