"""One run as a log tells it: its settings, and its progress lines as columns.

A million lines are a few dozen megabytes, and arithmetic over them is one call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Setting, TimeFormat

FloatArray = NDArray[np.float64]
MOMENT = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
DAY = 86_400
# Beyond this, lines are joined two by two; half a million are enough to find any window by.
MOST_LINES = 1 << 19
LATER_OF_TWO = frozenset({"step", "last_step", "epoch", "wall", "rank"})
UNIX_EPOCH = date(1970, 1, 1).toordinal()


@dataclass
class StepColumns:
    """One column a group, of equal length; NaN is what a line does not say."""

    columns: dict[str, list[FloatArray]] = field(default_factory=dict)
    lines: int = 0
    thinned: int = 0
    halvings: int = 0

    def __getitem__(self, name: str) -> FloatArray | None:
        """The whole column, or None where no line has it."""
        parts = self.columns.get(name)
        if not parts:
            return None
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def __len__(self) -> int:
        return self.lines

    def add(
        self,
        pattern: re.Pattern[bytes],
        matches: list[tuple[bytes, ...]],
        clock: TimeFormat,
        rank: int | None = None,
    ) -> None:
        """Appends what `pattern.findall` gave (a tuple a line, a string where there is one group)."""
        if matches:
            self.append(columns_of(pattern, matches, clock), len(matches), rank)

    def append(self, columns: Mapping[str, FloatArray], lines: int, rank: int | None = None) -> None:
        """Appends columns of so many lines; `rank` is whose lines they are, where a launcher says so."""
        if rank is not None:
            columns = {**columns, "rank": np.full(lines, float(rank))}
        for name in {*columns, *self.columns}:
            parts = self.columns.setdefault(name, [])
            missing = self.lines - sum(map(len, parts))
            if missing:
                parts.append(np.full(missing, np.nan))
            if name in columns:
                parts.append(columns[name])
        self.lines += lines
        for name, parts in self.columns.items():
            if name not in columns:
                parts.append(np.full(lines, np.nan))
        if self.lines > MOST_LINES:
            self._thin()

    def _thin(self) -> None:
        """Joins neighbouring lines, evenly over the whole log, so that the longest one fits into memory."""
        columns = {name: column for name in self.columns if (column := self[name]) is not None}
        before = {name: column[: self.thinned] for name, column in columns.items()}
        since = {name: column[self.thinned :] for name, column in columns.items()}
        for _ in range(self.halvings):
            since = halve_columns(since)
        joined = {name: np.concatenate([before[name], since[name]]) for name in since}
        if self.halvings == 0 or len(joined["joined"]) > MOST_LINES // 2:
            joined, self.halvings = halve_columns(joined), self.halvings + 1
        self.columns = {name: [column] for name, column in joined.items()}
        self.lines = self.thinned = len(joined["joined"])


def halve_columns(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Every two consecutive lines of a rank as one; `joined` tells how many lines one now stands for.

    The later line's step and time stay: they tell what both took. Of their rates the harmonic mean is kept,
    their samples are added, and of what else they say the mean is kept.
    """
    lines = len(next(iter(columns.values())))
    counts = columns.get("joined", np.ones(lines))
    columns = {**columns, "joined": np.where(np.isnan(counts), 1.0, counts)}
    even = lines // 2 * 2
    pairs = np.arange(even).reshape(-1, 2)
    if "rank" in columns:
        pairs = np.argsort(columns["rank"], kind="stable")[:even].reshape(-1, 2)
        pairs = pairs[np.argsort(pairs[:, 1], kind="stable")]
    return {
        name: _halve_column(name, column[pairs[:, 0]], column[pairs[:, 1]], "last_step" in columns)
        for name, column in columns.items()
    }


def _halve_column(name: str, before: FloatArray, after: FloatArray, ranges: bool) -> FloatArray:
    if name == "step" and ranges:
        return before
    if name in LATER_OF_TWO:
        return after
    if name in ("joined", "samples"):
        return before + after
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = 2 / (1 / before + 1 / after) if name == "rate" else (before + after) / 2
    return np.where(np.isnan(mean), after, mean)


def columns_of(
    pattern: re.Pattern[bytes], matches: list[tuple[bytes, ...]], clock: TimeFormat
) -> dict[str, FloatArray]:
    rows = matches if isinstance(matches[0], tuple) else [(text,) for text in matches]
    named = {index: name for name, index in pattern.groupindex.items()}
    return {
        named[index]: parse_times(texts, clock) if named[index] == "wall" else parse_numbers(texts)
        for index, texts in enumerate(zip(*rows, strict=True), 1)
        if index in named
    }


def parse_numbers(texts: Sequence[bytes]) -> FloatArray:
    """NaN where there is no text; what is printed as `nan` becomes infinite, so as to stay told."""
    filled = [text or b"-" for text in texts]
    try:
        values = np.array(filled, dtype="S").astype(np.float64)
    except ValueError:
        return np.array([_parse_number(text) for text in texts], dtype=np.float64)
    return np.where(np.isnan(values), np.inf, values)


def _parse_number(text: bytes) -> float:
    """NaN for what is no number; a decimal comma is understood."""
    try:
        value = float(text.replace(b",", b".") if text.count(b",") == 1 and b"." not in text else text)
    except ValueError:
        return float("nan")
    return float("inf") if value != value else value


def parse_times(texts: Sequence[bytes], clock: TimeFormat) -> FloatArray:
    """Seconds since 1970, or since midnight of the first day where the date is missing."""
    if clock in (TimeFormat.UNIX, TimeFormat.UNIX_MS):
        return parse_numbers(texts) / (1000 if clock is TimeFormat.UNIX_MS else 1)
    if clock is TimeFormat.TIME_OF_DAY:
        return _over_midnight(np.array([_time_of_day(text) for text in texts]))
    return np.array([_moment(text) for text in texts], dtype=np.float64)


def _moment(text: bytes) -> float:
    """Read as if the clock were on universal time: only differences count, and zones are seldom said."""
    match = MOMENT.match(text)
    if match is None:
        return float("nan")
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - UNIX_EPOCH
    except ValueError:
        return float("nan")
    whole = days * DAY + int(hour) * 3600 + int(minute) * 60 + int(second)
    return whole + (float(b"0." + fraction) if fraction else 0.0)


def _time_of_day(text: bytes) -> float:
    try:
        hours, minutes, seconds = text.replace(b",", b".").split(b":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return float("nan")


def over_midnights(wall: FloatArray, ranks: FloatArray | None = None) -> FloatArray:
    """Times of day made to go on over midnight, each rank's own, whatever was read in one piece."""
    day = wall % DAY
    for rank in np.unique(ranks) if ranks is not None else [None]:
        own = np.isfinite(day) if rank is None else np.isfinite(day) & (ranks == rank)
        day[own] = _over_midnight(day[own])
    return day


def _over_midnight(seconds: FloatArray) -> FloatArray:
    """A clock that falls by more than half a day has passed midnight."""
    falls = np.diff(seconds, prepend=seconds[:1]) < -DAY / 2
    return np.asarray(seconds + DAY * np.cumsum(falls), dtype=np.float64)


@dataclass
class LoggedRun:
    """`settings` holds what the log says of the run, and no guess; `number` counts the runs in a file.

    `conflicting` names the settings of which the log has a second, different value.
    """

    source: str
    format: Format
    number: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    setting_of: dict[str, Setting] = field(default_factory=dict)
    conflicting: set[str] = field(default_factory=set)
    steps: StepColumns = field(default_factory=StepColumns)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)

    @property
    def world_size(self) -> int | None:
        """As the log says, outright or as nodes × devices a node."""
        settings = self.settings
        if (world := settings.get("world_size")) is not None:
            return int(world)
        known = "nodes" in settings and "devices_per_node" in settings
        return int(settings["nodes"] * settings["devices_per_node"]) if known else None

    def columns(self) -> dict[str, FloatArray]:
        """What the progress lines say, one array a name."""
        named = ((name, self.steps[name]) for name in self.steps.columns)
        columns = {name: column for name, column in named if column is not None}
        if self.format.clock is TimeFormat.TIME_OF_DAY and "wall" in columns:
            columns["wall"] = over_midnights(columns["wall"], columns.get("rank"))
        return columns

    def facts(self) -> dict[str, Any]:
        """What the columns mean, in the words of `measure.trial.log.times.LogFacts`."""
        rate, settings = self.format.rate, self.settings
        return {
            "unit": settings.get("unit", rate.unit),
            "scope": Scope(settings.get("scope", rate.scope)),
            "cumulative": rate.kind is Kind.CUMULATIVE,
            "every_rank": rate.every_rank,
            "world_size": self.world_size,
            "batch_per_device": settings.get("batch_per_device"),
            "global_batch": self._global_batch(),
            "samples_per_step": settings.get("samples_per_step"),
            "steps_a_line": self.format.steps_a_line,
            "own_rate": self.summary.get("rate"),
            "whole_rate": settings.get("whole_rate"),
            "ended": settings.get("ended"),
            "disordered": settings.get("disordered"),
            "accumulation_untold": self._accumulates and "accumulation" not in settings,
            "conflicting": tuple(sorted(self.conflicting)),
        }

    def _global_batch(self) -> float | None:
        """Samples that all devices together take in a step, where the log says, accumulated ones included."""
        settings = self.settings
        if "global_batch" in settings:
            return float(settings["global_batch"])
        if "accumulation" in settings and "batch_per_device" in settings and self.world_size is not None:
            return float(settings["batch_per_device"] * settings["accumulation"] * self.world_size)
        return None

    @property
    def _accumulates(self) -> bool:
        """Whether a step of this format is one of several batches."""
        return any(setting.name == "accumulation" for setting in self.format.settings)

    @property
    def top1(self) -> float | None:
        """The last evaluation's, as printed; what training itself prints is no accuracy."""
        evaluated = [facts["top1"] for facts in self.evaluations if "top1" in facts]
        return evaluated[-1] if evaluated else self.summary.get("top1")
