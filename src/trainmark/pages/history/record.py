"""A history as JSON, with every point and every fact."""

from __future__ import annotations

import json
from typing import Any

from trainmark.measure.history.changes import LevelDrift
from trainmark.measure.history.series import RunPoint
from trainmark.pages.history.model import Histories, History, MarkedChange


def as_json(histories: Histories) -> str:
    return json.dumps(tree(histories), indent=2, allow_nan=False) + "\n"


def tree(histories: Histories) -> dict[str, Any]:
    return {
        "by": histories.by,
        "runs": histories.runs,
        "left_out": histories.left_out,
        "cases": [case_tree(case) for case in histories.cases],
    }


def case_tree(case: History) -> dict[str, Any]:
    return {
        "id": case.id,
        "case": case.name,
        "machine": case.series.machine,
        "unit": case.rate_unit,
        "command": case.series.command or None,
        "key": {
            name: value for name, value in case.series.key.values().items() if name != "framework_version"
        },
        "points": [_point(point) for point in case.points],
        "changes": [_change(case, marked) for marked in case.changes],
        "drifts": [_drift(case, drift) for drift in case.drifts],
    }


def _point(point: RunPoint) -> dict[str, Any]:
    interval = point.interval
    return {
        "run": point.run,
        "time": point.time,
        "median": point.median,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "confidence": interval.confidence if interval else None,
        "trials": list(point.values),
        "doubts": list(point.doubts),
        "facts": dict(point.facts),
    }


def _drift(case: History, drift: LevelDrift) -> dict[str, Any]:
    return {
        "first": drift.first,
        "last": drift.last,
        "first_run": case.points[drift.first].run,
        "last_run": case.points[drift.last].run,
        "ratio": drift.ratio,
        "low": drift.low,
        "high": drift.high,
        "probability": drift.probability,
        "regression": drift.regression,
    }


def _change(case: History, marked: MarkedChange) -> dict[str, Any]:
    change = marked.change
    return {
        "index": change.index,
        "run": marked.point.run,
        "time": marked.point.time,
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "probability": change.probability,
        "confirmed_by": change.confirmed_by,
        "regression": change.regression,
        "unreliable": case.is_unreliable(marked),
        "facts": [
            {"name": fact.name, "before": fact.before, "after": fact.after, "fit": fact.fit}
            for fact in marked.facts
        ],
    }
