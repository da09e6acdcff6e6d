"""`trainmark pack`: a run as one file that others can verify."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.cli.common.complete import complete_run
from trainmark.cli.common.next_step import tell_next
from trainmark.cli.common.options import json_option, runs_option
from trainmark.visible import one_line


@click.command("pack", short_help="Pack a run into one file that others can verify.")
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.  [default: NAME.trainmark]")
@click.option("--sign", "key", metavar="KEY", type=click.Path(path_type=Path), help="Sign with this SSH key.")
@click.option("--recompute", is_flag=True, help="Pack recomputed figures where stored ones do not follow.")
@runs_option
@json_option
def pack_command(
    run: str, out: Path | None, key: Path | None, recompute: bool, runs: Path, as_json: bool
) -> int:
    """Pack RUN (a name, a path or `latest`): suite, environment, facts, events, logs, figures and digests.

    Secrets and home paths are masked in the packed copy, and listed in its manifest.

    \b
    Examples:
      trainmark pack latest
      trainmark pack before --out before.trainmark --sign ~/.ssh/id_ed25519
    """
    from trainmark.pack.archive import SUFFIX, pack
    from trainmark.pack.manifest import scrubbed_counts
    from trainmark.report.format.number import counted
    from trainmark.store.run import find_run

    folder = find_run(run, runs)
    packed = pack(folder, out or Path(f"{folder.path.name}{SUFFIX}"), key=key, recompute=recompute)
    manifest = packed.manifest
    counts = scrubbed_counts(manifest)
    if as_json:
        summary = {
            "file": str(packed.path),
            "bytes": packed.bytes,
            "sha256": packed.sha256,
            "uuid": manifest.uuid,
            "trials": len(manifest.trials),
            "members": len(manifest.members),
            "scrubbed": counts,
            "left_out": list(manifest.left_out),
            "signed": key is not None,
        }
        click.echo(json.dumps(summary, indent=2))
        return 0
    size = counted(len(manifest.trials), "trial"), counted(len(manifest.members), "file")
    click.echo(one_line(f"{packed.path}: {', '.join(size)}, {packed.bytes:,} bytes"))
    for kind, count in counts.items():
        click.echo(f"masked: {counted(count, kind)}")
    tell_next("pack", file=packed.path)
    return 0
