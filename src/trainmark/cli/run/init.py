"""`trainmark init`: a commented suite for one's own program."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.run.program import RunCommand, name_of, program_suite, program_words
from trainmark.cli.run.refused import require_script
from trainmark.errors import UserError

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
