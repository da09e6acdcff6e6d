"""PyTorch Lightning's bars and rows of `metrics.csv` as lines of ours."""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping

# NeMo has a colon more; Rich draws `Epoch 0/9 ━━━━ 938/938 0:00:12 • 0:00:00 77.92it/s v_num: 0`.
BAR = re.compile(
    rb"Epoch (?P<epoch>\d+)(?:/\d+)?:?(?: :)? +"
    rb"(?:\d+%\|[^|\n]{0,600}\| (?P<step>[1-9]\d*)/\d+ \[[\d:]+<[^,\]\n]{0,40}, *"
    rb"|[^\x00-\x7f ]+[^\x00-\x7f ]* +(?P<rich_step>[1-9]\d*)/\d+ [\d:]+ \xe2\x80\xa2 [-\d:]+ )"
    rb"(?P<pace>\d{1,12}(?:\.\d{1,9})?)(?P<unit>it/s|s/it)(?P<figures>[^\]\n]{0,2000})"
)
LOSS = re.compile(rb"\b(?:train_)?loss(?:_step)?[=:] ?([\d.e+-]+|nan|inf)")


def last_states(blocks: Iterable[bytes]) -> Iterator[bytes]:
    pending = shown = b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal pending, shown
        bar = b"lightning: epoch=%b step=%b " % (match["epoch"], match["step"] or match["rich_step"])
        done = b"" if bar == shown else pending
        pending, shown = bar + _figures(match), bar
        return done

    for block in blocks:
        yield BAR.sub(rewritten, block)
    yield pending


def _figures(bar: re.Match[bytes]) -> bytes:
    pace = float(bar["pace"])
    seconds = pace if bar["unit"] == b"s/it" else 1 / pace if pace else float("nan")
    loss = LOSS.search(bar["figures"])
    return b"seconds=%.6f loss=%b\n" % (seconds, loss[1] if loss else b"")


LOSSES = ("train_loss", "loss", "train/loss", "train_loss_step")
LONGEST_LINE = 1 << 16  # below the length at which csv gives up on a field
CsvRow = Mapping[str, str]


def csv_progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """A line of ours for every row that has a time, with the rate since the one before."""
    rows = csv.DictReader(_csv_lines(blocks), restval="", quoting=csv.QUOTE_NONE)
    devices, loss = 0, ""
    earlier: CsvRow | None = None
    for row in rows:
        loss = next((row[name] for name in LOSSES if row.get(name)), loss)
        if not row.get("train/time"):
            continue
        if not devices and (devices := _csv_devices(row)):
            yield b"lightning-csv: devices=%d\n" % devices
        if earlier is not None:
            yield _csv_line(earlier, row, loss)
        earlier = row


def _csv_line(earlier: CsvRow, row: CsvRow, loss: str) -> bytes:
    seconds, steps, samples = (
        _csv_number(row, name) - _csv_number(earlier, name)
        for name in ("train/time", "step", "train/samples")
    )
    rate = samples / seconds if seconds > 0 else math.nan
    text = f"lightning-csv: epoch={row.get('epoch')} step={row.get('step')} samples={samples:.0f}"
    pace = seconds / steps if steps > 0 else math.nan
    return f"{text} rate={rate:.6f} seconds={pace:.9f} loss={loss}\n".encode("ascii", "replace")


def _csv_devices(row: CsvRow) -> int:
    """How many, once the rates are there; 0 before."""
    one = _csv_number(row, "train/device/samples_per_sec")
    if not one > 0:
        return 0
    every = _csv_number(row, "train/samples_per_sec")
    return round(every / one) if every > 0 else 1


def _csv_number(row: CsvRow, name: str) -> float:
    try:
        return float(row.get(name) or math.nan)
    except ValueError:
        return math.nan


def _csv_lines(blocks: Iterable[bytes]) -> Iterator[str]:
    for block in blocks:
        for line in block.splitlines():
            if len(line) <= LONGEST_LINE:
                yield line.decode("utf-8", "replace").replace("\0", "")
