"""`trainmark audit`: published reports and logs checked against themselves."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.options import json_option
from trainmark.cli.terminal import print_json

SOUND, CONTRADICTED, SOME_NOT_READ = 0, 1, 1


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--iterations", type=click.IntRange(1), help="How many the measuring rule needs of each log.")
@json_option
def audit_command(paths: tuple[Path, ...], iterations: int | None, as_json: bool) -> int:
    """Check published reports (Markdown, HTML or CSV, in English or Chinese) and logs against themselves.

    Each PATH is a file, or a folder of them; logs in a folder such as 1n8g/rn50_b128_fp32_1.log are
    compared with their path and each other. A finding names the place, what is claimed and what follows from
    the rest of the report. Exits with 1 where one is an error, the report contradicts itself or physics, or
    where one PATH of several cannot be read.

    \b
    Examples:
      trainmark audit README.md
      trainmark audit reports/ --json
      trainmark audit logs/ --iterations 120
    """
    from trainmark.audit.audit import audit_logs, audit_report, logs_at, reports_at
    from trainmark.audit.finding import FindingSeverity, as_text
    from trainmark.base.errors import UserError
    from trainmark.base.streams import naming
    from trainmark.base.text import visible

    logs, reports, findings = {}, [], []
    refusals: list[str] = []
    for path in paths:
        try:
            with naming(str(path)):
                logs_here = logs_at(path)
                reports_here = reports_at(path, logs_here)
                findings += [each for report in reports_here for each in audit_report(report)]
        except UserError as error:
            refusals.append(visible(str(error)))
            continue
        logs.update(logs_here)
        reports += reports_here
    if len(refusals) == len(paths):
        raise UserError(refusals[0] if len(refusals) == 1 else "\ntrainmark: ".join(refusals))
    for refusal in refusals:
        click.echo(f"trainmark: {refusal}", err=True)
    findings += audit_logs(list(logs.values()), iterations)
    if as_json:
        print_json({"findings": [each.as_dict() for each in findings]})
    else:
        click.echo(as_text(findings, [*(report.path for report in reports), *map(str, logs)]))
    is_contradicted = any(each.severity is FindingSeverity.ERROR for each in findings)
    return CONTRADICTED if is_contradicted else SOME_NOT_READ if refusals else SOUND
