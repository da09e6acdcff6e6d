"""`trainmark examples`: the examples of the pages, listed and written where they can be run."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.errors import UserError, nearest

ALL = "all"
EXAMPLES = {
    "untouched": "a PyTorch trainer that knows nothing of Trainmark",
    "probe": "a numpy trainer that calls the probe",
    "command": "an awk program, measured by the lines that it prints",
    "friedman": "a workload family of one's own, in two frameworks",
    "bisect": "a recurrent net in JAX that versions of JAX run at different speeds",
    "explain": "four convolutions in JAX whose step versions of JAX spend differently",
    "reading": "a log and the format of one's own that reads it",
    "cluster": "a hostfile and an inventory",
}


@click.command("examples", short_help="List the examples, or write them into a folder.")
@click.argument("names", nargs=-1, metavar="[NAME|all]...")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("examples"),
    show_default=True,
    help="Write them into this folder.",
)
def examples_command(names: tuple[str, ...], folder: Path) -> int:
    """List the examples, or write each example NAME (or `all`) into a folder, to be run and changed.

    \b
    Examples:
      trainmark examples
      trainmark examples probe
      trainmark examples all --to /tmp/trainmark-examples
    """
    import shutil

    if not names:
        for name, about in EXAMPLES.items():
            click.echo(f"{name:<10} {about}")
        return 0
    wanted = list(EXAMPLES) if ALL in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in EXAMPLES:
            raise UserError(f"there is no example '{name}'{nearest(name, EXAMPLES)}")
        if (folder / name).exists():
            raise UserError(f"{folder / name} exists; choose another folder with --to.")
    source = examples_folder()
    for name in wanted:
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        click.echo(_how_to_run(folder / name))
    return 0


def _how_to_run(example: Path) -> str:
    """Return the line that runs an example, or its folder where there is nothing to run."""
    if (example / "suite.yaml").exists():
        return f"trainmark run {example / 'suite.yaml'}"
    script = example / "train.py"
    return f"trainmark run -- python {script}" if script.exists() else str(example)


def examples_folder() -> Path:
    """Return where the examples lie: inside the installed package, or at the root of a checkout."""
    package = Path(__file__).resolve().parents[2]
    places = (package / "examples", package.parents[1] / "examples")
    for place in places:
        if place.is_dir():
            return place
    raise UserError(f"the examples are missing from {places[0]}; install Trainmark again.")
