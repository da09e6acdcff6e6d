"""`trainmark serve` and `push`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_run
from trainmark.cli.options import json_option, runs_option
from trainmark.server.command import place_options, settings_of

if TYPE_CHECKING:
    from trainmark.store.run import RunFolder


FILE = click.Path(dir_okay=False, path_type=Path)
MEBIBYTE = 1 << 20


@click.command("serve")
@place_options
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8300, show_default=True, help="0 takes a free one."
)
@click.option("--public", is_flag=True, help="Let anybody read; pushing still needs a token.")
@click.option("--tls-cert", type=FILE, help="Certificate chain in PEM, for https.")
@click.option("--tls-key", type=FILE, help="Private key of the certificate, in PEM.")
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy that does TLS; its X-Forwarded-For is believed.",
)
@click.option("--allowed-signers", type=FILE, help="Take only runs that one of these SSH keys signed.")
@click.option(
    "--largest",
    type=click.IntRange(1, 8192),
    default=256,
    show_default=True,
    help="MiB of a packed file, at most.",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that serve."
)
@click.option(
    "--requests",
    type=click.IntRange(1),
    default=3000,
    show_default=True,
    help="Requests a minute from one client, at most.",
)
@click.option(
    "--pushes",
    type=click.IntRange(1),
    default=120,
    show_default=True,
    help="Pushes a minute with one token, at most.",
)
@click.option(
    "--webhook",
    metavar="URL",
    envvar="TRAINMARK_WEBHOOK",
    help="Post every certain change of level to this address.",
)
@click.option("--title", default="Trainmark", show_default=True, help="The name on the pages.")
def serve_command(
    database: str | None,
    data: Path | None,
    host: str,
    port: int,
    public: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    proxies: tuple[str, ...],
    allowed_signers: Path | None,
    largest: int,
    workers: int,
    requests: int,
    pushes: int,
    webhook: str | None,
    title: str,
) -> None:
    """Serve the results of a team: pages, a JSON API, and the place that `trainmark push` sends runs to.

    Every figure is computed again from the events of what is pushed; what does not follow is refused. Nobody
    can read or push without a token: make one with `trainmark server token create`.

    \b
    Examples:
      trainmark serve
      trainmark serve --database postgresql://trainmark@db/trainmark --proxy 127.0.0.1
      trainmark serve --host 0.0.0.0 --port 443 --tls-cert chain.pem --tls-key key.pem
    """
    settings = settings_of(
        data,
        database,
        public=public,
        secure=bool(tls_cert or proxies),
        proxies=proxies,
        allowed_signers=allowed_signers.absolute() if allowed_signers else None,
        largest_pack_bytes=largest * MEBIBYTE,
        requests_per_minute=requests,
        pushes_per_minute=pushes,
        webhook=webhook,
        title=title,
    )
    from trainmark.server.serve import ListenOptions, serve

    def ready(url: str, has_token: bool) -> None:
        click.echo(f"Serving {url} from {settings.data}")
        if not has_token:
            click.echo("There is no token yet: trainmark server token create NAME --role admin")

    serve(settings, ListenOptions(host, port, tls_cert, tls_key, workers), ready)


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PACKED = ".trainmark"


@click.command("push")
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--to", metavar="URL", envvar="TRAINMARK_SERVER", help="The server, as https://HOST.")
@click.option(
    "--token-file", type=EXISTING_FILE, help="By default $TRAINMARK_TOKEN, or `token` in Trainmark's home."
)
@click.option("--key", type=EXISTING_FILE, help="Sign with this SSH key.")
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
    from trainmark.store.archive import pack
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
