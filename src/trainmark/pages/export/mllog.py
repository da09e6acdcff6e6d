"""MLPerf's `:::MLLOG` lines, as a trial can write them truthfully."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from trainmark.measure.figure import Finish
from trainmark.metric import score
from trainmark.pages.export.source import ExportedRun, Measured, Skipped, plain, safe_name
from trainmark.pages.export.steps import StepRow
from trainmark.workloads import registry

# MLPerf's own name of the same model; a workload that MLPerf does not have keeps ours.
POINT, START, STOP = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    for trial in source.measured:
        place = folder / trial.case
        place.mkdir(exist_ok=True)
        # MLPerf numbers its result files from 0.
        path = place / f"result_{trial.record.spec.repeat - 1}.txt"
        path.write_text("".join(lines(source, trial)), encoding="utf-8")
    return source.skipped


def lines(source: ExportedRun, trial: Measured) -> Iterator[str]:
    key, steps, finish = trial.record.key, trial.steps, trial.figure.finish
    start = steps.first_start if finish else steps.start
    began = min(trial.record.started, start)
    header: dict[str, Any] = {
        "submission_benchmark": safe_name(registry.name_elsewhere(key.workload, "mlperf")),
        "submission_division": "open",
        "submission_org": plain(source.submitter),
        "submission_platform": plain(source.fact("host", "hostname") or "unknown"),
        "submission_status": "research",
        "cache_clear": False,  # Trainmark does not drop the page cache
        "train_samples": (finish and finish.training_samples) or _count(steps.samples),
        "eval_samples": (finish and finish.validation_samples) or 0,
        "global_batch_size": _count(max(row.samples for row in steps.rows)),
        "number_of_nodes": key.nodes,
        "accelerators_per_node": key.devices_per_node,
        "framework": plain(f"{key.framework} {key.framework_version or ''}") if key.framework else None,
    }
    for name, value in header.items():
        if value is not None:
            yield _line(began, POINT, name, value)
    yield _line(began, START, "init_start")
    yield _line(start, STOP, "init_stop")
    yield _line(start, START, "run_start")
    yield from _blocks(trial) if finish is None else _course(trial, finish)
    # MLPerf's "success" means that the target quality was reached, which a throughput trial never tries.
    status = "success" if finish and finish.reached else "aborted"
    end = max(steps.end, start + (finish.time2train or finish.seconds)) if finish else steps.end
    yield _line(end, STOP, "run_stop", metadata={"status": status})


def _course(trial: Measured, finish: Finish) -> Iterator[str]:
    """Epochs, counted from 1, evaluations and steps as they came."""
    start = trial.steps.first_start
    timed_lines: list[tuple[float, str]] = []

    def put(seconds: float, event_type: str, key: str, epoch: int, value: Any = None, **more: Any) -> None:
        wall = start + seconds
        timed_lines.append((wall, _line(wall, event_type, key, value, {"epoch_num": epoch + 1, **more})))

    for epoch in finish.epochs:
        put(epoch.begin, START, "epoch_start", epoch.epoch)
        put(epoch.end, STOP, "epoch_stop", epoch.epoch)
    for evaluation in finish.evaluations:
        put(evaluation.begin, START, "eval_start", evaluation.epoch)
        # MLPerf has this name for whatever the target quality is measured by.
        if (value := score(evaluation.scores, finish.metric)) is not None:
            put(evaluation.end, POINT, "eval_accuracy", evaluation.epoch, value)
        put(evaluation.end, STOP, "eval_stop", evaluation.epoch)
    for row in trial.steps.rows:
        stats = _line(row.wall, POINT, "tracked_stats", _stats(row), {"step": row.number + 1})
        timed_lines.append((row.wall, stats))
    timed_lines.sort(key=lambda pair: pair[0])  # stable: what happened at one moment stays in its order
    yield from (line for _, line in timed_lines)


def _blocks(trial: Measured) -> Iterator[str]:
    """Warm-up, the steady window, and what is left after it; the end of the window's carries our figure."""
    window, rows = trial.figure.window, trial.steps.rows
    seen, wall = 0.0, trial.steps.start
    for first, stop in ((0, window.first), (window.first, window.stop), (window.stop, len(rows))):
        if first >= stop:
            continue
        yield _line(wall, START, "block_start", metadata={"samples_count": _count(seen), "step": first})
        for step, row in enumerate(rows[first:stop], first + 1):
            seen += row.samples
            counted = {"step": step, "samples_count": _count(seen)}
            yield _line(row.wall, POINT, "tracked_stats", _stats(row), counted)
        wall = rows[stop - 1].wall
        end = {"samples_count": _count(seen), "step": stop}
        if first == window.first:
            end["throughput"] = trial.figure.throughput
        yield _line(wall, STOP, "block_stop", metadata=end)


def _stats(row: StepRow) -> dict[str, float]:
    stats = {"throughput": row.rate, "train_loss": row.loss}
    return {name: value for name, value in stats.items() if value is not None and isfinite(value)}


def _count(samples: float) -> int | float:
    return int(samples) if samples.is_integer() else samples


def _line(
    wall: float, event_type: str, key: str, value: Any = None, metadata: dict[str, Any] | None = None
) -> str:
    record = {
        "namespace": "",
        "time_ms": round(wall * 1000),
        "event_type": event_type,
        "key": key,
        "value": value,
        "metadata": metadata or {},
    }
    return f":::MLLOG {json.dumps(record)}\n"
