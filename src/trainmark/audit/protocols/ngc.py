"""What NVIDIA's own trainers conclude at the end of a log, and the clock's word on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainmark.audit.protocols.protocol import (
    DATE_TIME,
    BatchWindow,
    ProtocolDoubt,
    Reading,
    files_in,
    lines_of,
    number_in_name,
    seconds_between,
)

# Later versions print `compute_ips`, which leaves out the time of data, before it.
PYTORCH = re.compile(r"Summary:.*?train\.(total_ips|compute_ips(?!.*train\.total_ips)) : (\d+(?:\.\d+)?) ")
TENSORFLOW = re.compile(r"- (?:\(\)| ) ?(train_throughput|throughput_train) : (\d+(?:\.\d+)?)")
PYTORCH_STEP = re.compile(rf"({DATE_TIME}) - Epoch: 0 Iteration: (\d{{1,12}})  train\.loss")
TENSORFLOW_STEP = re.compile(rf"({DATE_TIME}) - \(0, (\d{{1,12}})\) total_ips")
MXNET_HEAD = re.compile(r"^train\.total_ips\s*$")
MXNET_ROW = re.compile(r"^\s*(\d+)\s*\|\s*(\d+(?:\.\d+)?)\s*\|")
MXNET_BATCH = re.compile(r"^\s*\|\s*(\d+)\s*\|")
WARMUP_STEPS = 20
MEANINGFUL = 0.005

Conclusion = dict[str, Any]


def read_pytorch(folder: Path, window: BatchWindow) -> Reading:
    return _read(folder, lambda lines: _last(PYTORCH, lines, "train."), PYTORCH_STEP, "total_ips")


def read_tensorflow(folder: Path, window: BatchWindow) -> Reading:
    return _read(folder, lambda lines: _last(TENSORFLOW, lines, ""), TENSORFLOW_STEP, "train_throughput")


def read_mxnet(folder: Path, window: BatchWindow) -> Reading:
    return _read(folder, _mxnet_table, None, "")


def _last(pattern: re.Pattern[str], lines: list[str], prefix: str) -> Conclusion:
    return {prefix + match[1]: float(match[2]) for line in lines if (match := pattern.search(line))}


def _mxnet_table(lines: list[str]) -> Conclusion:
    """The rows (devices) under the last `train.total_ips`, in benchmark.py's table."""
    table: Conclusion = {}
    inside = False
    for line in lines:
        if MXNET_HEAD.match(line):
            inside, table = True, {}
        elif inside and (batch := MXNET_BATCH.match(line)):
            table["batch_size_per_device"] = int(batch[1])
        elif inside and (row := MXNET_ROW.match(line)):
            table[row[1]] = float(row[2])
        elif not line.strip():
            inside = False
    return table


def _read(
    folder: Path, conclude: Callable[[list[str]], Conclusion], step: re.Pattern[str] | None, rate: str
) -> Reading:
    table: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        lines = lines_of(path)
        table[path.stem] = conclusion = conclude(lines)
        if not conclusion:
            message = f"{path.name}: the log ends before the program's summary."
            doubts.append(ProtocolDoubt("no-summary", message))
        clock = step and wall_clock(path, lines, step)
        if clock:
            ours[path.stem] = {"median_speed": clock}
            doubts += _against_clock(path.name, conclusion, rate, clock)
    return Reading(table, doubts, ours)


def wall_clock(path: Path, lines: list[str], pattern: re.Pattern[str]) -> float | None:
    """Samples over time after the warm-up; None where the file's name does not tell devices and batch."""
    devices, batch = number_in_name(path, "devices"), number_in_name(path, "batch")
    steps = {int(match[2]): match[1] for line in lines if (match := pattern.search(line))}
    inside = sorted(step for step in steps if step >= WARMUP_STEPS)
    if not devices or not batch or len(inside) < 2:
        return None
    seconds = seconds_between(steps[inside[0]], steps[inside[-1]])
    if seconds is None or seconds <= 0:
        return None
    return round(devices * batch * (inside[-1] - inside[0]) / seconds, 2)


def _against_clock(name: str, conclusion: Conclusion, rate: str, clock: float) -> Iterator[ProtocolDoubt]:
    value = conclusion.get(rate) or conclusion.get(f"train.{rate}")
    if value and abs(value / clock - 1) > MEANINGFUL:
        message = (
            f"{name}: the program concludes {value:.2f}, {100 * (value / clock - 1):+.1f} % against samples "
            f"over time after {WARMUP_STEPS} steps; ours is {clock}."
        )
        yield ProtocolDoubt("summary-off-the-clock", message)
