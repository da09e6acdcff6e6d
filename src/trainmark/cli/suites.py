"""`trainmark init`, `suites` and `examples`: what can be run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.base.errors import UserError, nearest
from trainmark.cli.complete import complete_built_in_suite
from trainmark.cli.options import json_option, workload_option
from trainmark.cli.own_program import RunCommand, program_words
from trainmark.suite.program import name_of, program_suite, require_script


@click.group(
    "suites",
    invoke_without_command=True,
)
@json_option
@click.pass_context
def suites_command(context: click.Context, as_json: bool) -> int:
    """List the suites built in; `suites show NAME` prints one as a start for your own.

    \b
    Example:
      trainmark suites show quick > mine.yaml
    """
    if context.invoked_subcommand is not None:
        return 0
    from trainmark.suite.load import built_in_names, load

    suites = [load(name) for name in built_in_names()]
    if as_json:
        click.echo(
            json.dumps([{"name": s.name, "about": s.about, "cases": len(s.cases)} for s in suites], indent=2)
        )
        return 0
    for suite in suites:
        click.echo(f"{suite.name:<23} {suite.about}")
    return 0


@suites_command.command("recipes", short_help="List the recipes that a suite can train by.")
@workload_option
@json_option
def recipes_command(workload: str, as_json: bool) -> int:
    """List the recipes that a suite can train by: `recipe: NAME`, or `run --recipe NAME`.

    \b
    Example:
      trainmark suites recipes --json
      trainmark suites recipes --workload ./my_family
    """
    from dataclasses import asdict

    from trainmark.workloads import registry

    recipes = registry.find(workload).workload.recipes()
    if as_json:
        click.echo(json.dumps([asdict(recipe) for recipe in recipes], indent=2))
        return 0
    for recipe in recipes:
        click.echo(f"{recipe.name:<14} {recipe.about}")
    return 0


@suites_command.command("show")
@click.argument("name", shell_complete=complete_built_in_suite)
def show(name: str) -> int:
    """Print suite NAME as YAML.

    \b
    Example:
      trainmark suites show quick
    """
    from trainmark.suite.load import find, read_text

    click.echo(read_text(find(name)), nl=False)
    return 0


FILE = "trainmark.yaml"
SCRIPTS = ("train*.py", "main.py", "run*.py")
TEMPLATE = """\
# How fast does this program train? `trainmark run {file}` measures it; nothing in the program changes.
name: {name}
workload:
  name: {name}
  command: {command}
  reader: auto       # steps are seen by hooks in PyTorch, Keras or JAX, by the probe, or in a known log
  steps: auto        # end the program after enough steps for a figure; a number, or `all` for its own end
  # unit: tokens               # what a sample is called
  # samples_per_step: 16384    # of all ranks together; without it the data loader's batches are counted
  # pattern: '^step (?P<step>\\d+)'   # instead of hooks: each line that matches ends a step
warmup: {{steps: 10}}  # steps left out in any case; more where step times have not settled
repeats: 6           # fresh processes; {{min: 6, max: 20, until: ±0.5%}} goes on until the interval is narrow
# environment: {{OMP_NUM_THREADS: "8"}}
limits: {{trial: 24h, silence: 10m}}
# One run for each of several settings:
# cases:
#   - {{name: base}}
#   - {{name: eight-threads, environment: {{OMP_NUM_THREADS: "8"}}}}
"""


@click.command("init", cls=RunCommand)
@click.argument("script", default="", metavar="[SCRIPT.py | -- PROGRAM ...]")
@click.option("-m", "module", metavar="MODULE", help="The program is `python -m MODULE`.")
@click.option("--to", "file", default=FILE, show_default=True, help="Write the suite to this file.")
def init_command(script: str, module: str | None, file: str) -> int:
    """Write a suite with comments for your own program.

    Without a program it is the one training script in the current folder.

    \b
    Examples:
      trainmark init -- python train.py --lr 0.1
      trainmark init train.py --to suites/train.yaml
    """
    if script and not script.endswith(".py"):
        raise click.UsageError(f"'{script}' is no script; write trainmark init -- {script} …")
    words = program_words(click.get_current_context().meta["program"], script, module)
    words = words or program_words([], only_script(Path()), None)
    program_suite(words, {})  # refuses what `trainmark run` would refuse
    require_script(words)
    text = TEMPLATE.format(file=file, name=name_of(words), command=_quoted(words))
    path = Path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        raise UserError(f"{file} exists; remove it, or name another file with --to.") from error
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}.") from error
    click.echo(f"{path}\nnext: trainmark run {path}")
    return 0


def only_script(folder: Path) -> str:
    """Return the name of the training script in a folder; UserError where there is none, or several."""
    names = sorted({path.name for pattern in SCRIPTS for path in folder.glob(pattern)})
    if len(names) == 1:
        return names[0]
    seen = f"several could be meant ({', '.join(names[:5])})" if names else f"none is in {Path.cwd()}"
    raise UserError(f"name the program: trainmark init -- python train.py; {seen}.")


def _quoted(words: list[str]) -> str:
    """Return the line as YAML's single-quoted text."""
    import shlex

    return "'" + shlex.join(words).replace("'", "''") + "'"


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
    "plugin": "a package that adds a command with a page of its own",
}


@click.command("examples")
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
    package = Path(__file__).resolve().parents[1]
    places = (package / "examples", package.parents[1] / "examples")
    for place in places:
        if place.is_dir():
            return place
    raise UserError(f"the examples are missing from {places[0]}; install Trainmark again.")
