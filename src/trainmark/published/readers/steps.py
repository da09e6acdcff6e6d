"""Progress lines as columns: a million of them are a few dozen megabytes, and arithmetic is one call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from trainmark.published.readers.format import Clock

Column = NDArray[np.float64]
MOMENT = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
DAY = 86_400
# Beyond this, lines are joined two by two; half a million are enough to find any window by.
MOST_LINES = 1 << 19
LATER_OF_TWO = frozenset({"step", "last_step", "epoch", "wall", "rank"})
EPOCH = date(1970, 1, 1).toordinal()


@dataclass
class Steps:
    """One column a group, of equal length; NaN is what a line does not say."""

    columns: dict[str, list[Column]] = field(default_factory=dict)
    lines: int = 0
    thinned: int = 0
    halvings: int = 0

    def __getitem__(self, name: str) -> Column | None:
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
        clock: Clock,
        rank: int | None = None,
    ) -> None:
        """Appends what `pattern.findall` gave (a tuple a line, a string where there is one group)."""
        if matches:
            self.append(columns_of(pattern, matches, clock), len(matches), rank)

    def append(self, columns: Mapping[str, Column], lines: int, rank: int | None = None) -> None:
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
            since = halved(since)
        joined = {name: np.concatenate([before[name], since[name]]) for name in since}
        if self.halvings == 0 or len(joined["joined"]) > MOST_LINES // 2:
            joined, self.halvings = halved(joined), self.halvings + 1
        self.columns = {name: [column] for name, column in joined.items()}
        self.lines = self.thinned = len(joined["joined"])


def halved(columns: Mapping[str, Column]) -> dict[str, Column]:
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
        name: _half(name, column[pairs[:, 0]], column[pairs[:, 1]], "last_step" in columns)
        for name, column in columns.items()
    }


def _half(name: str, before: Column, after: Column, ranges: bool) -> Column:
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
    pattern: re.Pattern[bytes], matches: list[tuple[bytes, ...]], clock: Clock
) -> dict[str, Column]:
    rows = matches if isinstance(matches[0], tuple) else [(text,) for text in matches]
    named = {index: name for name, index in pattern.groupindex.items()}
    return {
        named[index]: times(texts, clock) if named[index] == "wall" else numbers(texts)
        for index, texts in enumerate(zip(*rows, strict=True), 1)
        if index in named
    }


def numbers(texts: Sequence[bytes]) -> Column:
    """NaN where there is no text; what is printed as `nan` becomes infinite, so as to stay told."""
    filled = [text or b"-" for text in texts]
    try:
        values = np.array(filled, dtype="S").astype(np.float64)
    except ValueError:
        return np.array([_number(text) for text in texts], dtype=np.float64)
    return np.where(np.isnan(values), np.inf, values)


def _number(text: bytes) -> float:
    """NaN for what is no number; a decimal comma is understood."""
    try:
        value = float(text.replace(b",", b".") if text.count(b",") == 1 and b"." not in text else text)
    except ValueError:
        return float("nan")
    return float("inf") if value != value else value


def times(texts: Sequence[bytes], clock: Clock) -> Column:
    """Seconds since 1970, or since midnight of the first day where the date is missing."""
    if clock in (Clock.UNIX, Clock.UNIX_MS):
        return numbers(texts) / (1000 if clock is Clock.UNIX_MS else 1)
    if clock is Clock.TIME_OF_DAY:
        return _over_midnight(np.array([_time_of_day(text) for text in texts]))
    return np.array([_moment(text) for text in texts], dtype=np.float64)


def _moment(text: bytes) -> float:
    """Read as if the clock were on universal time: only differences count, and zones are seldom said."""
    match = MOMENT.match(text)
    if match is None:
        return float("nan")
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - EPOCH
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


def over_midnights(wall: Column, ranks: Column | None = None) -> Column:
    """Times of day made to go on over midnight, each rank's own, whatever was read in one piece."""
    day = wall % DAY
    for rank in np.unique(ranks) if ranks is not None else [None]:
        own = np.isfinite(day) if rank is None else np.isfinite(day) & (ranks == rank)
        day[own] = _over_midnight(day[own])
    return day


def _over_midnight(seconds: Column) -> Column:
    """A clock that falls by more than half a day has passed midnight."""
    falls = np.diff(seconds, prepend=seconds[:1]) < -DAY / 2
    return np.asarray(seconds + DAY * np.cumsum(falls), dtype=np.float64)
