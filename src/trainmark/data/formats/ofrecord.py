"""OFRecord: a length and a serialised OFRecord, in files `part-00000`; keys as OneFlow's readers want them.

The format has neither checksum nor index: only our index finds a flipped byte in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmark.base.wire import DamageError
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

HEAD = struct.Struct("<q")
INT32_LIST = 4


class OFRecord(Sharded):
    name = "ofrecord"
    train_shards, val_shards = 256, 256
    patterns = ("part-*",)

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"part-{number:05d}"

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        for record in records:
            synset, _, file_name = record.name.rpartition("/")
            values: dict[str, int | str] = {
                "class/label": record.label,
                "class/text": synset,
                "filename": file_name,
                "format": record.kind.upper(),
                "height": record.height,
                "width": record.width,
            }
            around = encode_example(values, "encoded", len(record.data), INT32_LIST)
            length = len(around.before) + len(record.data) + len(around.after)
            framed = b"".join((HEAD.pack(length), around.before, record.data, around.after))
            yield file.add(framed, HEAD.size + len(around.before), len(record.data))

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data:
            at = 0
            while at < len(data):
                if at + HEAD.size > len(data):
                    raise DamageError(at, "the file ends within a record's length")
                (length,) = HEAD.unpack_from(data, at)
                begin, end = at + HEAD.size, at + HEAD.size + length
                if length < 0 or end > len(data):
                    raise DamageError(at, "the file ends within a record")
                yield _record_at(data, at, begin, end)
                at = end


def _record_at(data: memoryview, at: int, begin: int, end: int) -> ScannedRecord:
    try:
        record = decode_example(data, begin, end, INT32_LIST)
        first, last = record.places["encoded"]
    except (ValueError, KeyError, IndexError) as error:
        raise DamageError(at, "a record that is no OFRecord with `encoded`") from error
    text, file_name = record.text(data, "class/text"), record.text(data, "filename")
    name = f"{text}/{file_name}" if text and "/" not in file_name else file_name
    return ScannedRecord(at, end - at, first, last - first, record.numbers.get("class/label", -1), name)


FORMAT = OFRecord()
