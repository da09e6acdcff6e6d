"""A folder as DLPerf's extraction script for NVIDIA's PyTorch ResNet-50 expects it, one per series.

That script forgets iterations up to 5, then takes the times of the W-th and of the T-th line it kept and
calls `batch × (T - W) / time` the speed. The lines are numbered so that the W-th one ends just before our
steady window: with W and T from `trainmark.json`, theirs measures what ours did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.measure.key import Key
from trainmark.pages.export.dllogger import LOSS, RATE, parameters, rate_unit, text_line
from trainmark.pages.export.source import (
    ExportedRun,
    Measured,
    Skipped,
    by_topology,
    safe_name,
    series,
    untaken,
)
from trainmark.workloads import registry

FORGOTTEN_ITERATIONS = 5
USUAL_WARMUP = 20


@dataclass(frozen=True)
class Rule:
    """What their script is to be called with: `--warmup_batches` and `--train_batches`."""

    warmup: int
    train: int


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    skipped = list(source.skipped)
    taken: set[str] = set()
    for key, trials in series(source.measured).items():
        fit = []
        for trial in trials:
            if reason := _unfit(trial):
                skipped.append((trial.name, reason))
            else:
                fit.append(trial)
        if fit:
            name = safe_name(f"{key.framework or 'command'}_{_stem(key, _batch(fit[0]))}")
            _write_series(folder / untaken(name, taken), key, fit)
    return skipped


def _unfit(trial: Measured) -> str | None:
    window, rows = trial.figure.window, trial.steps.rows
    batches = {row.samples for row in rows[window.first : window.stop]}
    if len(batches) != 1 or _batch(trial) != int(_batch(trial)):
        return "its steps do not all train on one whole number of samples a device, as DLPerf's rule assumes"
    return None if window.steps > 1 else "its window is a single step"


def _batch(trial: Measured) -> float:
    """Samples a step and device, as their rule reads them from the file's name."""
    return trial.steps.rows[trial.figure.window.first].samples / trial.record.key.devices


def _stem(key: Key, batch: float) -> str:
    """`rn50_b128_fp32`: their script splits at the underscores, so that the parts must have none."""
    parts = (registry.name_elsewhere(key.workload, "dlperf"), f"b{int(batch)}", key.precision or "unknown")
    return "_".join(safe_name(part).replace("_", "-") for part in parts)


def _write_series(place: Path, key: Key, trials: Sequence[Measured]) -> None:
    rule = rule_for(trials)
    logs = {}
    for topology, same in by_topology(trials).items():
        (place / topology).mkdir(parents=True)
        for trial in same:
            name = f"{topology}/{_stem(key, _batch(trial))}_{trial.record.spec.repeat}.log"
            (place / name).write_text("".join(log_lines(trial, rule)), encoding="utf-8")
            logs[name] = {"trial": trial.name, "throughput": trial.figure.throughput}
    document = {"warmup_batches": rule.warmup, "train_batches": rule.train, "logs": logs}
    (place / "trainmark.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def rule_for(trials: Sequence[Measured]) -> Rule:
    """The longest span that lies in the steady window of all these trials."""
    warmup = min(USUAL_WARMUP, *(_first(trial) for trial in trials))
    return Rule(warmup, warmup + min(trial.figure.window.stop - _first(trial) for trial in trials))


def _first(trial: Measured) -> int:
    """The first step counted; never step 0, since no line of theirs has the time at which it begins."""
    return max(1, trial.figure.window.first)


def log_lines(trial: Measured, rule: Rule) -> Iterator[str]:
    unit = rate_unit(trial)
    yield text_line(trial.steps.start, "PARAMETER", parameters(trial), unit)
    earlier = _first(trial) - rule.warmup
    for position, row in enumerate(trial.steps.rows):
        iteration = position - earlier + FORGOTTEN_ITERATIONS + 1
        if iteration < 1:
            continue
        # Their script counts lines, and knows a line by its loss: each step must have both.
        loss = float("nan") if row.loss is None else row.loss
        rate = float("inf") if row.rate is None else row.rate
        yield text_line(row.wall, f"Epoch: 0 Iteration: {iteration} ", {LOSS: loss, RATE: rate}, unit)
