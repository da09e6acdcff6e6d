"""BERT's pre-training records as Google's and NVIDIA's trainings read them: TFRecords of Examples.

`input_ids`, `input_mask` and `segment_ids` have one number a token; `masked_lm_positions`, `masked_lm_ids`
and `masked_lm_weights` one a prediction, of weight 0 where there is none; `next_sentence_labels` one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.base.wire import DamageError, framed, frames
from trainmark.data.files import mapped_file, whole_file
from trainmark.data.records import KEY, MAP_ENTRY, VALUE, features
from trainmark.inside.wire import message, placed_fields, varint
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import mlm

NAME = "tfrecord"
FEATURES, FLOAT_LIST, INT64_LIST = 1, 2, 3
WEIGHTS = "masked_lm_weights"
KEYS = (
    "input_ids",
    "input_mask",
    "masked_lm_ids",
    "masked_lm_positions",
    WEIGHTS,
    "next_sentence_labels",
    "segment_ids",
)

Array = npt.NDArray[Any]


def holds(root: Path) -> bool:
    """Whether a folder has TFRecords whose first record has `input_ids`."""
    files = _files(root)
    if not files:
        return False
    try:
        with mapped_file(files[0]) as data:
            first = next(frames(data), None)
            return first is not None and "input_ids" in decode(data, *first)
    except (DamageError, OSError, UserError):
        return False


def files_of(root: Path, split: str) -> list[Path]:
    return [root / name for name in dataset.of_split([path.name for path in _files(root)], split)]


def _files(root: Path) -> list[Path]:
    names = dataset.names_in(str(root)) if root.is_dir() else []
    paths = [root / name for name in names if "tfrecord" in name and not name.endswith(".idx")]
    return [path for path in paths if path.is_file()]


def count(path: Path) -> int:
    try:
        with mapped_file(path) as data:
            return sum(1 for _ in frames(data))
    except DamageError as error:
        raise UserError(f"{path}: {error}.") from error


def read(files: list[Path], rows: int) -> Iterator[Array]:
    """Yield arrays of at most so many MLM records; UserError where one is none."""
    dtype = None
    pending: list[tuple[Any, ...]] = []
    for path in files:
        try:
            with mapped_file(path) as data:
                for at, begin, end in frames(data):
                    row = _row(decode(data, at, begin, end), at)
                    if dtype is None:
                        dtype = mlm.record(len(row[0]), len(row[3]), 1 << 32)
                    if (len(row[0]), len(row[3])) != (dtype["tokens"].shape[0], dtype["labels"].shape[0]):
                        raise DamageError(at, "a record of another length than the first")
                    pending.append(row)
                    if len(pending) == rows:
                        yield _array(pending, dtype)
                        pending = []
        except DamageError as error:
            raise UserError(f"{path}: {error}.") from error
    if pending:
        yield _array(pending, dtype)


def _array(rows: list[tuple[Any, ...]], dtype: Any) -> Array:
    """Return the rows as one structured array, filled column by column, which is quicker than row by row."""
    array = np.zeros(len(rows), dtype)
    for name, column in zip(mlm.FIELDS, zip(*rows, strict=True), strict=True):
        array[name] = np.stack(column)
    return array


def decode(data: memoryview, at: int, begin: int, end: int) -> dict[str, Array]:
    """Return the lists of numbers of one Example by their names."""
    try:
        return {
            name: _numbers(data, *place)
            for field, _, first, last in placed_fields(data, begin, end)
            if field == FEATURES
            for name, *place in features(data, first, last)
        }
    except (ValueError, IndexError) as error:
        raise DamageError(at, "a record that is no Example") from error


def _numbers(data: memoryview, begin: int, end: int) -> Array:
    parts: list[Array] = []
    for kind, _, first, last in placed_fields(data, begin, end):
        contents = [bytes(data[low:high]) for _, _, low, high in placed_fields(data, first, last)]
        if kind == INT64_LIST:
            parts.append(_varints(b"".join(contents)))
        elif kind == FLOAT_LIST:
            parts.append(np.frombuffer(b"".join(contents), "<f4"))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _varints(content: bytes) -> Array:
    """Return the numbers of a packed list; those of one item each are packed by being joined."""
    data = np.frombuffer(content, np.uint8)
    if content.isascii():  # masks, segments and positions: a byte each
        return data.astype(np.int64)
    ends = np.flatnonzero(data < 0x80)
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        raise ValueError("a number without an end")
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64) if len(ends) else ends
    sizes = ends - starts + 1
    values = np.zeros(len(ends), np.uint64)
    for place in range(int(sizes.max(initial=0))):
        there = sizes > place
        digit = (data[starts[there] + place] & 0x7F).astype(np.uint64)
        values[there] |= digit << np.uint64(7 * place)
    return values.view(np.int64)


def _row(lists: dict[str, Array], at: int) -> tuple[Any, ...]:
    missing = [key for key in KEYS if key not in lists]
    if missing:
        raise DamageError(at, f"a record without {missing[0]}")
    tokens, mask, segments = (lists[key] for key in ("input_ids", "input_mask", "segment_ids"))
    positions, labels, weights = (lists[key] for key in ("masked_lm_positions", "masked_lm_ids", WEIGHTS))
    length = int(mask.sum())
    if not len(tokens) == len(mask) == len(segments) or not len(positions) == len(labels) == len(weights):
        raise DamageError(at, "a record whose lists differ in length")
    if not 0 < length <= len(tokens) or not mask[:length].all() or len(lists["next_sentence_labels"]) != 1:
        raise DamageError(at, "a record whose input_mask is no run of ones, or without one label")
    used = weights != 0
    if (
        min(int(tokens.min()), int(labels.min(initial=0)), int(positions.min(initial=0))) < 0
        or (positions[used] >= length).any()
    ):
        raise DamageError(at, "a record with an id or a position out of range")
    return (
        tokens,
        segments,
        length,
        np.where(used, positions, 0),
        np.where(used, labels, -1),
        int(lists["next_sentence_labels"][0]),
    )


def write(path: Path, pieces: Iterable[Array]) -> None:
    with whole_file(path) as file:
        for rows in pieces:
            for row in rows:
                file.write(framed(encode(row)))


def encode(row: Any) -> bytes:
    """Return the Example of one MLM record, its keys in sorted order."""
    length = int(row["lengths"])
    used = row["labels"] >= 0
    lists: dict[str, Array] = {
        "input_ids": row["tokens"],
        "input_mask": (np.arange(len(row["tokens"])) < length).astype(np.int64),
        "masked_lm_ids": np.where(used, row["labels"], 0),
        "masked_lm_positions": np.where(used, row["positions"], 0),
        "next_sentence_labels": np.array([row["next_sentence"]]),
        "segment_ids": row["segments"],
    }
    entries = []
    for key in KEYS:
        if key == WEIGHTS:
            feature = message(FLOAT_LIST, message(1, used.astype("<f4").tobytes()))
        else:
            feature = message(INT64_LIST, message(1, b"".join(map(_varint, lists[key].tolist()))))
        entries.append(message(MAP_ENTRY, message(KEY, key.encode()) + message(VALUE, feature)))
    return message(FEATURES, b"".join(entries))


# Ids come again and again.
_varint = lru_cache(1 << 16)(varint)
