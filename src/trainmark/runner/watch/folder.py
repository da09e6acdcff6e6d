"""A confirmation on disk: `runs/NAME/` with what is compared and the trials of both sides.

`watch.json` is written last, so that a folder without it was never one; both sides are run folders, and the
pairs are the trials of equal number in them: nothing else needs to survive a `kill -9`.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.base.text import natural_key
from trainmark.measure.ab import FactDifference
from trainmark.runner.watch.side import SideSpec, create_side
from trainmark.store.files import StoreError, decoded, read_object, write_json
from trainmark.store.run import SAFE_NAME, RunFolder, taken
from trainmark.store.trial import TrialRecord

WATCH, BEFORE, AFTER = "watch.json", "before", "after"


@dataclass(frozen=True)
class WatchPlan:
    """What is compared, and until when. `most_seconds` counts the time of the trials."""

    case: str
    before: SideSpec
    after: SideSpec
    matters: float
    error: float
    most_pairs: int
    most_seconds: float | None
    seed: int
    created: float
    differences: tuple[FactDifference, ...] = ()


@dataclass(frozen=True)
class Pair:
    number: int
    before: TrialRecord
    after: TrialRecord

    @property
    def throughputs(self) -> tuple[float, float] | None:
        """None where a trial failed."""
        if self.before.figure is None or self.after.figure is None:
            return None
        return self.before.figure.throughput, self.after.figure.throughput


class WatchFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.before, self.after = RunFolder(path / BEFORE), RunFolder(path / AFTER)

    @property
    def plan(self) -> WatchPlan:
        path = self.path / WATCH
        return decoded(WatchPlan, read_object(path), path)

    def extend(self, most_pairs: int | None, most_seconds: float | None) -> None:
        """Allow more pairs or time: the test may go on as long as one likes, and its error rate holds."""
        plan = self.plan
        changed = replace(
            plan,
            most_pairs=plan.most_pairs if most_pairs is None else most_pairs,
            most_seconds=plan.most_seconds if most_seconds is None else most_seconds,
        )
        if changed != plan:
            write_json(self.path / WATCH, typed_json.encode(changed))

    def locked(self) -> AbstractContextManager[object]:
        """One harness at a time."""
        stack = ExitStack()
        stack.enter_context(self.before.locked())
        stack.enter_context(self.after.locked())
        return stack

    def pairs(self) -> list[Pair]:
        """Return the pairs of which both trials ended."""
        sides = [
            {record.spec.repeat: record for record in run.records()} for run in (self.before, self.after)
        ]
        before, after = sides
        return [
            Pair(number, before[number], after[number]) for number in sorted(before.keys() & after.keys())
        ]

    @contextlib.contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Leave nothing of a watch that cannot begin."""
        try:
            yield
        except (UserError, OSError):
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def set_halves_aside(self) -> None:
        """Set a trial aside whose other half is missing: hours later it would not be taken side by side."""
        complete = {pair.number for pair in self.pairs()}
        for run in (self.before, self.after):
            for record in run.records():
                if record.spec.repeat not in complete:
                    place = run.trial(record.spec.case, record.spec.repeat)
                    place.set_aside(place.done, "interrupted")


def create_watch(
    place: Path, name: str, plan: WatchPlan, runs: Sequence[RunFolder], with_commits: bool
) -> WatchFolder:
    """Make the folder with the suites and the code of both runs (before, after)."""
    path = place / name
    if not SAFE_NAME.fullmatch(name) or name == "latest":
        raise StoreError(f"'{name}' cannot name a watch; use letters, digits, '.', '_', '+' and '-'.")
    if path.exists():
        raise taken(path, WATCH)
    path.mkdir(parents=True)
    folder = WatchFolder(path)
    with folder.removed_on_error():
        for side, spec, run in zip((BEFORE, AFTER), (plan.before, plan.after), runs, strict=True):
            create_side(spec, run, path / side, with_commits)
        write_json(path / WATCH, typed_json.encode(plan))
    return folder


def find_watch(name: str, runs: Path) -> WatchFolder:
    """Find a watch by path, by name below `runs`, or the latest one."""
    folders = [path for path in (runs.iterdir() if runs.is_dir() else ()) if (path / WATCH).is_file()]
    if name == "latest" and folders:
        return WatchFolder(
            max(folders, key=lambda path: (WatchFolder(path).plan.created, natural_key(path.name)))
        )
    for path in (Path(name), runs / name):
        if (path / WATCH).is_file():
            return WatchFolder(path)
    raise StoreError(f"there is no watch '{name}' in {runs} to go on with.")


def default_name() -> str:
    return f"watch-{time.strftime('%Y%m%d-%H%M%S')}"
