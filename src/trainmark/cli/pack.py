"""`trainmark pack` and `verify`: a run as one file, and whether it holds what it says."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.text import one_line
from trainmark.cli.complete import complete_run
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, runs_option

if TYPE_CHECKING:
    from trainmark.store.manifest import Signature
    from trainmark.store.verify import PackVerification


@click.command("pack")
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
    from trainmark.pages.number import counted
    from trainmark.store.archive import SUFFIX, pack
    from trainmark.store.manifest import scrubbed_counts
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


DIFFERS = 1


@click.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--allowed-signers", metavar="FILE", type=click.Path(path_type=Path),
    help="Fail unless a key of this file signed it; see ssh-keygen(1), ALLOWED SIGNERS.",
)  # fmt: skip
@click.option(
    "--unpack", "folder", metavar="FOLDER", type=click.Path(path_type=Path),
    help="Unpack what was verified into a new folder, for report and compare.",
)  # fmt: skip
@json_option
def verify_command(file: Path, allowed_signers: Path | None, folder: Path | None, as_json: bool) -> int:
    """Verify FILE, a packed run: digests, signature, and every figure from its events.

    Exit code 0: verified; 1: something differs; 2: this is no packed run.

    \b
    Examples:
      trainmark verify before.trainmark
      trainmark verify before.trainmark --allowed-signers ~/.ssh/allowed_signers
    """
    from trainmark.store.unpack import unpack
    from trainmark.store.verify import verify

    verification = verify(file, allowed_signers)
    if folder is not None and verification.verified:
        unpack(file, folder)
    if as_json:
        click.echo(json.dumps(_plain(file, verification), indent=2))
    else:
        _tell(file, verification)
        if folder is None and verification.verified:
            tell_next("verify", file=file)
    return 0 if verification.verified else DIFFERS


def _tell(file: Path, verification: PackVerification) -> None:
    from trainmark.pages.number import counted
    from trainmark.store.manifest import scrubbed_counts

    manifest = verification.manifest
    for difference in verification.differences:
        click.echo(one_line(difference.sentence))
    ending = "verified" if verification.verified else counted(len(verification.differences), "difference")
    click.echo(one_line(f"{file}: {ending}"))
    run = f"{manifest.name}, {manifest.uuid}, measured by {manifest.run_version}"
    click.echo(f"run        {one_line(run)}")
    figures = sum(trial.figure is not None for trial in verification.trials)
    trials, files = counted(len(verification.trials), "trial"), counted(len(manifest.members), "file")
    click.echo(f"contents   {trials}, {counted(figures, 'figure')} recomputed, {files}")
    click.echo(f"signature  {one_line(_signed_by(verification.signature))}")
    if counts := scrubbed_counts(manifest):
        click.echo(f"masked     {', '.join(counted(count, kind) for kind, count in counts.items())}")


def _signed_by(signature: Signature) -> str:
    from trainmark.store.manifest import SignatureState

    return {
        SignatureState.UNSIGNED: "none",
        SignatureState.VALID: f"{signature.signer}, {signature.key}",
        SignatureState.UNKNOWN_SIGNER: f"{signature.key}, not checked against allowed signers",
        SignatureState.INVALID: "invalid",
    }[signature.state]


def _plain(file: Path, verification: PackVerification) -> dict[str, object]:
    manifest, signature = verification.manifest, verification.signature
    return {
        "file": str(file),
        "verified": verification.verified,
        "uuid": manifest.uuid,
        "name": manifest.name,
        "created": manifest.created,
        "version": manifest.version,
        "signature": {"state": signature.state.value, "signer": signature.signer, "key": signature.key},
        "differences": [
            {**asdict(difference), "sentence": difference.sentence} for difference in verification.differences
        ],
        "trials": [
            {
                "trial": trial.name,
                "uuid": trial.uuid,
                "outcome": trial.record.outcome if trial.record else None,
                "throughput": trial.figure.throughput if trial.figure else None,
                "unit": f"{trial.figure.unit}/s" if trial.figure else None,
                "differences": len(trial.differences),
            }
            for trial in verification.trials
        ],
        "scrubbed": [asdict(note) for note in manifest.scrubbed],
    }
