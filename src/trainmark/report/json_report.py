"""The machine-readable report: a stable contract, so names are added but never changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from trainmark.measure.figure import Interval, Ratio, Result
from trainmark.report import label
from trainmark.report.document import Document


def render(document: Document) -> str:
    """The whole document; a number that is not finite is null, and all text is ASCII with escapes."""
    return json.dumps(_finite(tree(document)), indent=2, allow_nan=False) + "\n"


def tree(document: Document) -> dict[str, Any]:
    return {
        "run": {
            "name": document.name,
            "title": document.title,
            "about": document.about,
            "created": document.created,
            "version": document.version,
            "command": document.command,
            "suite": document.suite,
        },
        "results": [
            {**result_tree(result), "published": document.published.get(result.key)}
            for result in document.results
        ],
        "trials": [asdict(trial) for trial in document.trials],
        "skipped": [{"case": case, "reason": reason} for case, reason in document.skipped],
        "environment": document.environment,
    }


def result_tree(result: Result) -> dict[str, Any]:
    """One result under the names of the contract; the CSV flattens the same tree."""
    return {
        **asdict(result.key),
        "throughput": {
            "median": result.throughput,
            **_bounds(result.interval),
            "n": result.n,
            "unit": label.rate_unit(result.unit),
        },
        "speedup": _ratio(result.speedup),
        "efficiency": _ratio(result.efficiency),
        "memory_bytes": result.memory_bytes,
        "step_seconds": asdict(result.step_times),
        "first_step_seconds": result.first_step_seconds,
        "warmup_steps": result.warmup_steps,
        "data_wait_share": result.data_wait_share,
        "samples_per_joule": result.samples_per_joule,
        "mfu": asdict(result.utilisation) if result.utilisation else None,
        "trials": list(result.trials),
        "doubts": [{"code": doubt.code.value, "message": doubt.message} for doubt in result.doubts],
    }


def _bounds(interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {"low": None, "high": None, "confidence": None}
    return {"low": interval.low, "high": interval.high, "confidence": interval.confidence}


def _ratio(ratio: Ratio | None) -> dict[str, float | None] | None:
    return None if ratio is None else {"value": ratio.value, **_bounds(ratio.interval)}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
