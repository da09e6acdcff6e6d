"""The user's own program on the command line of `trainmark run`, as a suite of one case."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import yaml

from trainmark.cli.run.refused import no_program, no_script, refuse_as_suite
from trainmark.errors import UserError
from trainmark.yaml_source import UNUSABLE

# What starts another program: the name of the case is that of the script behind it.
STARTERS = re.compile(
    r"(?:.*/)?(?:env|nice|taskset|numactl|time|python[\d.]*|torchrun|accelerate|deepspeed|mpirun|uv|poetry|conda)"
)
SHELLS = re.compile(r"(?:.*/)?(?:(?:ba|da|k|z)?sh|nohup|setsid|timeout)")
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
WARMUP_STEPS = 10
REPEATS = 6  # the fewest with a 95 % interval


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


def python_beside() -> str:
    """Return the Python that the user's shell starts: trainmark may live in an environment of its own."""
    return next((name for name in ("python", "python3") if shutil.which(name)), sys.executable)


def program_suite(words: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Return the YAML of a suite that watches this program; `settings` that are None are left out."""
    name = name_of(words)
    warmup = settings.get("warmup")
    suite: dict[str, Any] = {
        "name": name,
        "workload": program_workload(words, settings, name),
        "repeats": REPEATS,
        "warmup": {"steps": WARMUP_STEPS if warmup is None else warmup},
        "limits": {"trial": "24h"},
    }
    return yaml.safe_dump(suite, sort_keys=False, allow_unicode=True, width=1000)


def program_workload(words: Sequence[str], settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a program as a suite has it."""
    if shutil.which(words[0]) is None:
        raise no_program(words[0])
    workload = {"name": name, "command": shlex.join(words), "reader": "auto"}
    chosen = {key: settings.get(key) for key in ("unit", "samples_per_step", "pattern")}
    stored = [*words, *(value for value in chosen.values() if isinstance(value, str))]
    if unusable := next(filter(UNUSABLE.search, stored), None):
        raise UserError(
            f"the argument {unusable!a:.60} holds what is no character and cannot be stored with the run."
        )
    if chosen["unit"] and not chosen["samples_per_step"] and not chosen["pattern"]:
        raise UserError(
            f"how many {chosen['unit']} a step has cannot be seen from outside; say --samples-per-step."
        )
    try:
        re.compile(chosen["pattern"] or "")
    except (re.error, OverflowError) as error:
        raise UserError(f"--pattern {chosen['pattern']!r} is no regular expression: {error}.") from error
    workload |= {key: value for key, value in chosen.items() if value is not None}
    return {**workload, "steps": settings.get("steps") or "auto"}


def name_of(words: Sequence[str]) -> str:
    """Return a name for the case: the script's or the module's, else the program's."""
    scripts = [Path(word).stem for word in words if word.endswith(".py")]
    after_m = [words[at + 1].split(".")[-1] for at, word in enumerate(words[:-1]) if word == "-m"]
    programs = [
        Path(word).name for word in words if not word.startswith("-") and not STARTERS.fullmatch(word)
    ]
    chosen = next(iter([*scripts, *after_m, *programs, *words]))
    return NOT_IN_A_NAME.sub("-", chosen.lower()).strip("-")[:40] or "program"
