"""The user's own program on the command line of `trainmark run`, as a suite of one case."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from trainmark.errors import UserError

# What starts another program: the name of the case is that of the script behind it.
STARTERS = re.compile(
    r"(?:.*/)?(?:env|nice|taskset|numactl|time|python[\d.]*|torchrun|accelerate|deepspeed|mpirun|uv|poetry|conda)"
)
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
        ctx.meta["program"] = program
        try:
            return super().parse_args(ctx, list(own))
        except click.NoSuchOption as error:
            if script := next((word for word in own if word.endswith(".py")), None):
                rest = shlex.join(own[own.index(script) + 1 :])
                raise click.UsageError(
                    f"{error.option_name} is no option of trainmark; what is meant for the program stands "
                    f"behind `--`: trainmark {self.name} -- python {script} {rest}"
                ) from error
            raise


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
            raise UserError(f"there is no script {suite}.")
        return [python_beside(), *(["-m", module] if module is not None else [suite]), *behind]
    if behind and suite:
        raise click.UsageError(
            f"'{suite}' stands before `--`, where a suite would, and a program behind it; name one of them."
        )
    return list(behind)


def python_beside() -> str:
    """Return the Python that the user's shell starts: trainmark may live in an environment of its own."""
    return next((name for name in ("python", "python3") if shutil.which(name)), sys.executable)


def program_suite(words: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Return the YAML of a suite that watches this program; `settings` that are None are left out."""
    if shutil.which(words[0]) is None:
        raise UserError(f"there is no program '{words[0]}' here; the line behind `--` starts with a program.")
    name = name_of(words)
    workload = {"name": name, "command": shlex.join(words), "reader": "auto"}
    warmup = settings.get("warmup")
    chosen = {key: settings.get(key) for key in ("unit", "samples_per_step", "pattern")}
    if chosen["unit"] and not chosen["samples_per_step"] and not chosen["pattern"]:
        raise UserError(
            f"how many {chosen['unit']} a step has cannot be seen from outside; say --samples-per-step."
        )
    workload |= {key: value for key, value in chosen.items() if value is not None}
    workload["steps"] = settings.get("steps") or "auto"
    suite: dict[str, Any] = {
        "name": name,
        "workload": workload,
        "repeats": REPEATS,
        "warmup": {"steps": WARMUP_STEPS if warmup is None else warmup},
        "limits": {"trial": "24h"},
    }
    return yaml.safe_dump(suite, sort_keys=False, allow_unicode=True, width=1000)


def name_of(words: Sequence[str]) -> str:
    """Return a name for the case: the script's or the module's, else the program's."""
    scripts = [Path(word).stem for word in words if word.endswith(".py")]
    after_m = [words[at + 1].split(".")[-1] for at, word in enumerate(words[:-1]) if word == "-m"]
    programs = [
        Path(word).name for word in words if not word.startswith("-") and not STARTERS.fullmatch(word)
    ]
    chosen = next(iter([*scripts, *after_m, *programs, *words]))
    return NOT_IN_A_NAME.sub("-", chosen.lower()).strip("-")[:40] or "program"
