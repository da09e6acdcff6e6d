"""Metrics of an evaluation: which way is better, how a value is written, what a program declares."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from trainmark.base.text import one_line
from trainmark.base.typed_json import DecodeError, decode

MOST_METRICS = 16
LONGEST_TITLE = 40
LARGEST_VALUE = 1e30

# The metrics of one evaluation: pairs of a name and a value.
Scores = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Metric:
    """What an evaluation gives, and a finish line can be set on; a `share` is between 0 and 1."""

    name: str
    title: str
    better: Literal["higher", "lower"]
    share: bool = False

    def reached(self, value: float, target: float) -> bool:
        return value >= target if self.better == "higher" else value <= target

    def text(self, value: float, digits: int = 2) -> str:
        return f"{100 * value:.{digits}f} %" if self.share else f"{value:.4g}"

    def target_text(self, value: float) -> str:
        return f"{self.title} {100 * value:g} %" if self.share else f"{self.title} {value:g}"

    def goodness(self, value: float | None) -> float:
        """Return a number that is larger the better the value is; nothing is worse than none."""
        return -inf if value is None else value if self.better == "higher" else -value

    def value_in(self, facts: Mapping[str, Any]) -> float | None:
        """Return the value that an evaluation reports; None where it reports none, or one that diverged."""
        value = facts.get(self.name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if abs(value) < LARGEST_VALUE else None  # which NaN is not


def declared_metrics(facts: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return the metrics in the facts of a run's start: `{"top1": {"better": "higher", "share": true}}`.

    `{"perplexity": "lower"}` does where the name is title enough. What is malformed is passed over.
    """
    declared = facts.get("metrics")
    metrics: list[Metric] = []
    for name, plain in declared.items() if isinstance(declared, dict) else ():
        properties = {"better": plain} if isinstance(plain, str) else plain
        if not name.isidentifier() or not isinstance(properties, dict):
            continue
        with contextlib.suppress(DecodeError):
            metric = decode(Metric, {"title": name, **properties, "name": name})
            metrics.append(Metric(name, one_line(metric.title)[:LONGEST_TITLE], metric.better, metric.share))
    return tuple(metrics[:MOST_METRICS])


def declaration(metrics: Iterable[Metric]) -> dict[str, Any]:
    """Return what `declared_metrics` reads."""
    return {each.name: {"title": each.title, "better": each.better, "share": each.share} for each in metrics}


def scores_in(facts: Mapping[str, Any], metrics: Iterable[Metric]) -> Scores:
    values = ((metric.name, metric.value_in(facts)) for metric in metrics)
    return tuple((name, value) for name, value in values if value is not None)


def score(scores: Scores, metric: Metric | None) -> float | None:
    """Return the value of one metric among those of an evaluation."""
    return next((value for name, value in scores if metric is not None and name == metric.name), None)
