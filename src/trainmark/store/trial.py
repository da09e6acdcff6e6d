"""One trial on disk: `trials/CASE/01/` with its spec, environment, logs, events, samples and figure.

A trial is written in `.01.part/` and becomes `01/` by one rename once its figure is in it, so that what
has a plain number is finished. What was cut short or retried stays beside it under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from trainmark.base import typed_json
from trainmark.base.secrets import scrub
from trainmark.base.text import natural_key
from trainmark.events.stream import upgraded_finish
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.store.files import StoreError, decoded, read_object, write_json

SPEC, FIGURE, ENVIRONMENT = "trial.json", "figure.json", "environment.json"
EVENTS, SAMPLES = "events", "samples.jsonl"
LATEST_TIME = 1e11


@dataclass(frozen=True)
class TrialSpec:
    """What was asked for, written before anything starts.

    With `key`, `started` and `fingerprint` (of the environment) the trial's record can be made again from its
    events; trials of version 0.1.0 have none of them.
    """

    case: str
    repeat: int
    command: str
    environment: dict[str, str]
    steps: int
    warmup_steps: int
    key: Key | None = None
    started: float | None = None
    fingerprint: str | None = None
    uuid: str | None = None
    """Which trial it is, wherever its folder is copied to; None before version 2 of the schema."""
    schema: int | None = None


@dataclass(frozen=True)
class TrialRecord:
    """What became of it. `retries` names the outcome of every earlier attempt."""

    spec: TrialSpec
    key: Key
    outcome: str
    detail: str
    rank: int | None
    retries: tuple[str, ...]
    started: float
    seconds: float
    environment: str
    figure: TrialFigure | None
    node: str | None = None
    """Where it failed, in a run over several machines."""


class TrialFolder:
    """Where one trial lives; `part` while it runs, `done` afterwards."""

    def __init__(self, case: Path, repeat: int) -> None:
        self.done = case / f"{repeat:02d}"
        self.part = case / f".{repeat:02d}.part"

    def begin(self, spec: TrialSpec, environment: Any) -> Path:
        self.part.mkdir(parents=True, exist_ok=True)  # there where a training goes on from its checkpoint
        self.describe(spec, environment)
        return self.part

    def describe(self, spec: TrialSpec, environment: Any) -> None:
        write_json(self.part / SPEC, typed_json.encode(spec))
        write_json(self.part / ENVIRONMENT, scrub(environment))

    def finish(self, record: TrialRecord) -> None:
        plain = typed_json.encode(record)
        del plain["spec"]
        write_json(self.part / FIGURE, plain)
        self.part.rename(self.done)

    def set_aside(self, folder: Path, reason: str) -> None:
        """Keeps an attempt that does not count as `01.crashed-1`, `01.interrupted-2`, …"""
        number = 1
        while (aside := self.done.with_name(f"{self.done.name}.{reason}-{number}")).exists():
            number += 1
        folder.rename(aside)


def read_spec(folder: Path) -> TrialSpec:
    path = folder / SPEC
    plain = read_object(path)
    spec = decoded(TrialSpec, plain, path)
    # The names lead to folders: they must not lead anywhere else.
    if (spec.case, spec.repeat) != (folder.parent.name, int(folder.name)):
        raise StoreError(f"{path} is damaged: it is of the trial {spec.case}/{spec.repeat:02d}.")
    return spec


def read_record(folder: Path, spec: TrialSpec) -> TrialRecord:
    path = folder / FIGURE
    record = decoded(TrialRecord, _upgraded(read_object(path)), path, spec=spec)
    figure = record.figure
    if figure is not None and not 0 < figure.throughput < inf:
        raise StoreError(f"{path} is damaged: a throughput of {figure.throughput} cannot be.")
    if figure is not None and not 0 <= figure.window.first < figure.window.stop:
        raise StoreError(f"{path} is damaged: its window is empty.")
    if (record.outcome == "ok") != (figure is not None):
        raise StoreError(f"{path} is damaged: {record.outcome!r:.40} as its outcome and its figure disagree.")
    if not (0 <= record.started < LATEST_TIME and 0 <= record.seconds < LATEST_TIME):
        raise StoreError(f"{path} is damaged: {record.started:g} and {record.seconds:g} are no times.")
    return record


def _upgraded(plain: dict[str, Any]) -> dict[str, Any]:
    """A training that version 0.1.0 measured has its samples and metrics under other names."""
    figure = plain.get("figure")
    finish = figure.get("finish") if isinstance(figure, dict) else None
    if not isinstance(figure, dict) or not isinstance(finish, dict):
        return plain
    return {**plain, "figure": {**figure, "finish": upgraded_finish(finish)}}


def finished_trials(trials: Path) -> Iterator[Path]:
    """Finished trial folders in the natural order of case and repeat."""
    cases = trials.iterdir() if trials.is_dir() else ()
    for case in sorted(cases, key=lambda folder: natural_key(folder.name)):
        if case.is_dir():
            done = [folder for folder in case.iterdir() if is_finished(folder)]
            yield from sorted(done, key=lambda folder: int(folder.name))


def is_finished(folder: Path) -> bool:
    return folder.name.isascii() and folder.name.isdecimal() and len(folder.name) < 10
