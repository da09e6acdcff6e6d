"""What every layout of a history is made from: plain values, wherever they come from."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from itertools import pairwise
from operator import and_
from typing import Any

from trainmark.base.text import natural_key
from trainmark.measure.doubts import DoubtCode, Severity
from trainmark.measure.history.changes import LevelChange, LevelDrift, drifts
from trainmark.measure.history.facts import FactChange, changed_facts, command_parts
from trainmark.measure.history.series import DATE, HistorySeries, RunPoint
from trainmark.pages import label

LONGEST_COMMAND = 60
SEVERE = frozenset(code.value for code in DoubtCode if code.severity is Severity.SEVERE)
Detector = Callable[[Sequence[RunPoint]], tuple[LevelChange, ...]]


def mostly_unreliable(points: Sequence[RunPoint]) -> bool:
    """Return whether half of these results have a severe doubt, so that nothing certain follows from them."""
    return 2 * sum(not SEVERE.isdisjoint(point.doubts) for point in points) >= len(points)


@dataclass(frozen=True)
class MarkedChange:
    """A change of level, the result at which it begins, and the recorded facts that changed with it."""

    change: LevelChange
    point: RunPoint
    facts: tuple[FactChange, ...] = ()

    @property
    def index(self) -> int:
        return self.change.index

    @property
    def best(self) -> FactChange | None:
        """The fact that fits best."""
        return self.facts[0] if self.facts else None


@dataclass(frozen=True)
class History:
    """A case on one machine over time, under the name that tells it from the others shown."""

    name: str
    series: HistorySeries
    changes: tuple[MarkedChange, ...] = ()
    drifts: tuple[LevelDrift, ...] = ()

    @property
    def id(self) -> str:
        return self.series.id

    @property
    def points(self) -> tuple[RunPoint, ...]:
        return self.series.points

    @property
    def latest(self) -> RunPoint:
        return self.points[-1]

    @property
    def rate_unit(self) -> str:
        return label.rate_unit(self.series.unit)

    @property
    def levels(self) -> list[tuple[int, int, float]]:
        """First and last result of each level, and the median of its results."""
        ends = [0, *(marked.index for marked in self.changes), len(self.points)]
        return [
            (first, stop - 1, statistics.median(point.median for point in self.points[first:stop]))
            for first, stop in pairwise(ends)
            if stop > first
        ]

    def is_unreliable(self, marked: MarkedChange) -> bool:
        """Return whether the results on a side of a change are not to be relied on."""
        sides = ((first, last) for first, last, _ in self.levels if marked.index in (first, last + 1))
        return any(mostly_unreliable(self.points[first : last + 1]) for first, last in sides)

    @property
    def latest_drift(self) -> LevelDrift | None:
        """The drift that still goes on at the latest result."""
        going = self.drifts and self.drifts[-1].last == len(self.points) - 1
        return self.drifts[-1] if going else None

    def drift_from(self, index: int) -> LevelDrift | None:
        return next((drift for drift in self.drifts if drift.first == index), None)

    @cached_property
    def changes_by_index(self) -> dict[int, MarkedChange]:
        return {marked.index: marked for marked in self.changes}

    def change_at(self, index: int) -> MarkedChange | None:
        return self.changes_by_index.get(index)


@dataclass(frozen=True)
class Histories:
    """Several cases in one order; `left_out` counts the results that lack the fact they are ordered by."""

    cases: tuple[History, ...]
    by: str = DATE
    left_out: int = 0

    @property
    def runs(self) -> int:
        return len({point.run for case in self.cases for point in case.points})

    @property
    def results(self) -> int:
        return sum(len(case.points) for case in self.cases)

    @property
    def changes(self) -> list[tuple[History, MarkedChange]]:
        """All changes, the newest first."""
        pairs = [(case, marked) for case in self.cases for marked in case.changes]
        return sorted(pairs, key=lambda pair: -pair[1].point.time)

    @property
    def drifts(self) -> list[tuple[History, LevelDrift]]:
        return [(case, drift) for case in self.cases for drift in case.drifts]


def histories(
    series: Iterable[HistorySeries], detect: Detector, by: str = DATE, left_out: int = 0, pattern: str = ""
) -> Histories:
    """Name the series, keep those that match `pattern`, and mark their changes and drifts.

    A pattern matches a part of the name in any case of letters, or all of it with `*` and `?`, or the id.
    """
    drawn = [line for line in series if line.points]
    fields = label.distinguishing(line.key for line in drawn)
    machines = len({line.machine for line in drawn}) > 1
    named = zip(drawn, _names([(line, case_name(line, fields, machines)) for line in drawn]), strict=True)
    cases = [
        history(line, detect, name) for line, name in named if matches(pattern, name) or line.id == pattern
    ]
    return Histories(tuple(sorted(cases, key=lambda case: natural_key(case.name))), by, left_out)


def history(series: HistorySeries, detect: Detector, name: str) -> History:
    """Return one case with its changes, each with the facts that changed there, and the drifts between."""
    marked = detect(series.points)
    ends = [0, *(change.index for change in marked), len(series.points)]
    return History(
        name,
        series,
        tuple(
            MarkedChange(
                change,
                series.points[change.index],
                changed_facts(series.points, change.index, ends[place], ends[place + 2]),
            )
            for place, change in enumerate(marked)
        ),
        drifts(series.points, marked),
    )


def case_name(series: HistorySeries, fields: Sequence[str], with_machine: bool) -> str:
    """`pytorch amp b256 1n8g`, and the machine where there are several."""
    name = f"{label.series(series.key, fields)} {series.key.topology}"
    return f"{name} @{series.machine}" if with_machine and series.machine else name


def _names(named: Sequence[tuple[HistorySeries, str]]) -> Iterable[str]:
    """Yield the names; of several commands of one name each has the words that not all of them have."""
    commands: dict[str, dict[str, Counter[str]]] = {}
    for line, name in named:
        commands.setdefault(name, {})[line.command] = Counter(command_parts(line.command))
    for line, name in named:
        own = commands[name]
        if len(own) == 1:
            yield name
            continue
        common = reduce(and_, own.values())
        words = list((own[line.command] - common).elements()) or [line.command]
        text = " ".join(words)
        yield f"{name} ({text[:LONGEST_COMMAND] + '…' if len(text) > LONGEST_COMMAND else text})"


def matches(pattern: str, name: str) -> bool:
    """Return whether a name has the pattern in it, or with wildcards is like it; an empty one is in all."""
    pattern, name = pattern.lower(), name.lower()
    return fnmatchcase(name, pattern) if "*" in pattern or "?" in pattern else pattern in name


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
