"""Progress lines as columns: a million of them are a few dozen megabytes, and arithmetic is one call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from trainmark.readers.format import Clock

Column = NDArray[np.float64]
MOMENT = re.compile(rb"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
# Beyond this, lines are joined two by two; half a million are enough to find any window by.
MOST_LINES = 1 << 19
LATER_OF_TWO = frozenset({"step", "last_step", "epoch", "wall", "rank"})
EPOCH = date(1970, 1, 1).toordinal()


@dataclass
class Steps:
    """One column a group, of equal length; NaN is what a line does not say."""

    columns: dict[str, list[Column]] = field(default_factory=dict)
    lines: int = 0

    def __getitem__(self, name: str) -> Column | None:
        """The whole column, or None where no line has it."""
        found = self.columns.get(name)
        if not found:
            return None
        if len(found) > 1:
            found[:] = [np.concatenate(found)]
        return found[0]

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
            held = self.columns.setdefault(name, [])
            missing = self.lines - sum(map(len, held))
            if missing:
                held.append(np.full(missing, np.nan))
            if name in columns:
                held.append(columns[name])
        self.lines += lines
        for name, held in self.columns.items():
            if name not in columns:
                held.append(np.full(lines, np.nan))
        if self.lines > MOST_LINES:
            self._thin()

    def _thin(self) -> None:
        """Every two consecutive lines of a rank become one, so that the longest log fits into memory.

        The later line's step and time stay: they tell what both took. Of their rates the harmonic mean is
        kept, their samples are added, and of what else they say the mean is kept; `joined` tells how many
        lines one now stands for.
        """
        joined_before = self["joined"]
        counts = np.ones(self.lines) if joined_before is None else joined_before
        self.columns["joined"] = [np.where(np.isnan(counts), 1.0, counts)]
        ranks = self["rank"]
        order = np.arange(self.lines) if ranks is None else np.argsort(ranks, kind="stable")
        first, second = order[: self.lines // 2 * 2].reshape(-1, 2).T
        paired = np.argsort(second, kind="stable")
        first, second = first[paired], second[paired]
        for name in self.columns:
            column = self[name]
            assert column is not None
            before, after = column[first], column[second]
            with np.errstate(divide="ignore", invalid="ignore"):
                if name == "step" and "last_step" in self.columns:
                    joined = before
                elif name in LATER_OF_TWO:
                    joined = after
                elif name in ("joined", "samples"):
                    joined = before + after
                elif name == "rate":
                    joined = 2 / (1 / before + 1 / after)
                else:
                    joined = (before + after) / 2
            self.columns[name] = [np.where(np.isnan(joined), after, joined)]
        self.lines = len(first)


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
    found = MOMENT.match(text)
    if found is None:
        return float("nan")
    year, month, day, hour, minute, second, fraction = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - EPOCH
    except ValueError:
        return float("nan")
    whole = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    return whole + (float(b"0." + fraction) if fraction else 0.0)


def _time_of_day(text: bytes) -> float:
    try:
        hours, minutes, seconds = text.replace(b",", b".").split(b":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return float("nan")


def _over_midnight(seconds: Column) -> Column:
    """A clock that falls by more than half a day has passed midnight."""
    falls = np.diff(seconds, prepend=seconds[:1]) < -43_200
    return np.asarray(seconds + 86_400 * np.cumsum(falls), dtype=np.float64)
