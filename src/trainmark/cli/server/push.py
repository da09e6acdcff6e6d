"""`trainmark push`: a run packed and sent to a team's server."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.complete import complete_run
from trainmark.cli.common.options import json_option, runs_option
from trainmark.errors import UserError

if TYPE_CHECKING:
    from trainmark.store.run import RunFolder

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PACKED = ".trainmark"


@click.command("push", short_help="Send a packed run to a team's server.")
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--to", metavar="URL", envvar="TRAINMARK_SERVER", help="The server, as https://HOST.")
@click.option("--token-file", type=FILE, help="By default $TRAINMARK_TOKEN, or `token` in Trainmark's home.")
@click.option("--key", type=FILE, help="Sign with this SSH key.")
@click.option("--partial", is_flag=True, help="Push what there is of a run that has not ended.")
@runs_option
@json_option
def push_command(
    run: str,
    to: str | None,
    token_file: Path | None,
    key: Path | None,
    partial: bool,
    runs: Path,
    as_json: bool,
) -> None:
    """Pack RUN, or take a packed file, and send it to the server of a team.

    The server computes every figure again from the events. What was sent before is not stored twice: a push
    that was cut short is simply repeated.

    \b
    Examples:
      trainmark push latest --to https://bench.example.org
      trainmark push nightly.trainmark
    """
    import json

    from trainmark.store.remote import Remote, find_token

    if to is None:
        raise UserError("no server is named; give --to https://HOST, or set TRAINMARK_SERVER.")
    token = find_token(token_file)
    if token is None:
        raise UserError(
            "there is no token; set TRAINMARK_TOKEN, or put it into a file and name it by --token-file."
        )
    remote = Remote(to, token)
    with _packed(run, runs, key, partial) as file, _progress(file.stat().st_size, as_json) as progress:
        answer = remote.push(file, progress)
    if as_json:
        click.echo(json.dumps(answer))
    else:
        state = "stored" if answer.get("new") else "was stored before"
        click.echo(f"{remote.url}{answer.get('url', '')} {state}")


@contextmanager
def _packed(run: str, runs: Path, key: Path | None, partial: bool) -> Iterator[Path]:
    if run.endswith(PACKED) and Path(run).is_file():
        if key is not None:
            raise UserError(f"{run} is packed already; `trainmark pack --sign KEY` packs and signs.")
        yield Path(run)
        return
    from trainmark.pack.archive import pack
    from trainmark.store.run import find_run

    found = find_run(run, runs)
    _require_result(found, partial)
    with tempfile.TemporaryDirectory(prefix="trainmark-push-") as folder:
        yield pack(found, Path(folder) / f"run{PACKED}", key=key).path


def _require_result(run: RunFolder, partial: bool) -> None:
    """A server keeps what is complete: the rest of a run would come as a change of its result."""
    from trainmark.store.overview import run_row

    info, records = run.info, run.records()
    if info.of_explain:
        raise UserError(f"{info.name} was taken by `trainmark explain` for itself, and is no result to push.")
    if run_row(run, records)["status"] == "partial" and not partial:
        raise UserError(
            f"{info.name} has {len(records)} of its {info.least} trials: wait for its end, or go on with "
            f"`trainmark run --resume {run.path}`; --partial pushes these, and a later push adds the rest."
        )


@contextmanager
def _progress(size: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A line that moves, on a terminal."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield lambda sent: None
        return
    with click.progressbar(length=size, label="pushing", file=sys.stderr) as bar:
        sent_before = 0

        def progress(sent: int) -> None:
            nonlocal sent_before
            bar.update(sent - sent_before)
            sent_before = sent

        yield progress
