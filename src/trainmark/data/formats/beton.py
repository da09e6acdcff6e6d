"""FFCV's .beton: a header, a table with a row a sample, pages that hold the pictures, a table of allocations.

The pictures are stored as they are (FFCV's mode `jpg`); the fields are `image` and `label`. No picture
crosses a page, so a page is as large as the largest picture needs, and no smaller than FFCV's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from trainmark.base.wire import DamageError
from trainmark.data.files import mapped_file
from trainmark.data.picture import CMYK, NOT_JPEG
from trainmark.data.records import (
    ImageRecord,
    RecordOffset,
    ScannedRecord,
    Sharded,
    ShardFile,
    ShardPlan,
)

VERSION = 2
PAGE = 8 << 20
AS_JPEG = 0
INT, IMAGE = 1, 2
HEADER = np.dtype(
    [("version", "<u2"), ("fields", "<u2"), ("page", "<u4"), ("samples", "<u8"), ("allocations", "<u8")]
)
FIELD = np.dtype([("type", "u1"), ("name", "S16"), ("arguments", "V1024")])
PICTURE = np.dtype([("mode", "u1"), ("width", "<u2"), ("height", "<u2"), ("pointer", "<u8")])
SAMPLE = np.dtype([("image", PICTURE), ("label", "<i8")], align=True)
ALLOCATION = np.dtype([("sample", "<u8"), ("pointer", "<u8"), ("size", "<u8")])


class Beton(Sharded):
    name = "beton"
    train_shards, val_shards = 1, 1
    patterns = ("*.beton",)
    unfit = frozenset({CMYK, NOT_JPEG})  # FFCV decodes all of them as JPEGs in RGB
    largest = 1 << 31

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"{split}.beton" if total == 1 else f"{split}-{number:05d}-of-{total:05d}.beton"

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        page = max(PAGE, 1 << (shard.largest - 1).bit_length())
        samples = np.zeros(shard.records, SAMPLE)
        allocations = np.zeros(shard.records, ALLOCATION)
        table = HEADER.itemsize + 2 * FIELD.itemsize
        end_of_page = _aligned(table + samples.nbytes, page)
        file.skip_to(end_of_page)
        count = 0
        for record in records:
            if file.position + len(record.data) > end_of_page:
                file.skip_to(end_of_page)
                end_of_page += page
            samples[count] = ((AS_JPEG, record.width, record.height, file.position), record.label)
            allocations[count] = (count, file.position, len(record.data))
            count += 1
            yield file.add(record.data, 0, len(record.data))
        file.skip_to(end_of_page)
        header = np.array([(VERSION, 2, page, count, file.position)], HEADER)
        fields = np.array([(IMAGE, b"image", b""), (INT, b"label", b"")], FIELD)
        file.write(allocations[:count].tobytes())
        file.rewrite(0, header.tobytes() + fields.tobytes() + samples[:count].tobytes())

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data:
            samples, allocations = _tables(data)
            for number, (sample, allocation) in enumerate(zip(samples, allocations, strict=True)):
                pointer, size = int(allocation["pointer"]), int(allocation["size"])
                if allocation["sample"] != number or sample["image"]["pointer"] != pointer:
                    raise DamageError(pointer, f"sample {number} is not where its allocation is")
                if pointer + size > len(data):
                    raise DamageError(pointer, f"the file ends within sample {number}")
                yield ScannedRecord(pointer, size, pointer, size, int(sample["label"]), "")


def _tables(data: memoryview) -> tuple[np.ndarray, np.ndarray]:
    start = HEADER.itemsize + 2 * FIELD.itemsize
    if len(data) < start:
        raise DamageError(len(data), "the file ends within its header")
    (header,) = np.frombuffer(data, HEADER, 1)
    fields = np.frombuffer(data, FIELD, 2, HEADER.itemsize)
    if header["version"] != VERSION or header["fields"] != 2 or list(fields["type"]) != [IMAGE, INT]:
        raise DamageError(0, f"no .beton of version {VERSION} with an image and a number")
    count, at = int(header["samples"]), int(header["allocations"])
    if start + count * SAMPLE.itemsize > len(data) or at + count * ALLOCATION.itemsize != len(data):
        raise DamageError(len(data), "the tables do not fit the file")
    allocations = np.frombuffer(data, ALLOCATION, count, at)
    # FFCV with several workers lists the allocations as they finish.
    return np.frombuffer(data, SAMPLE, count, start), allocations[np.argsort(allocations["sample"])]


def _aligned(position: int, page: int) -> int:
    return position + -position % page


FORMAT = Beton()
