"""MLflow's file store: one experiment for the run, one MLflow run per trial, metrics per step.

The layout is `mlruns/EXPERIMENT/RUN/{meta.yaml, params/, metrics/, tags/}`; a metric's file has one line
`<milliseconds> <value> <step>` per point.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from trainmark.pages.export.source import ExportedRun, Measured, Skipped, plain
from trainmark.pages.export.tensorboard import scalars
from trainmark.store.trial import TrialRecord

# Of MLflow's RunStatus and SourceType.
FINISHED, FAILED = 3, 4
LOCAL = 4
EXPERIMENT_DIGITS = 18


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    info = source.info
    experiment = _experiment_id(info.name, info.created)
    place = folder / "mlruns" / experiment
    place.mkdir(parents=True)
    created = _milliseconds(info.created)
    _meta(
        place,
        {
            "artifact_location": f"mlruns/{experiment}",
            "creation_time": created,
            "experiment_id": experiment,
            "last_update_time": created,
            "lifecycle_stage": "active",
            "name": plain(info.name),
        },
    )
    measured = {(trial.record.spec.case, trial.record.spec.repeat): trial for trial in source.measured}
    for record in source.records:
        trial = measured.get((record.spec.case, record.spec.repeat))
        _write_run(place, experiment, source, record, trial)
    return ()


def _write_run(
    experiment_place: Path, experiment: str, source: ExportedRun, record: TrialRecord, trial: Measured | None
) -> None:
    name = f"{plain(record.spec.case)}/{record.spec.repeat:02d}"
    run_id = _digest(f"{experiment}/{name}")[:32]
    place = experiment_place / run_id
    for part in ("params", "metrics", "tags", "artifacts"):
        (place / part).mkdir(parents=True)
    _meta(
        place,
        {
            "artifact_uri": f"mlruns/{experiment}/{run_id}/artifacts",
            "end_time": _milliseconds(record.started + record.seconds),
            "entry_point_name": "",
            "experiment_id": experiment,
            "lifecycle_stage": "active",
            "run_id": run_id,
            "run_name": name,
            "run_uuid": run_id,
            "source_name": "",
            "source_type": LOCAL,
            "source_version": "",
            "start_time": _milliseconds(record.started),
            "status": FINISHED if record.figure else FAILED,
            "tags": [],
            "user_id": plain(source.submitter),
        },
    )
    _write_values(place / "params", {**asdict(record.key), "command": record.spec.command})
    doubts = ",".join(doubt.code.value for doubt in record.figure.doubts) if record.figure else ""
    _write_values(
        place / "tags",
        {
            "mlflow.runName": name,
            "mlflow.user": source.submitter,
            "trainmark.run": source.info.name,
            "trainmark.outcome": record.outcome,
            "trainmark.detail": record.detail or None,
            "trainmark.doubts": doubts or None,
            "trainmark.environment": record.environment,
        },
    )
    for metric, points in _metrics(record, trial).items():
        text = "".join(f"{_milliseconds(wall)} {value!r} {step}\n" for wall, value, step in points)
        (place / "metrics" / metric).write_text(text, encoding="utf-8")


def _metrics(record: TrialRecord, trial: Measured | None) -> dict[str, list[tuple[float, float, int]]]:
    """The steps' scalars, and the trial's figure under a name of its own."""
    metrics: dict[str, list[tuple[float, float, int]]] = {}
    for row in trial.steps.rows if trial else ():
        for name, value in scalars(row).items():
            metrics.setdefault(name, []).append((row.wall, value, row.number))
    if figure := record.figure:
        end = record.started + record.seconds
        interval = figure.interval
        figures = {
            "trial_throughput": figure.throughput,
            "trial_throughput_low": interval.low if interval else None,
            "trial_throughput_high": interval.high if interval else None,
        }
        metrics |= {name: [(end, value, 0)] for name, value in figures.items() if value is not None}
    return metrics


def _write_values(place: Path, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is not None:
            (place / name).write_text(plain(value), encoding="utf-8")


def _meta(place: Path, values: Mapping[str, Any]) -> None:
    (place / "meta.yaml").write_text(yaml.safe_dump(dict(values), allow_unicode=True), encoding="utf-8")


def _experiment_id(name: str, created: float) -> str:
    """MLflow asks for digits; the same run gets the same ones, another run others."""
    return str(int(_digest(f"{name}@{created}"), 16))[:EXPERIMENT_DIGITS]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
