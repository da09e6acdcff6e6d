"""NVIDIA's DLLogger: what its standard-output and its JSON backend would have written, per trial."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any

from trainmark.pages.export.source import ExportedRun, Measured, Skipped, plain
from trainmark.pages.export.steps import StepRow
from trainmark.workloads import registry

# The names and the digits of NVIDIA's trainers of convolutional networks.
LOSS, RATE, LEARNING_RATE = "train.loss", "train.total_ips", "lr"
AMP = {"fp32": False, "amp": True}
DIGITS = {LOSS: ".5f", RATE: ".2f"}


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    for trial in source.measured:
        place = folder / trial.case
        place.mkdir(exist_ok=True)
        (place / f"{trial.repeat}.log").write_text("".join(text_lines(trial)), encoding="utf-8")
        (place / f"{trial.repeat}.json").write_text("".join(json_lines(trial)), encoding="utf-8")
    return source.skipped


def text_lines(trial: Measured) -> Iterator[str]:
    """`DLL <date> - Epoch: 0 Iteration: n  train.loss : …  train.total_ips : … img/s`."""
    unit = rate_unit(trial)
    yield text_line(trial.steps.start, "PARAMETER", parameters(trial), unit)
    for iteration, row in enumerate(trial.steps.rows, 1):
        yield text_line(row.wall, f"Epoch: 0 Iteration: {iteration} ", step_metrics(row), unit)
    yield text_line(trial.steps.end, "Summary:", summary(trial), unit)


def json_lines(trial: Measured) -> Iterator[str]:
    """`DLLL {…}`, one object a line; the metrics' units are told first."""
    start = trial.steps.start
    yield _json_line(start, {"type": "LOG", "step": "PARAMETER", "data": parameters(trial)})
    for metric, metadata in ((LOSS, {"type": "LOSS"}), (RATE, {"unit": rate_unit(trial)})):
        yield _json_line(start, {"type": "METADATA", "metric": metric, "metadata": metadata})
    for iteration, row in enumerate(trial.steps.rows, 1):
        metrics = _finite(step_metrics(row))
        yield _json_line(row.wall, {"type": "LOG", "step": [0, iteration], "data": metrics})
    yield _json_line(trial.steps.end, {"type": "LOG", "step": [], "data": _finite(summary(trial))})


def rate_unit(trial: Measured) -> str:
    return f"{plain(registry.short_unit(trial.figure.unit))}/s"


def parameters(trial: Measured) -> dict[str, Any]:
    """The key under the names that NVIDIA's trainer has for its parts, the rest under our own."""
    key = trial.record.key.values()
    theirs = {
        "arch": key.pop("workload"),
        "batch_size": key.pop("batch_per_device"),
        "memory_format": key.pop("layout"),
        "amp": AMP.get(key["precision"]),
        "dynamic_loss_scale": True if key["loss_scale"] == "dynamic" else None,
    }
    values = {**theirs, **key, "world_size": trial.figure.world_size, "prof": len(trial.steps.rows)}
    return {name: value for name, value in values.items() if value is not None}


def step_metrics(row: StepRow) -> dict[str, float | None]:
    return {LOSS: row.loss, RATE: row.rate, LEARNING_RATE: row.lr}


def summary(trial: Measured) -> dict[str, float | None]:
    """Over the steady window: theirs averages from the first iteration on, so that ours is the higher one."""
    return {LOSS: trial.figure.loss_last, RATE: trial.figure.throughput}


def text_line(wall: float, step: str, values: Mapping[str, Any], unit: str) -> str:
    known = ((name, value) for name, value in values.items() if value is not None)
    shown = " ".join(
        f"{plain(name)} : {_shown(name, value)} {unit if name == RATE else ''}" for name, value in known
    )
    return f"DLL {timestamp(wall)} - {step} {shown}\n"


def timestamp(wall: float) -> str:
    """`2020-12-16 11:32:20.234886`, in UTC."""
    return datetime.fromtimestamp(wall, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def _shown(name: str, value: Any) -> str:
    return format(value, DIGITS[name]) if name in DIGITS else plain(value)


def _finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """JSON knows neither NaN nor infinity."""
    return {name: value for name, value in values.items() if value is not None and isfinite(value)}


def _json_line(wall: float, fields: Mapping[str, Any]) -> str:
    stamp = {"timestamp": f"{wall:.6f}", "datetime": f"{timestamp(wall)}+00:00"}
    return f"DLLL {json.dumps({**stamp, **fields})}\n"
