"""One trial on disk: `trials/CASE/01/` with its spec, environment, logs, events, samples and figure.

A trial is written in `.01.part/` and becomes `01/` by one rename once its figure is in it, so that what
has a plain number is finished. What was cut short or retried stays beside it under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.serial import figure_from_dict, figure_to_dict
from trainmark.store.files import StoreError, read_json, write_json

SPEC, FIGURE, ENVIRONMENT = "trial.json", "figure.json", "environment.json"
SAMPLES = "samples.jsonl"


@dataclass(frozen=True)
class TrialSpec:
    """What was asked for, written before anything starts."""

    case: str
    repeat: int
    command: str
    environment: dict[str, str]
    steps: int
    warmup_steps: int


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
        write_json(self.part / SPEC, asdict(spec))
        write_json(self.part / ENVIRONMENT, environment)

    def finish(self, record: TrialRecord) -> None:
        write_json(self.part / FIGURE, _record_to_dict(record))
        self.part.rename(self.done)

    def set_aside(self, folder: Path, reason: str) -> None:
        """Keeps an attempt that does not count as `01.crashed-1`, `01.interrupted-2`, …"""
        number = 1
        while (aside := self.done.with_name(f"{self.done.name}.{reason}-{number}")).exists():
            number += 1
        folder.rename(aside)


def read_trial(folder: Path) -> TrialRecord:
    again = "move its folder away, and `trainmark run --resume` measures it again."
    try:
        spec = TrialSpec(**read_json(folder / SPEC))
        found = read_json(folder / FIGURE)
        figure = found.pop("figure")
        return TrialRecord(
            spec=spec,
            key=Key(**found.pop("key")),
            retries=tuple(found.pop("retries")),
            figure=None if figure is None else figure_from_dict(figure),
            **found,
        )
    except StoreError as error:
        raise StoreError(f"{str(error).removesuffix('.')}; {again}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"{folder} does not hold a trial of this version ({error}); {again}") from error


def finished_trials(trials: Path) -> Iterator[Path]:
    """Finished trial folders in the order of case and repeat."""
    for case in sorted(trials.iterdir()) if trials.is_dir() else []:
        if case.is_dir():
            done = [folder for folder in case.iterdir() if folder.name.isdecimal()]
            yield from sorted(done, key=lambda folder: int(folder.name))


def _record_to_dict(record: TrialRecord) -> dict[str, Any]:
    return {
        "outcome": record.outcome,
        "detail": record.detail,
        "rank": record.rank,
        "node": record.node,
        "retries": list(record.retries),
        "started": record.started,
        "seconds": record.seconds,
        "environment": record.environment,
        "key": asdict(record.key),
        "figure": None if record.figure is None else figure_to_dict(record.figure),
    }
