"""TensorBoard's event files: scalars per step, one log folder per trial.

Two protocol buffer messages are all it takes (tensorflow/core/util/event.proto and summary.proto):
`Event` with wall_time = 1, step = 2, file_version = 3, summary = 5, and `Summary` with value = 1, whose
entries have tag = 1 and simple_value = 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainmark.base.wire import framed
from trainmark.inside.wire import FIXED32, FIXED64, VARINT, message, tag, varint
from trainmark.pages.export.source import ExportedRun, Measured, Skipped
from trainmark.pages.export.steps import StepRow


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    for trial in source.measured:
        place = folder / trial.name
        place.mkdir(parents=True)
        # TensorBoard takes for event files what has `tfevents` in its name.
        path = place / f"events.out.tfevents.{int(trial.steps.start)}.trainmark"
        path.write_bytes(b"".join(map(framed, events(trial))))
    return source.skipped


def events(trial: Measured) -> Iterator[bytes]:
    yield _event(trial.steps.start, message(3, b"brain.Event:2"))
    for row in trial.steps.rows:
        step = tag(2, VARINT) + varint(row.number)
        yield _event(row.wall, step, message(5, _summary(scalars(row))))


def scalars(row: StepRow) -> dict[str, float]:
    values = {
        "throughput": row.rate,
        "step_seconds": row.seconds,
        "loss": row.loss,
        "lr": row.lr,
        "memory_bytes": row.memory,
    }
    return {name: value for name, value in values.items() if value is not None}


def _event(wall: float, *fields: bytes) -> bytes:
    return tag(1, FIXED64) + struct.pack("<d", wall) + b"".join(fields)


def _summary(values: dict[str, float]) -> bytes:
    return b"".join(
        message(1, message(1, name.encode()) + tag(2, FIXED32) + _float32(value))
        for name, value in values.items()
    )


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
