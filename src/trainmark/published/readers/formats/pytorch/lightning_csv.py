"""Lightning's `metrics.csv`, where a `ThroughputMonitor` writes `train/time` and `train/samples` into it.

Both count from the start of training, without validation; the samples are those of one device. That there are
several devices shows in a rate of all beside that of one, which appear once the monitor's window is full. A
file without the monitor has no times, and gives no speed.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting

LOSSES = ("train_loss", "loss", "train/loss", "train_loss_step")
LONGEST_LINE = 1 << 16  # below the length at which csv gives up on a field
Row = Mapping[str, str]


def progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """A line of ours for every row that has a time, with the rate since the one before."""
    rows = csv.DictReader(_lines(blocks), restval="", quoting=csv.QUOTE_NONE)
    devices, loss = 0, ""
    earlier: Row | None = None
    for row in rows:
        loss = next((row[name] for name in LOSSES if row.get(name)), loss)
        if not row.get("train/time"):
            continue
        if not devices and (devices := _devices(row)):
            yield b"lightning-csv: devices=%d\n" % devices
        if earlier is not None:
            yield _line(earlier, row, loss)
        earlier = row


def _line(earlier: Row, row: Row, loss: str) -> bytes:
    seconds, steps, samples = (
        _number(row, name) - _number(earlier, name) for name in ("train/time", "step", "train/samples")
    )
    rate = samples / seconds if seconds > 0 else math.nan
    text = f"lightning-csv: epoch={row.get('epoch')} step={row.get('step')} samples={samples:.0f}"
    pace = seconds / steps if steps > 0 else math.nan
    return f"{text} rate={rate:.6f} seconds={pace:.9f} loss={loss}\n".encode("ascii", "replace")


def _devices(row: Row) -> int:
    """How many, once the rates are there; 0 before."""
    one = _number(row, "train/device/samples_per_sec")
    if not one > 0:
        return 0
    every = _number(row, "train/samples_per_sec")
    return round(every / one) if every > 0 else 1


def _number(row: Row, name: str) -> float:
    try:
        return float(row.get(name) or math.nan)
    except ValueError:
        return math.nan


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    for block in blocks:
        for line in block.splitlines():
            if len(line) <= LONGEST_LINE:
                yield line.decode("utf-8", "replace").replace("\0", "")


FORMAT = Format(
    name="lightning-csv",
    title="PyTorch Lightning's metrics.csv",
    framework="pytorch",
    sign=re.compile(
        rb"(?m)^(?=[^\n]{0,4000}\btrain/time\b)(?=[^\n]{0,4000}\btrain/samples\b)[^\n]{0,4000}\btrain/batches\b"
    ),
    step=re.compile(
        rb"lightning-csv: epoch=(?P<epoch>\d*) step=(?P<step>\d+) samples=(?P<samples>\d+) "
        rb"rate=(?P<rate>[\d.]+) seconds=(?P<seconds>[\d.]+) loss=(?P<loss>\S*)"
    ),
    rate=Rate("samples", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        Setting("world_size", re.compile(rb"lightning-csv: devices=(?P<value>\d+)"), convert=int, late=True),
    ),
    sign_once=True,
    rewrite=progress,
)
