"""TFRecord: length and its checksum, a serialised Example, its checksum; keys as in TensorFlow's Inception.

Labels count from 1: 0 is the background there. Beside each shard lies the index that DALI wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmark.base.wire import CHECKSUM, HEAD, DamageError, framed, frames
from trainmark.data.files import mapped_file
from trainmark.data.records import (
    ImageRecord,
    RecordOffset,
    ScannedRecord,
    Sharded,
    ShardFile,
    ShardPlan,
    decode_example,
    encode_example,
)
from trainmark.inside.wire import message_head, placed_fields

FEATURES, INT64_LIST = 1, 3


class TFRecord(Sharded):
    name = "tfrecord"
    train_shards, val_shards = 1024, 128
    patterns = ("*tfrecord*", "*-?????-of-?????")

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"{split}-{number:05d}-of-{total:05d}"

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        for record in records:
            before, after = _example(record)
            example = b"".join((before, record.data, after))
            yield file.add(framed(example), HEAD.size + len(before), len(record.data))

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data:
            for at, begin, end in frames(data):
                yield _record_at(data, at, begin, end)

    def side_names(self, shard_name: str) -> tuple[str, ...]:
        return (f"{shard_name}.idx",)

    def side_lines(self, record: ImageRecord, place: RecordOffset) -> tuple[str, ...]:
        return (f"{place.begin} {place.length}\n",)


def _example(record: ImageRecord) -> tuple[bytes, bytes]:
    synset, _, file_name = record.name.rpartition("/")
    values: dict[str, int | str] = {
        "image/channels": record.channels,
        "image/class/label": record.label + 1,
        "image/class/synset": synset,
        "image/colorspace": "RGB",
        "image/filename": file_name,
        "image/format": record.kind.upper(),
        "image/height": record.height,
        "image/width": record.width,
    }
    features = encode_example(values, "image/encoded", len(record.data), INT64_LIST)
    length = len(features.before) + len(record.data) + len(features.after)
    return message_head(FEATURES, length) + features.before, features.after


def _record_at(data: memoryview, at: int, begin: int, end: int) -> ScannedRecord:
    try:
        (features,) = [
            (start, stop) for field, _, start, stop in placed_fields(data, begin, end) if field == FEATURES
        ]
        example = decode_example(data, *features, INT64_LIST)
        first, last = example.places["image/encoded"]
    except (ValueError, KeyError, IndexError) as error:
        raise DamageError(at, "a record that is no Example with image/encoded") from error
    synset = example.text(data, "image/class/synset") or example.text(data, "image/class/text")
    file_name = example.text(data, "image/filename")
    name = f"{synset}/{file_name}" if synset and "/" not in file_name else file_name
    label = example.numbers.get("image/class/label", 0) - 1
    return ScannedRecord(at, end + CHECKSUM.size - at, first, last - first, label, name)


FORMAT = TFRecord()
