"""MindSpore's losses and times, printed apart by every rank, joined into lines of ours."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

REPORT = re.compile(
    rb"(?:(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+):INFO:)?"
    rb"epoch: *\[?(?P<epoch>\d{1,9})(?:/\d+\])?,? *(?:step: *\[?(?P<step>\d{1,9})(?:/ *\d+\])?,? *)?"
    rb"loss(?: is|:) *(?P<loss>\d+(?:\.\d+)?(?:e[+-]\d+)?|nan|inf)"
    rb"|(?<![Ee]val )[Ee]poch time: *(?P<whole>\d{1,12}(?:\.\d{1,9})?) *(?P<whole_unit>ms|s)?"
    rb"(?:,? *per step time: *(?P<each>\d{1,12}(?:\.\d{1,9})?) *(?P<each_unit>ms|s)?)?"
    rb"(?:,? *fps: *(?P<fps>[\d.]+))?"
)
BEGIN = b"mindspore: a run begins\n"


# More ranks than this would have to print the same step before one of them prints its time.
MOST_WAITING = 4096


class PrintedLoss(NamedTuple):
    epoch: int
    step: int
    value: bytes
    wall: bytes


NO_LOSS = PrintedLoss(-1, 0, b"", b"")


def pair(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each time beside its loss: the oldest one that waits."""
    waiting: deque[PrintedLoss] = deque()
    highest = 0

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal highest
        if match["loss"] is None:
            return _line(waiting.popleft() if waiting else NO_LOSS, match)
        loss = PrintedLoss(int(match["epoch"]), int(match["step"] or 0), match["loss"], match["wall"] or b"")
        # A rank that lags is one epoch behind; two can only be another run.
        if loss.epoch + 1 < highest:
            ended = b"".join(map(_line, waiting)) + BEGIN
            waiting.clear()
            waiting.append(loss)
            highest = loss.epoch
            return ended
        highest = max(highest, loss.epoch)
        return b"".join(map(_line, _untimed(waiting, loss)))

    for block in blocks:
        yield REPORT.sub(rewritten, block)
    yield b"".join(map(_line, waiting))


def _untimed(waiting: deque[PrintedLoss], loss: PrintedLoss) -> list[PrintedLoss]:
    """Lets a loss wait; returns those that no time will come for: not the last step of their epoch."""
    if waiting and waiting[-1][:2] != loss[:2]:
        passed = [old for old in waiting if old.epoch + 1 < loss.epoch or _before(old, loss)]
        late = any(_before(loss, other) for other in waiting)
        remaining = [old for old in waiting if old not in passed] + ([] if late else [loss])
        waiting.clear()
        waiting.extend(remaining)
        return passed + ([loss] if late else [])
    waiting.append(loss)
    return [waiting.popleft()] if len(waiting) > MOST_WAITING else []


def _before(one: PrintedLoss, other: PrintedLoss) -> bool:
    return one.epoch == other.epoch and one.step < other.step


def _line(loss: PrintedLoss, time: re.Match[bytes] | None = None) -> bytes:
    whole, each = (_ms(time, "whole"), _ms(time, "each")) if time else (0.0, 0.0)
    step = loss.step or (round(whole / each) if each else 0)
    return b"mindspore: epoch=%b step=%b loss=%b ms=%b rate=%b wall=%b\n" % (
        b"%d" % loss.epoch if loss.epoch >= 0 else b"",
        b"%d" % step if step else b"",
        loss.value,
        b"%.3f" % each if each else b"",
        time["fps"] or b"" if time else b"",
        loss.wall,
    )


def _ms(time: re.Match[bytes], name: str) -> float:
    """Milliseconds, which old versions print without their unit; 0 where there is no such number."""
    return float(time[name] or 0) * (1000 if time[f"{name}_unit"] == b"s" else 1)
