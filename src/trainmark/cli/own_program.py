"""What `run`, `init`, `explain` and `bisect` take as a program: the words behind `--`, a script, a module."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from trainmark.suite.program import SHELLS, STARTERS, no_script, python_beside, refuse_as_suite


class RunCommand(click.Command):
    """A command whose words behind `--` are another program's, whatever they look like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, program = list(args), list[str]()
        if "--" in args:
            at = args.index("--")
            own, program = args[:at], args[at + 1 :]
            if not program:
                raise click.UsageError(
                    f"nothing stands behind `--`; write trainmark {self.name} -- python train.py."
                )
        elif at := _program_without_dashes(own):
            line = shlex.join([*own[: at - 1], "--", *own[at - 1 :]])
            raise click.UsageError(
                f"did you mean `trainmark {self.name} {line}`? A program stands behind `--`."
            )
        ctx.meta["program"] = program
        try:
            return super().parse_args(ctx, list(own))
        except click.UsageError as error:
            foreign = ""
            if isinstance(error, click.NoSuchOption):
                foreign = f"{error.option_name} is no option of trainmark; "
            script = next((word for word in own if word.endswith(".py")), None)
            if script is None or not (foreign or "unexpected extra" in error.message):
                raise
            rest = shlex.join(own[own.index(script) + 1 :])
            raise click.UsageError(
                f"{foreign}what is meant for the program stands behind `--`: "
                f"trainmark {self.name} -- python {script} {rest}"
            ) from error


def _program_without_dashes(words: Sequence[str]) -> int:
    """The place, counted from 1, of what starts a program and is no option's value; 0 where there is none."""
    for at, (word, after) in enumerate(pairwise(words), 1):
        is_value = at > 1 and words[at - 2].startswith("-")
        starts = STARTERS.fullmatch(word) or SHELLS.fullmatch(word)
        if starts and not is_value and (after in ("-m", "-c", "-u") or not after.startswith("-")):
            return at
    return 0


def step_count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    """Parse `auto`, `all`, or a number of steps."""
    if value in ("auto", "all", None):
        return value
    if value.isdecimal() and 0 < int(value) < 10**9:
        return int(value)
    raise click.BadParameter(f"'{value}' is neither auto, all nor a number of steps.", ctx, param)


PROGRAM_OPTIONS = (
    click.option(
        "--steps", callback=step_count, metavar="N|auto|all",
        help="Of a program: end it after its warm-up and N steps.",
    ),
    click.option("--warmup", type=click.IntRange(0), help="Of a program: steps to leave out. [default: 10]"),
    click.option("--samples-per-step", type=float, help="Of a program: samples of all ranks in a step."),
    click.option("--unit", help="Of a program: what its samples are, such as tokens."),
    click.option("--pattern", metavar="REGEX", help="Of a program: the line that it prints for a step."),
)  # fmt: skip
OF_PROGRAMS = ("steps", "warmup", "samples_per_step", "unit", "pattern")


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a program is measured."""
    for option in reversed(PROGRAM_OPTIONS):
        command = option(command)
    return command


def taken_program_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take these options out of all options of a command."""
    return {name: options.pop(name) for name in OF_PROGRAMS}


def refuse_program_options(given: Mapping[str, Any], instead: str) -> None:
    """Refuse what says how a program is measured where there is none."""
    if only := [name for name, value in given.items() if value is not None]:
        raise click.UsageError(f"--{only[0].replace('_', '-')} is for a program; {instead}.")


def program_words(behind: Sequence[str], suite: str, module: str | None) -> list[str]:
    """Return the program's command line: what stands behind `--`, a script, a module; empty for a suite."""
    is_script = suite.endswith(".py")
    if module is not None or is_script:
        if module is not None and suite:
            raise click.UsageError("name a module with -m or a suite, not both.")
        if is_script and not Path(suite).is_file():
            raise no_script(suite)
        return [python_beside(), *(["-m", module] if module is not None else [suite]), *behind]
    if behind and suite:
        raise click.UsageError(
            f"'{suite}' stands before `--`, where a suite would, and a program behind it; name one of them."
        )
    refuse_as_suite(suite)
    return list(behind)
