"""TensorBoard's event files: scalars per step, one log folder per trial.

Two protocol buffer messages are all it takes (tensorflow/core/util/event.proto and summary.proto):
`Event` with wall_time = 1, step = 2, file_version = 3, summary = 5, and `Summary` with value = 1, whose
entries have tag = 1 and simple_value = 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainmark.export.source import Measured, Skipped, Source
from trainmark.export.steps import StepRow
from trainmark.export.tfrecord import record

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def write(source: Source, folder: Path) -> Sequence[Skipped]:
    for trial in source.measured:
        place = folder / trial.name
        place.mkdir(parents=True)
        # TensorBoard takes for event files what has `tfevents` in its name.
        path = place / f"events.out.tfevents.{int(trial.steps.start)}.trainmark"
        path.write_bytes(b"".join(record(event) for event in events(trial)))
    return source.skipped


def events(trial: Measured) -> Iterator[bytes]:
    yield _event(trial.steps.start, _text(3, "brain.Event:2"))
    for row in trial.steps.rows:
        yield _event(row.wall, _varint_field(2, row.number), _bytes(5, _summary(scalars(row))))


def scalars(row: StepRow) -> dict[str, float]:
    told = {
        "throughput": row.rate,
        "step_seconds": row.seconds,
        "loss": row.loss,
        "lr": row.lr,
        "memory_bytes": row.memory,
    }
    return {name: value for name, value in told.items() if value is not None}


def _event(wall: float, *fields: bytes) -> bytes:
    return _tag(1, FIXED64) + struct.pack("<d", wall) + b"".join(fields)


def _summary(values: dict[str, float]) -> bytes:
    return b"".join(
        _bytes(1, _text(1, name) + _tag(2, FIXED32) + _float32(value)) for name, value in values.items()
    )


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Seven bits a byte, low ones first; a negative number in two's complement of 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _varint_field(field: int, value: int) -> bytes:
    return _tag(field, VARINT) + _varint(value)


def _bytes(field: int, data: bytes) -> bytes:
    return _tag(field, BYTES) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())
