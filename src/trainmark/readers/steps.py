"""Progress lines as columns: a million of them are a few dozen megabytes, and arithmetic is one call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainmark.readers.format import Clock

Column = NDArray[np.float64]


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

    def add(self, pattern: re.Pattern[bytes], matches: list[tuple[bytes, ...]], clock: Clock) -> None:
        """Appends what `pattern.findall` gave: a tuple a line, a string where there is one group."""
        if not matches:
            return
        rows = matches if isinstance(matches[0], tuple) else [(text,) for text in matches]
        before, self.lines = self.lines, self.lines + len(rows)
        for (name, _), texts in zip(
            sorted(pattern.groupindex.items(), key=lambda item: item[1]), zip(*rows, strict=True), strict=True
        ):
            values = times(texts, clock) if name == "wall" else numbers(texts)
            held = self.columns.setdefault(name, [])
            missing = before - sum(map(len, held))
            if missing:
                held.append(np.full(missing, np.nan))
            held.append(values)


def numbers(texts: tuple[bytes, ...]) -> Column:
    try:
        return np.array(texts, dtype="S").astype(np.float64)
    except ValueError:
        return np.array([_number(text) for text in texts], dtype=np.float64)


def _number(text: bytes) -> float:
    """NaN for what is no number; a decimal comma is understood."""
    try:
        return float(text.replace(b",", b".") if text.count(b",") == 1 and b"." not in text else text)
    except ValueError:
        return float("nan")


def times(texts: tuple[bytes, ...], clock: Clock) -> Column:
    """Seconds since 1970, or since midnight of the first day where the date is missing."""
    if clock in (Clock.UNIX, Clock.UNIX_MS):
        return numbers(texts) / (1000 if clock is Clock.UNIX_MS else 1)
    if clock is Clock.TIME_OF_DAY:
        return _over_midnight(np.array([_time_of_day(text) for text in texts]))
    plain = np.char.decode(np.array(texts, dtype="S"), "ascii", "replace")
    try:
        moments = np.char.replace(np.char.replace(plain, "/", "-"), ",", ".").astype("datetime64[us]")
    except ValueError:
        return np.full(len(texts), np.nan)
    return np.asarray(moments.astype(np.int64) / 1e6, dtype=np.float64)


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
