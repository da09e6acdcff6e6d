"""What every export is written from: a run, its trials, and their steps where they were measured."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainmark.base.text import one_line
from trainmark.events.stream import StreamError
from trainmark.measure.comparison import ResultComparison
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.trace import TraceError
from trainmark.pages.export.steps import Steps, read_steps
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord

# A trial that was left out, and why.
Skipped = tuple[str, str]


@dataclass(frozen=True)
class Measured:
    """A trial that has a figure and the events it was taken from."""

    case: str
    """Safe as the name of a folder, and no other case's."""
    record: TrialRecord
    figure: TrialFigure
    steps: Steps

    @property
    def repeat(self) -> str:
        return f"{self.record.spec.repeat:02d}"

    @property
    def name(self) -> str:
        return f"{self.case}/{self.repeat}"


@dataclass(frozen=True)
class ExportedRun:
    """`skipped` names the trials that have no figure or no readable events, each with the reason."""

    info: RunInfo
    environment: Mapping[str, Any]
    submitter: str
    records: tuple[TrialRecord, ...]
    measured: tuple[Measured, ...]
    skipped: tuple[Skipped, ...]
    slower: Mapping[Key, ResultComparison] = field(default_factory=dict)
    """Cases slower than in the baseline, surely or but for doubts, by their key in this run."""

    def fact(self, *path: str) -> Any:
        """One fact of the environment, None where it is not known: `fact("host", "cpu", "model")`."""
        value: Any = self.environment
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def load_run(run: RunFolder, submitter: str) -> ExportedRun:
    measured: list[Measured] = []
    skipped: list[Skipped] = []
    records = run.records()
    cases = _case_names(record.spec.case for record in records)
    for record in records:
        folder = run.trial(record.spec.case, record.spec.repeat).done
        case = cases[record.spec.case]
        if record.figure is None:
            skipped.append((f"{case}/{folder.name}", record.outcome))
            continue
        try:
            steps = read_steps(sorted((folder / "events").glob("rank*.jsonl")), record.started)
        except (TraceError, StreamError, OSError) as error:
            skipped.append((f"{case}/{folder.name}", f"no readable events: {error}"))
            continue
        if len(steps.rows) < record.figure.window.stop:
            skipped.append((f"{case}/{folder.name}", "its events do not hold all steps of its figure"))
            continue
        measured.append(Measured(case, record, record.figure, steps))
    info, environment = run.info, run.environment
    return ExportedRun(info, environment, submitter, tuple(records), tuple(measured), tuple(skipped))


def _case_names(cases: Iterable[str]) -> dict[str, str]:
    taken: set[str] = set()
    return {case: untaken(safe_name(case), taken) for case in dict.fromkeys(cases)}


def without_topology(key: Key) -> Key:
    return replace(key, nodes=1, devices_per_node=1)


def series(trials: Iterable[Measured]) -> dict[Key, list[Measured]]:
    groups: dict[Key, list[Measured]] = {}
    for trial in trials:
        groups.setdefault(without_topology(trial.record.key), []).append(trial)
    return groups


def by_topology(trials: Iterable[Measured]) -> dict[str, list[Measured]]:
    """Fewest devices first, and of equal ones the fewest nodes."""
    groups: dict[str, list[Measured]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.record.key.devices, trial.record.key.nodes)):
        groups.setdefault(trial.record.key.topology, []).append(trial)
    return groups


def median_trial(trials: Sequence[Measured]) -> Measured:
    """That of the median time to train where all have one, else of the median throughput; the lower one."""
    finishes = [trial.figure.finish for trial in trials]
    times = [finish.time2train for finish in finishes if finish and finish.time2train is not None]
    figures = times if len(times) == len(trials) else [trial.figure.throughput for trial in trials]
    return trials[figures.index(statistics.median_low(figures))]


LONGEST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def safe_name(text: object) -> str:
    """One path component: no separator, no control character, not hidden, never empty."""
    return _UNSAFE.sub("-", str(text)).strip(".-")[:LONGEST] or "unnamed"


def untaken(name: str, taken: set[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is not taken yet; takes it."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free


def plain(value: object) -> str:
    """A value as text that stays on its line."""
    return one_line(str(value))
