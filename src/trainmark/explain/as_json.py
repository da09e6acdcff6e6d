"""An explanation, or the difference of two, as JSON: its fields, and beside them what follows from them."""

from __future__ import annotations

from math import isfinite
from typing import Any

from trainmark.base import typed_json
from trainmark.base.text import visible
from trainmark.explain import figures
from trainmark.explain.difference import ExplanationDifference
from trainmark.explain.explanation import Explanation


def difference_tree(difference: ExplanationDifference) -> dict[str, Any]:
    plain = {**typed_json.encode(difference), "change": difference.seconds_b - difference.seconds_a}
    return {name: _clean(value) for name, value in plain.items()}


def tree(explanation: Explanation) -> dict[str, Any]:
    """Names and nanoseconds as they are; shares are null where they are refused."""
    plain: dict[str, Any] = typed_json.encode(explanation)
    total = explanation.total if explanation.agreement.refusal is None else 0
    for listed, time in (("classes", "alone"), ("overlaps", "nanoseconds"), ("idle", "nanoseconds")):
        for row in plain[listed]:
            row["share"] = row[time] / total if total > 0 else None
    for row, own in zip(plain["classes"], explanation.classes, strict=True):
        row["times_floor"] = figures.times_floor(own)
    for row, change in zip(plain["what_ifs"], explanation.what_ifs, strict=True):
        row["throughput_gain"] = figures.throughput_gain(explanation, change)
        row["error"] = figures.prediction_error(change)
    beside = {
        "step_seconds": explanation.step_seconds,
        "samples_per_second": figures.samples_per_second(explanation),
        "agreement": {**plain["agreement"], "difference": explanation.agreement.difference},
    }
    return {name: _clean(value) for name, value in {**plain, **beside}.items()}


def _clean(value: Any) -> Any:
    """Write out what hides in texts; a number that is not finite is null."""
    if isinstance(value, dict):
        return {visible(str(name)): _clean(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return visible(value)
    return None if isinstance(value, float) and not isfinite(value) else value
