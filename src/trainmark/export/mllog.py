"""MLPerf's `:::MLLOG` lines, as a throughput trial can write them truthfully."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from trainmark.export.names import plain, safe_name
from trainmark.export.source import Measured, Skipped, Source
from trainmark.export.steps import StepRow

# MLPerf's own name of the same model; a workload that MLPerf does not have keeps ours.
BENCHMARKS = {"resnet50": "resnet"}
POINT, START, STOP = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


def write(source: Source, folder: Path) -> Sequence[Skipped]:
    for trial in source.measured:
        place = folder / trial.case
        place.mkdir(exist_ok=True)
        # MLPerf numbers its result files from 0.
        path = place / f"result_{trial.record.spec.repeat - 1}.txt"
        path.write_text("".join(lines(source, trial)), encoding="utf-8")
    return source.skipped


def lines(source: Source, trial: Measured) -> Iterator[str]:
    key, steps = trial.record.key, trial.steps
    began = min(trial.record.started, steps.start)
    told: dict[str, Any] = {
        "submission_benchmark": BENCHMARKS.get(key.workload, safe_name(key.workload)),
        "submission_division": "open",
        "submission_org": plain(source.submitter),
        "submission_platform": plain(source.fact("host", "hostname") or "unknown"),
        "submission_status": "research",
        # Trainmark does not drop the page cache, and does not evaluate.
        "cache_clear": False,
        "train_samples": _count(steps.samples),
        "eval_samples": 0,
        "global_batch_size": _count(max(row.samples for row in steps.rows)),
        "number_of_nodes": key.nodes,
        "accelerators_per_node": key.devices_per_node,
        "framework": plain(f"{key.framework} {key.framework_version or ''}") if key.framework else None,
    }
    for name, value in told.items():
        if value is not None:
            yield _line(began, POINT, name, value)
    yield _line(began, START, "init_start")
    yield _line(steps.start, STOP, "init_stop")
    yield _line(steps.start, START, "run_start")
    yield from _blocks(trial)
    # MLPerf's "success" means that the target quality was reached, which a throughput trial never tries.
    yield _line(steps.end, STOP, "run_stop", metadata={"status": "aborted"})


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
            yield _line(row.wall, POINT, "tracked_stats", _stats(row), {"step": step})
        wall = rows[stop - 1].wall
        end = {"samples_count": _count(seen), "step": stop}
        if first == window.first:
            end["throughput"] = trial.figure.throughput
        yield _line(wall, STOP, "block_stop", metadata=end)


def _stats(row: StepRow) -> dict[str, float]:
    told = {"throughput": row.rate, "train_loss": row.loss}
    return {name: value for name, value in told.items() if value is not None and isfinite(value)}


def _count(samples: float) -> int | float:
    return int(samples) if samples.is_integer() else samples


def _line(
    wall: float, event_type: str, key: str, value: Any = None, metadata: dict[str, Any] | None = None
) -> str:
    said = {
        "namespace": "",
        "time_ms": round(wall * 1000),
        "event_type": event_type,
        "key": key,
        "value": value,
        "metadata": metadata or {},
    }
    return f":::MLLOG {json.dumps(said)}\n"
