"""WebDataset: plain tar files; a record is `KEY.cls`, the label as text, and `KEY.jpg`, the picture.

The key is the picture's name without its ending. WebDataset takes what follows the first dot as the ending,
so dots within a key are written as %2E.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from trainmark.base.wire import DamageError
from trainmark.data.files import mapped_file
from trainmark.data.records import (
    ImageRecord,
    RecordOffset,
    ScannedRecord,
    Sharded,
    ShardFile,
    ShardPlan,
)

BLOCK, TAPE = tarfile.BLOCKSIZE, tarfile.RECORDSIZE
ENDINGS = {"jpeg": "jpg", "tiff": "tif"}
PICTURES = ("jpg", "jpeg", "png", "gif", "webp", "bmp", "tif", "tiff", "ppm")


class WebDataset(Sharded):
    name = "webdataset"
    train_shards, val_shards = 147, 7
    patterns = ("*.tar",)
    largest = (1 << 32) - (1 << 20)

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"{split}-{number:06d}.tar"

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        for record in records:
            key = key_of(record.name)
            label = str(record.label).encode()
            ending = ENDINGS.get(record.kind, record.kind)
            before = b"".join(
                (
                    _header(f"{key}.cls", len(label)),
                    label.ljust(BLOCK, b"\0"),
                    _header(f"{key}.{ending}", len(record.data)),
                )
            )
            framed = b"".join((before, record.data, b"\0" * (-len(record.data) % BLOCK)))
            yield file.add(framed, len(before), len(record.data))
        end = file.position + 2 * BLOCK
        file.write(b"\0" * (end + -end % TAPE - file.position))

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data:
            key, members = "", list[tarfile.TarInfo]()
            end = 0
            for member in _members(path, len(data)):
                folder, slash, name = member.name.rpartition("/")
                this = folder + slash + name.partition(".")[0]
                if members and this != key:
                    yield _sample(data, key, members)
                    members = []
                key = this
                members.append(member)
                end = member.offset_data + member.size + -member.size % BLOCK
            if members:
                yield _sample(data, key, members)
            # tarfile takes a damaged header for the end; the end is two blocks of zeros and zeros after them.
            if len(data) - end < 2 * BLOCK or bytes(data[end:]).strip(b"\0"):
                raise DamageError(end, "neither a member nor the end of a tar file")


def key_of(name: str) -> str:
    folder, slash, file_name = name.rpartition("/")
    stem = file_name.rpartition(".")[0] or file_name
    return folder + slash + stem.replace("%", "%25").replace(".", "%2E")


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, 0, 0o444
    member.uname = member.gname = "bigdata"  # as WebDataset's own writer has it
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _members(path: Path, length: int) -> Iterator[tarfile.TarInfo]:
    try:
        with tarfile.open(path, "r:", errors="surrogateescape") as archive:
            for member in archive:
                if member.offset_data + member.size > length:
                    raise DamageError(member.offset, "the file ends within a member")
                archive.members = []  # type: ignore[attr-defined]  # or it remembers all of them
                if member.isreg():
                    yield member
    except (tarfile.TarError, ValueError, OverflowError) as error:
        if isinstance(error, DamageError):
            raise
        raise DamageError(0, f"no tar file ({error})") from error


def _sample(data: memoryview, key: str, members: list[tarfile.TarInfo]) -> ScannedRecord:
    begin, last = members[0].offset, members[-1]
    end = last.offset_data + last.size + -last.size % BLOCK
    endings = {member.name.rpartition("/")[2].partition(".")[2].lower(): member for member in members}
    picture = next((endings[ending] for ending in PICTURES if ending in endings), None)
    if picture is None:
        raise DamageError(begin, f"a sample without a picture ({key})")
    label = -1
    if "cls" in endings:
        text = bytes(data[endings["cls"].offset_data :][: endings["cls"].size])
        label = int(text) if text.strip().isdigit() else -1
    name = f"{unquote(key, errors='surrogateescape')}.{picture.name.rpartition('.')[2]}"
    return ScannedRecord(begin, end - begin, picture.offset_data, picture.size, label, name)


FORMAT = WebDataset()
