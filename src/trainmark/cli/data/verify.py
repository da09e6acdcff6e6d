"""`trainmark data verify`: whether a set is as it was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.common.options import json_option
from trainmark.cli.common.terminal import print_json

if TYPE_CHECKING:
    from trainmark.datasets.verify.verify import Verdict

SOUND, DAMAGED = 0, 1


@click.command("verify", short_help="Compare every file of a set with its checksum.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--decode", is_flag=True, help="Decode every picture too (slow).")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one a processor]")
@json_option
def verify_command(path: Path, decode: bool, workers: int | None, as_json: bool) -> int:
    """Compare every file of the set in PATH with its checksum, and name the damaged records.

    A set without checksums is checked by the rules of its format. Exits with 1 where something is wrong.

    Of tokens, headers, sizes, indices, counts and every id are checked as well.

    \b
    Examples:
      trainmark data verify pictures-rec
      trainmark data verify /data/imagenet --decode --json
      trainmark data verify corpus
    """
    from trainmark.cli.data.live import data_display
    from trainmark.datasets.tokens.recognise import is_token_set
    from trainmark.datasets.verify.verify import verify
    from trainmark.datasets.workers import available

    if is_token_set(path):
        return _verify_tokens(path, workers or available(), as_json)
    with data_display(f"verifying {path}") as display:
        verdict = verify(path, workers or available(), decode, display.progress)
    if as_json:
        print_json(_record(path, verdict))
    else:
        click.echo(_text(path, verdict))
    return SOUND if verdict.sound else DAMAGED


def _verify_tokens(path: Path, workers: int, as_json: bool) -> int:
    from trainmark.cli.data.live import data_display
    from trainmark.cli.data.tokens import verdict_record, verdict_text
    from trainmark.datasets.tokens.verify import verify_tokens

    with data_display(f"verifying {path}") as display:
        verdict = verify_tokens(path, workers, display.progress)
    if as_json:
        print_json(verdict_record(path, verdict))
    else:
        click.echo(verdict_text(path, verdict))
    return SOUND if verdict.sound else DAMAGED


def _text(path: Path, verdict: Verdict) -> str:
    from trainmark.report.format.number import counted

    files = counted(verdict.files, "file")
    if verdict.sound:
        return f"{path} is sound: {files} with {counted(verdict.records, 'record')}, by {verdict.by}."
    lines = [f"{path}: {counted(len(verdict.findings), 'finding')} in {files}, by {verdict.by}"]
    return "\n".join([*lines, *(f"  {finding}" for finding in verdict.findings)])


def _record(path: Path, verdict: Verdict) -> dict[str, Any]:
    return {
        "path": str(path),
        "sound": verdict.sound,
        "by": verdict.by,
        "files": verdict.files,
        "records": verdict.records,
        "damaged_records": [name for finding in verdict.findings for name in finding.records],
        "findings": [
            {
                "file": finding.file,
                "kind": finding.kind,
                "says": str(finding),
                "records": list(finding.records),
            }
            for finding in verdict.findings
        ],
    }
