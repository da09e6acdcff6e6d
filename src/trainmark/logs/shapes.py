"""Progress lines of the same shape, read together: the pattern is tried once a shape, not once a line.

Two lines have the same shape where they are equal but for their digits. A pattern that knows digits only as
`\\d` then matches both at the same places, and their numbers can be taken out of a table of bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from trainmark.logs.format import Format, TimeFormat
from trainmark.logs.input import RANK_TAG
from trainmark.logs.logged_run import MOMENT, UNIX_EPOCH, FloatArray, columns_of

ByteArray = NDArray[np.uint8]
LineStarts = NDArray[np.intp]
ZERO = np.uint8(ord("0"))
# As many as a double holds exactly.
MOST_DIGITS = 16

# Smaller blocks gain nothing.
SMALLEST_BLOCK = 256 << 10
# Rarer lines, and those beyond the most common shapes of a length, are left to the pattern itself.
FEWEST_ALIKE = 64
MOST_SHAPES = 6
MOST_LEFT = 0.25
# On this much of every block, both ways must find as many reports.
CHECKED_BYTES = 32 << 10
PLAIN_NUMBER = re.compile(rb"-?\d*\.?\d+|-?\d+\.")
# What may hold a digit in a pattern without meaning that digit: counts, escapes, names, whole ranges.
DIGITS_UNMEANT = re.compile(rb"\{\d+(?:,\d*)?\}|\{,\d+\}|\(\?P[<=]\w+[>)]|0-9")


@dataclass(frozen=True)
class DenseBlock:
    """The columns of the progress lines in a block, and the text of all lines but those read together."""

    columns: dict[str, FloatArray]
    lines: int
    rest: bytes


def digit_blind(pattern: re.Pattern[bytes]) -> bool:
    """Whether the pattern treats all digits alike."""
    return not re.search(rb"\d", DIGITS_UNMEANT.sub(b"", pattern.pattern))


def dense(format: Format, block: bytes) -> DenseBlock | None:
    """The block read by shapes; None where it is not made of enough lines alike."""
    if len(block) < SMALLEST_BLOCK or RANK_TAG in block or not digit_blind(format.step):
        return None
    text = np.frombuffer(block, dtype=np.uint8)
    stops = np.flatnonzero(text == ord("\n")) + 1
    starts = np.concatenate([[0], stops[:-1]])
    lengths = stops - starts
    taken = np.zeros(len(starts), dtype=bool)
    groups: list[tuple[LineStarts, dict[str, FloatArray]]] = []
    for length in np.flatnonzero(np.bincount(lengths) >= FEWEST_ALIKE):
        lines = np.flatnonzero(lengths == length)
        for alike, columns in _same_length(format, text, starts, lines, int(length)):
            taken[alike] = True
            groups.append((alike, columns))
    left = np.flatnonzero(~taken)
    if not groups or len(left) > MOST_LEFT * len(starts):
        return None
    texts = [block[starts[line] : stops[line]] for line in left]
    groups += _rare(format, left, texts)
    if not _agrees(format, block, stops, [alike for alike, _ in groups]):
        return None
    order = np.argsort(np.concatenate([alike for alike, _ in groups]), kind="stable")
    names = {name for _, columns in groups for name in columns}
    joined = {
        name: np.concatenate([columns.get(name, np.full(len(alike), np.nan)) for alike, columns in groups])[
            order
        ]
        for name in names
    }
    return DenseBlock(joined, len(order), b"".join(texts))


def _rare(
    format: Format, lines: LineStarts, texts: list[bytes]
) -> list[tuple[LineStarts, dict[str, FloatArray]]]:
    """What the pattern itself finds in the lines that were left."""
    if not format.step.search(b"".join(texts)):
        return []
    matches = [
        (line, match) for line, text in zip(lines, texts, strict=True) for match in format.step.findall(text)
    ]
    if not matches:
        return []
    which, groups = zip(*matches, strict=True)
    return [(np.array(which, dtype=np.intp), columns_of(format.step, list(groups), format.clock))]


def _agrees(format: Format, block: bytes, stops: LineStarts, groups: list[LineStarts]) -> bool:
    """Whether the pattern itself finds as many at the head: a report over two lines would be lost."""
    lines = int(np.searchsorted(stops, CHECKED_BYTES))
    counted = sum(int((alike <= lines).sum()) for alike in groups)
    return len(format.step.findall(block[: stops[lines]])) == counted


def _same_length(
    format: Format, text: ByteArray, starts: LineStarts, lines: LineStarts, length: int
) -> list[tuple[LineStarts, dict[str, FloatArray]]]:
    groups = []
    windows = np.lib.stride_tricks.sliding_window_view(text, length)
    rows = windows[starts[lines]]
    for _ in range(MOST_SHAPES):
        if len(lines) < FEWEST_ALIKE:
            break
        model = rows[0]
        digit = (model - ZERO) < 10
        # Unsigned bytes wrap round, so that one comparison tells digits where the model has them from
        # anything else, and the model's own byte elsewhere.
        least, many = np.where(digit, ZERO, model), np.where(digit, np.uint8(10), np.uint8(1))
        alike = ((rows - least) < many).all(axis=1)
        columns = _columns(format, rows if alike.all() else rows[alike], model.tobytes())
        if columns is not None:
            groups.append((lines[alike], columns))
        lines, rows = lines[~alike], rows[~alike]
    return groups


def _columns(format: Format, rows: ByteArray, model: bytes) -> dict[str, FloatArray] | None:
    """What lines like this one say; None where they say it in no simple way, or something else besides."""
    matches = list(format.step.finditer(model))
    others = (format.start, format.evaluation, format.summary)
    if len(matches) != 1 or any(other is not None and other.search(model) for other in others):
        return None
    columns = {}
    for name, text in matches[0].groupdict().items():
        if text is None:
            continue
        begin, end = matches[0].span(name)
        field = rows[:, begin:end]
        values = (
            _moments(field, text)
            if name == "wall" and format.clock is TimeFormat.ISO
            else _numbers(field, text)
            if name != "wall" or format.clock in (TimeFormat.UNIX, TimeFormat.UNIX_MS)
            else None
        )
        if values is None:
            return None
        columns[name] = values / 1000 if name == "wall" and format.clock is TimeFormat.UNIX_MS else values
    return columns


def _numbers(field: ByteArray, model: bytes) -> FloatArray | None:
    if not PLAIN_NUMBER.fullmatch(model) or len(model) > MOST_DIGITS:
        return None
    point = model.find(b".")
    decimals = len(model) - point - 1 if point >= 0 else 0
    return _whole(field, model) / 10.0**decimals * (-1 if model.startswith(b"-") else 1)


def _whole(field: ByteArray, model: bytes) -> FloatArray:
    """The digits of each row as one whole number, by Horner's rule down the columns."""
    value = np.zeros(len(field))
    for byte, column in zip(model, np.subtract(field.T, ZERO, order="C"), strict=True):
        if chr(byte).isdigit():
            value *= 10
            value += column
    return value


def _moments(field: ByteArray, model: bytes) -> FloatArray | None:
    match = MOMENT.match(model)
    if match is None:
        return None
    spans = [match.span(group) for group in range(1, 8) if match[group]]
    year, month, day, hour, minute, second, *fraction = (
        _whole(field[:, begin:end], model[begin:end]) for begin, end in spans
    )
    whole = year * 10_000 + month * 100 + day
    dates, which = (whole[:1], np.zeros(1, np.intp)) if np.ptp(whole) == 0 else _distinct(whole)
    try:
        days = np.array(
            [date(int(d) // 10_000, int(d) // 100 % 100, int(d) % 100).toordinal() for d in dates]
        )
    except ValueError:
        return None
    moments = (days[which] - UNIX_EPOCH) * 86_400.0 + hour * 3600 + minute * 60 + second
    return moments + fraction[0] / 10.0 ** len(match[7]) if fraction else moments


def _distinct(values: FloatArray) -> tuple[FloatArray, LineStarts]:
    distinct, which = np.unique(values, return_inverse=True)
    return distinct, which.reshape(-1)
