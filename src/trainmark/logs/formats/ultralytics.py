"""Ultralytics: `1/100  15G  3.565  8.985  0.022  109  480: 9% ━─── 607/6848 2.7it/s 3:39<37:50`, also tqdm.

What counts is the time that the bar shows since its epoch began. `batch` is of all devices together.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, TimeFormat
from trainmark.logs.formats._common import count, listed

HEAD = rb"\b(?P<epoch>\d+)/\d+ +[\d.]+[GM]B? +[\d. naninf]+ \d+: +\d+% ?"
NEW = rb"[^\x00-\x7f ]+ (?P<step>\d+)/\d+ +[\d.]+(?:it/s|s/it) +(?P<elapsed>[\d:.]+)s?[<\s]"
TQDM = rb"\|[^|\n]{0,60}\| (?P<tqdm_step>\d+)/\d+ \[(?P<tqdm_elapsed>[\d:]+)<"
BAR = re.compile(HEAD + rb"(?:" + NEW + rb"|" + TQDM + rb")")


def last_states(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each bar as one line of ours, where its clock has gone on since the one before."""
    shown = b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal shown
        elapsed = (match["elapsed"] or match["tqdm_elapsed"]).split(b".")[0]
        state = match["epoch"] + b" " + elapsed
        if state == shown or match["step"] == b"0":
            return b""
        shown = state
        clock = b"0:" * (2 - elapsed.count(b":")) + elapsed
        step = match["step"] or match["tqdm_step"]
        return b"ultralytics: epoch=%b step=%b elapsed=%b \n" % (match["epoch"], step, clock)

    for block in blocks:
        yield BAR.sub(rewritten, block)


FORMAT = Format(
    name="ultralytics",
    title="Ultralytics YOLO",
    framework="pytorch",
    sign=BAR,
    step=re.compile(rb"ultralytics: epoch=(?P<epoch>\d+) step=(?P<step>\d+) elapsed=(?P<wall>[\d:]+) "),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.TIME_OF_DAY,
    settings=(
        count("global_batch", rb"engine/trainer: [^\n]{0,600}?\bbatch=(?P<value>[1-9]\d*),"),
        listed("world_size", rb"engine/trainer: [^\n]{0,2000}?\bdevice=(?:cuda:)?(?P<value>\d+(?:,\d+)*),"),
        listed("world_size", rb"engine/trainer: [^\n]{0,2000}?\bdevice=\[(?P<value>\d+(?:, ?\d+)*)\],"),
    ),
    start=re.compile(rb"Ultralytics [^\n]{0,40}Python-\d"),
    rewrite=last_states,
)
