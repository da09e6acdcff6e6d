"""A program of one's own as a suite: its command line, its variants, and what is refused."""

from __future__ import annotations

import difflib
import itertools
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trainmark.base.errors import UserError
from trainmark.base.yaml_source import UNUSABLE

PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
# Those of Python that take no value: what follows them is the script.
PYTHON_FLAGS = re.compile(r"-[bBdEiIOPqsSuvx]+")
RANK_STARTERS = ("torchrun", "accelerate", "deepspeed")
PROGRAMS = ("python", "python3", *RANK_STARTERS, "mpirun", "bash")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def no_program(word: str) -> UserError:
    """Say why this cannot be started, and what can."""
    path = Path(word)
    if path.suffix == ".ipynb":
        return _notebook(word)
    if path.is_file():
        starter = "python" if path.suffix == ".py" else "bash"
        return UserError(f"'{word}' is a file that does not start by this name; write `{starter} {word}`.")
    near = _near(word, PROGRAMS, "; a command line starts with a program.")
    return UserError(f"there is no program '{word}' here{near}")


def no_script(script: str) -> UserError:
    path = Path(script)
    beside = sorted(each.name for each in path.parent.glob("*.py"))
    return UserError(f"there is no script {script}{_near(path.name, beside, '.')}")


def require_script(words: Sequence[str]) -> None:
    """Refuse a Python script that is not there and a notebook, which Python takes for an expression."""
    script = _script_of(words)
    if script is None:
        return
    if script.endswith(".ipynb"):
        raise _notebook(script)
    if not Path(script).exists():
        raise no_script(script)


def refuse_as_suite(name: str) -> None:
    """Refuse a notebook and a shell script where a suite would stand."""
    path = Path(name)
    if path.suffix == ".ipynb":
        raise _notebook(name)
    if path.is_file() and (path.suffix in (".sh", ".bash") or _has_shebang(path)):
        raise UserError(
            f"{name} is no suite but a program; did you mean `trainmark run -- {_start_of(path)}`?"
        )


def _script_of(words: Sequence[str]) -> str | None:
    """The script of a line that starts with Python or a starter of ranks; None where that is not certain."""
    line = list(words)
    if line[0] == "env":
        line = list(itertools.dropwhile(ASSIGNMENT.match, line[1:]))
    first, rest = (line[0], line[1:]) if line else ("", [])
    if Path(first).name in RANK_STARTERS and not {"-m", "--module"} & set(rest):
        return next((word for word in rest if word.endswith(".py")), None)
    if not PYTHON.fullmatch(first):
        return None
    script = next(itertools.dropwhile(PYTHON_FLAGS.fullmatch, rest), "-")
    return None if script.startswith("-") else script


def _start_of(path: Path) -> str:
    at_once = str(path) if "/" in str(path) else f"./{path}"
    return at_once if os.access(path, os.X_OK) else f"bash {path}"


def _has_shebang(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _near(word: str, known: Sequence[str], otherwise: str) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else otherwise


def _notebook(name: str) -> UserError:
    return UserError(
        f"{name} is a notebook, which no program runs; make a script of it first: "
        f"jupyter nbconvert --to script {name}."
    )


# What starts another program: the name of the case is that of the script behind it.
STARTERS = re.compile(
    r"(?:.*/)?(?:env|nice|taskset|numactl|time|python[\d.]*|torchrun|accelerate|deepspeed|mpirun|uv|poetry|conda)"
)
SHELLS = re.compile(r"(?:.*/)?(?:(?:ba|da|k|z)?sh|nohup|setsid|timeout)")
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
WARMUP_STEPS = 10
REPEATS = 6  # the fewest with a 95 % interval


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


MOST_COMMANDS = 16
FEWEST_REPEATS = 6  # the fewest pairs that make a ratio certain
MOST_REPEATS = 20
LONGEST_NAME = 40
NOT_IN_A_CASE = re.compile(r"[^a-z0-9.]+")


def variants(words: Sequence[str], against: Sequence[str], vary: Sequence[str]) -> dict[str, list[str]]:
    """Return the command lines by the names of their cases, the baseline first."""
    if against and vary:
        raise UserError("name other commands with --against or values with --vary, not both.")
    if against:
        others = [_split(text) for text in against]
        lines = [list(words), *others]
        names = [name_of(line) + _telling(line, words) for line in lines]
    else:
        lines, endings = _varied(words, [_values(text) for text in vary])
        names = [name_of(words) + ending for ending in endings]
    if len(lines) > MOST_COMMANDS:
        raise UserError(f"more than {MOST_COMMANDS} commands are too many for one run.")
    if len(lines) < 2:
        raise UserError("--vary has one value only; name two or more to compare.")
    if repeated := next((line for line in lines if lines.count(line) > 1), None):
        raise UserError(f"`{shlex.join(repeated)}` is given twice; nothing would be compared.")
    return dict(zip(_distinct(names), lines, strict=True))


def variants_suite(lines: Mapping[str, Sequence[str]], settings: Mapping[str, Any]) -> str:
    """Return the YAML of a suite that compares these commands until it is certain."""
    first = next(iter(lines))
    suite = yaml.safe_load(program_suite(lines[first], settings))
    del suite["workload"]
    suite["repeats"] = {"min": FEWEST_REPEATS, "max": MOST_REPEATS}
    suite["baseline"] = first
    suite["cases"] = [{"workload": program_workload(line, settings, name)} for name, line in lines.items()]
    return yaml.safe_dump(suite, sort_keys=False, allow_unicode=True, width=1000)


def _split(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--against {text!r}: {error}.") from error
    if not words:
        raise UserError("--against is empty; give it a command line in quotes.")
    # As a shell has it: variables stand before the program.
    return ["env", *words] if ASSIGNMENT.match(words[0]) else words


def _values(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    name, listed = name.lstrip("-"), values.split(",")
    if not equals or not name or not all(listed):
        raise UserError(f"--vary {text} names no values; write NAME=VALUE,VALUE as in --vary lr=0.1,0.2.")
    return name, listed


def _varied(
    words: Sequence[str], axes: Sequence[tuple[str, Sequence[str]]]
) -> tuple[list[list[str]], list[str]]:
    """Return a command line for each combination of values, and how its name ends."""
    names = [name for name, _ in axes]
    if math.prod(len(values) for _, values in axes) > MOST_COMMANDS:
        raise UserError(f"--vary makes more than {MOST_COMMANDS} commands; narrow the values.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"--vary names {twice} twice; write its values behind one another: {twice}=A,B.")
    lines, endings = [], []
    for chosen in itertools.product(*(values for _, values in axes)):
        line = list(words)
        for name, value in zip(names, chosen, strict=True):
            place = f"{{{name}}}"
            line = (
                [word.replace(place, value) for word in line]
                if any(place in word for word in words)
                else [*line, f"--{name}", value]
            )
        lines.append(line)
        endings.append("".join(f"-{name}{value}" for name, value in zip(names, chosen, strict=True)))
    return lines, endings


def _telling(line: Sequence[str], baseline: Sequence[str]) -> str:
    """Return what a command has that the baseline has not, a value behind its option."""
    ending, option = "", ""
    for word in line:
        is_option, bare = word.startswith("-"), word.lstrip("-")
        if word not in ("", "env", *baseline) and name_of([word]) != name_of(line):
            behind = "" if is_option else option
            ending += bare if behind and ending.endswith(f"-{behind}") else f"-{behind}{bare}"
        option = bare if is_option else ""
    return ending


def _distinct(names: Sequence[str]) -> list[str]:
    """Shorten names to what can stand in a folder name, and tell equal ones apart by a number."""
    chosen: list[str] = []
    for name in names:
        plain = NOT_IN_A_CASE.sub("-", name.lower()).strip("-.")[:LONGEST_NAME]
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        chosen.append(plain if plain not in chosen else next(each for each in numbered if each not in chosen))
    return chosen
