"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

runs_option = click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    envvar="TRAINMARK_RUNS",
    show_default=True,
    help="The folder that holds the runs.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
