"""One item of a bisection made ready to run, and the suite that puts two of them side by side."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from trainmark.base.errors import UserError
from trainmark.suite.model import Case, Command, fields_of

SIDE = "TRAINMARK_BISECT"
NOT_IN_A_LABEL = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_LABEL = 60


class SkippedError(Exception):
    """An item that cannot be judged: it does not install, build or run. The message says why."""

    def __init__(self, reason: str, trials: int = 0, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trials, self.seconds = trials, seconds


@dataclass(frozen=True)
class BisectSubject:
    """What sets one side apart: its interpreter, its folder, its variables, or the case itself."""

    name: str
    case: Case
    python: Path | None = None
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class BisectSubjects(Protocol):
    """The items of a bisection. `names` go from good to bad, or name the differences."""

    kind: str
    subject: str
    names: tuple[str, ...]

    def prepare(self, items: tuple[int, ...]) -> BisectSubject:
        """Make an item, or a set of differences, ready to run; SkippedError where that fails."""

    def release(self, used: set[int]) -> None:
        """Give back what was made for items that are not in use any more."""

    def notes(self, culprit: int, previous: int) -> tuple[str, ...]:
        """Return what else is known of the culprit."""


def sided_case(subject: BisectSubject) -> Case:
    """Return the case as this subject runs it; its label tells it from the other side's."""
    case = subject.case
    environment = {**dict(case.environment), **subject.environment, SIDE: label_of(subject.name)}
    command = case.workload if isinstance(case.workload, Command) else None
    if subject.python is not None:
        case = replace(case, python=str(subject.python))
        if command is not None:
            # The program may call `python` or a script that the package brings.
            folder = subject.python.parent
            environment["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
            environment["VIRTUAL_ENV"] = str(folder.parent)
    if subject.folder is not None:
        assert command is not None, "commits are bisected by a program"
        moved = replace(command, line=f"cd {shlex.quote(str(subject.folder))} && {command.line}")
        case = replace(case, workload=moved)
    return replace(case, label=label_of(subject.name), environment=tuple(environment.items()))


def side_name(subject: BisectSubject) -> str:
    """Return the name for a sentence: a whole side of a bisection of settings is called good or bad."""
    return f"the {subject.name} side" if subject.name in ("good", "bad") else subject.name


def label_of(name: str) -> str:
    return NOT_IN_A_LABEL.sub("-", name).strip("-._")[:LONGEST_LABEL] or "side"


def suite_of(first: BisectSubject, second: BisectSubject, most: int) -> str:
    """Return a suite of two cases, every setting written out, for at most so many pairs."""
    sides = [sided_case(subject) for subject in (first, second)]
    if sides[0].label == sides[1].label:
        raise UserError(f"'{first.name}' and '{second.name}' cannot be told apart in a folder name.")
    written = [_fields(case, most) for case in sides]
    about = f"{first.name} beside {second.name}."
    return yaml.safe_dump(
        {"name": "bisect", "about": about, "cases": written}, sort_keys=False, allow_unicode=True, width=1000
    )


def _fields(case: Case, most: int) -> dict[str, Any]:
    fields = fields_of(case, most)
    if isinstance(case.workload, Command):
        command = asdict(case.workload)
        command["command"] = command.pop("line")
        fields["workload"] = {name: value for name, value in command.items() if value is not None}
    return fields
