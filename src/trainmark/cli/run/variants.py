"""Several command lines of one program, each a case of its own, compared with the first."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click
import yaml

from trainmark.cli.run.program import name_of, program_suite, program_workload
from trainmark.errors import UserError

MOST_COMMANDS = 16
FEWEST_REPEATS = 6  # the fewest pairs that make a ratio certain
MOST_REPEATS = 20
LONGEST_NAME = 40
NOT_IN_A_CASE = re.compile(r"[^a-z0-9.]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def variants(words: Sequence[str], against: Sequence[str], vary: Sequence[str]) -> dict[str, list[str]]:
    """Return the command lines by the names of their cases, the baseline first."""
    if against and vary:
        raise click.UsageError("name other commands with --against or values with --vary, not both.")
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
