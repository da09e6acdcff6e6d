"""`trainmark serve`: a team's server for packed runs."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.server.options import place_options, settings_of

FILE = click.Path(dir_okay=False, path_type=Path)
MEBIBYTE = 1 << 20


@click.command("serve", short_help="Serve a team's results over time.")
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
    from trainmark.server.serve import Listening, serve

    def ready(url: str, has_token: bool) -> None:
        click.echo(f"Serving {url} from {settings.data}")
        if not has_token:
            click.echo("There is no token yet: trainmark server token create NAME --role admin")

    serve(settings, Listening(host, port, tls_cert, tls_key, workers), ready)
