"""A folder under a DLPerf rule: their `result.json`, the doubts about it, and our table beside it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from trainmark.audit.protocols import defects, estimators
from trainmark.audit.protocols.estimators import DlperfRule, OurFigure, Sample
from trainmark.audit.protocols.protocol import (
    TIMES,
    BatchWindow,
    CaseLog,
    ProtocolDoubt,
    Reading,
    lines_of,
    runs_in,
)

BASELINE = "1n1g"
# The scripts take the first character of `16n8g` for the number of nodes.
THEIR_MOST_NODES = 9
PATTERNS = ("keep", "value", "step", "progress")

Speeds = dict[str, dict[str, dict[int, float]]]


def make_rule(entry: dict[str, Any]) -> DlperfRule:
    """A rule by its entry in protocols.yaml."""
    time = TIMES[entry.get("time", "date")].pattern
    patterns = {name: entry[name].replace("{time}", time) for name in PATTERNS if name in entry}
    own = {field.name: entry[field.name] for field in fields(DlperfRule) if field.name in entry}
    functions = {"estimate": getattr(estimators, entry["estimate"]), "ours": getattr(defects, entry["ours"])}
    return DlperfRule(**{**own, **functions, **{name: re.compile(text) for name, text in patterns.items()}})


def read(rule: DlperfRule, folder: Path, window: BatchWindow) -> Reading:
    """Log after log, in the order of their names; a later one of the same number takes its place."""
    speeds: list[tuple[CaseLog, float]] = []
    ours: list[tuple[CaseLog, OurFigure]] = []
    doubts: list[ProtocolDoubt] = []
    prints: dict[str, list[str]] = defaultdict(list)
    for run in runs_in(folder):
        sample = Sample(rule, run, lines_of(run.path), window)
        speed = rule.estimate(sample)
        doubts += defects.doubts_of(sample, speed)
        if speed is not None:
            speeds.append((run, speed))
        if figure := rule.ours(sample):
            ours.append((run, figure))
        if lines := "".join(sample.counted_lines()):
            prints[hashlib.sha256(lines.encode()).hexdigest()].append(run.label)
    doubts += _table_doubts([run for run, _ in speeds], prints.values())
    table = their_table(speeds, rule.average_digits)
    doubts += _baseline_doubts(table)
    return Reading(table, doubts, our_table(ours))


def their_table(speeds: Iterable[tuple[CaseLog, float]], average_digits: int) -> dict[str, Any]:
    """The dictionary as their scripts build it: without a 1n1g, no medians, and every speed-up 1.0."""
    runs: Speeds = defaultdict(lambda: defaultdict(dict))
    table: dict[str, Any] = {}
    for run, speed in speeds:
        runs[run.model][run.case][run.repeat] = speed
        table.setdefault(run.model, {})[run.case] = {
            "average_speed": speed,
            "batch_size_per_device": run.batch,
        }
    for model, cases in table.items():
        if cases.setdefault(BASELINE, {"average_speed": {}})["average_speed"]:
            baseline = _median(runs[model][BASELINE])
            for case, entry in cases.items():
                values = runs[model][case]
                entry["average_speed"] = round(sum(values.values()) / len(values), average_digits)
                entry["median_speed"] = _median(values)
                entry["speedup"] = _ratio(entry["median_speed"], baseline)
        else:
            for case, entry in cases.items():
                if case != BASELINE or entry["average_speed"] != {}:
                    entry["speedup"] = 1.0
    return {
        model: {case: _plain(table[model][case]) for case in sorted(table[model])} for model in sorted(table)
    }


def _median(speeds: dict[int, float]) -> np.float64:
    return np.float64(np.round(np.median(list(speeds.values())), 2))


def _ratio(speed: np.float64, baseline: np.float64) -> float:
    if baseline == 0:
        return float("inf") if speed else float("nan")
    return round(speed / baseline, 2)


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """Python's own numbers, so that what is printed does not depend on numpy."""
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in entry.items()}


def our_table(figures: list[tuple[CaseLog, OurFigure]]) -> dict[str, Any]:
    """Keyed by batch and precision too; a speed-up only against a baseline of the same."""
    grouped: dict[tuple[str, str, str], list[OurFigure]] = defaultdict(list)
    for run, figure in figures:
        grouped[run.model, f"b{run.batch}_{run.precision}", run.case].append(figure)
    table: dict[str, Any] = {}
    for (model, variant, case), group in sorted(grouped.items()):
        speed = median(figure.speed for figure in group)
        baseline = grouped.get((model, variant, BASELINE))
        speedup = round(speed / median(figure.speed for figure in baseline), 2) if baseline else None
        table.setdefault(model, {}).setdefault(variant, {})[case] = {
            "median_speed": round(speed, 2),
            "logs": len(group),
            "steps": min(figure.steps for figure in group),
            "speedup": speedup,
        }
    return table


def _table_doubts(runs: list[CaseLog], same_lines: Iterable[list[str]]) -> Iterator[ProtocolDoubt]:
    places = Counter((run.model, run.case, run.repeat) for run in runs)
    for (model, case, repeat), times in places.items():
        if times > 1:
            message = (
                f"{case}: {times} logs are number {repeat} of {model}; the rule's key has neither batch nor "
                "precision, so the last one replaces the others."
            )
            yield ProtocolDoubt("overwritten", message)
    variants: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs:
        variants[run.model, run.case].add(f"b{run.batch} {run.precision}")
    for (model, case), configurations in variants.items():
        if len(configurations) > 1:
            yield ProtocolDoubt(
                "mixed-configurations",
                f"{model} {case}: {' and '.join(sorted(configurations))} are averaged into one figure; "
                "keep them in folders of their own.",
            )
    for case in sorted({run.case for run in runs if run.nodes > THEIR_MOST_NODES}):
        yield ProtocolDoubt(
            "theirs-cannot-read",
            f"{case}: their script reads one digit of nodes and fails; this is its rule done rightly.",
        )
    for labels in same_lines:
        if len(labels) > 1:
            yield ProtocolDoubt(
                "copied-logs", f"{' and '.join(labels)} hold the same lines: one run, counted twice."
            )


def _baseline_doubts(table: dict[str, Any]) -> Iterator[ProtocolDoubt]:
    for model, cases in table.items():
        baseline = cases[BASELINE]["average_speed"]
        if not baseline:
            why = "no 1n1g log" if baseline == {} else "the last 1n1g log counts as 0"
            yield ProtocolDoubt(
                "no-baseline",
                f"{model}: {why}, so every speed-up is 1.0, no median is given, and average_speed is that of "
                "the last log; run 1n1g, or read our table.",
            )
