"""One item of a bisection made ready to run, and two of them measured side by side in a run of their own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from trainmark.base.errors import UserError
from trainmark.measure.bisection import MeasuredPairs
from trainmark.runner.pairs import PairSide, TrialPair, run_pairs, seconds_of, throughputs_of
from trainmark.runner.prepare import Prepared, prepare_text
from trainmark.runner.progress import RunDisplay
from trainmark.runner.run import new_run, opened_run
from trainmark.store.run import RUN, RunFolder
from trainmark.suite.model import Case, Command, fields_of
from trainmark.view.message import _

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


FAILURES_TO_SKIP = 2


class BisectionStoppedError(Exception):
    """The user stopped it; what was measured is safe."""


def measure_pairs(
    path: Path,
    first: BisectSubject,
    second: BisectSubject,
    origin: str | None,
    most: int,
    decided: Callable[[MeasuredPairs], bool],
    display: RunDisplay,
) -> list[TrialPair]:
    """Measure pairs until `decided`, or `most` of them; go on where a run in this folder was cut short.

    SkippedError where the second subject does not run, UserError where the first, the yardstick, does not.
    """
    prepared = prepare_text(suite_of(first, second, most), "bisect.yaml", origin or str(Path.cwd()))
    with closing(prepared):
        cases = [_planned_case(prepared, subject) for subject in (first, second)]
        run = _run_in(path, prepared)
        with opened_run(run, prepared, display) as (context, interrupts):
            run.mark_running()
            sides = PairSide(cases[0], context), PairSide(cases[1], context)
            for pairs in run_pairs(sides, prepared.plan.seed, most, interrupts):
                _refuse_failing(path, pairs, first, second)
                if len(pairs) >= most or decided(throughputs_of(pairs)):
                    break
            else:
                raise BisectionStoppedError
            if interrupts.stop_soon:
                raise BisectionStoppedError
            run.mark_ended(time.time())
    return pairs


def _run_in(path: Path, prepared: Prepared) -> RunFolder:
    if (path / RUN).is_file():
        return RunFolder(path)
    # A folder without the file that is written last was cut short while it was made.
    shutil.rmtree(path, ignore_errors=True)
    return new_run(prepared, path.parent, path.name, "trainmark bisect")


def _planned_case(prepared: Prepared, subject: BisectSubject) -> Case:
    for case in prepared.plan.cases:
        if case.label == label_of(subject.name):
            return case
    reasons = [
        skip.reason for skip in prepared.plan.skipped if skip.case.label in (label_of(subject.name), None)
    ]
    reason = "; ".join(reasons).rstrip(".")
    raise SkippedError(reason or _("it is not planned on this machine"))


def _refuse_failing(
    path: Path, pairs: Sequence[TrialPair], first: BisectSubject, second: BisectSubject
) -> None:
    """Give up on a side that fails more often than not: a single crash costs its pair alone."""
    for subject, trials in (
        (first, [pair.before for pair in pairs]),
        (second, [pair.after for pair in pairs]),
    ):
        failed = [record for record in trials if record.figure is None]
        if len(failed) < FAILURES_TO_SKIP or 2 * len(failed) <= len(trials):
            continue
        last = f"{failed[-1].outcome}: {failed[-1].detail}".rstrip(".: ")
        reason = _(
            "{failed} of {trials} trials failed ({reason})",
            failed=len(failed),
            trials=len(trials),
            reason=last,
        )
        if subject is first:
            raise UserError(f"{side_name(subject)} cannot be measured: {reason}; its logs are in {path}.")
        raise SkippedError(reason, 2 * len(pairs), seconds_of(pairs))
