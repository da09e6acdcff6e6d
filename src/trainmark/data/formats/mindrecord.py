"""MindRecord: pages of JSON, of pictures and of their other fields; an SQLite file has the places."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

HEADER, PAGE = 16 << 20, 32 << 20
LENGTH = struct.Struct("<Q")
PICTURES, FIELDS = "BLOB_DATA", "RAW_DATA"
FILE_NAME, LABEL = "file_name", "label"


@dataclass(frozen=True)
class PageRow:
    """One record: its row group, which is its page of pictures, and where its two parts lie in their pages.

    `base` is where the page of pictures begins in the file.
    """

    number: int
    fields_page: int
    fields_begin: int
    fields_end: int
    group: int
    base: int
    begin: int
    end: int
    name: str
    label: int

    def places(self) -> tuple[int | str, ...]:
        """As the SQLite file has them; a row group has the number of its page."""
        fields = self.fields_page, self.fields_begin, self.fields_end
        return self.number, *fields, self.group, self.group, self.begin, self.end, self.name, self.label


def packed(name: str, label: int) -> bytes:
    """The fields but the picture, in MessagePack, behind their length."""
    content = b"".join((b"\x82", _text(FILE_NAME), _text(name), _text(LABEL), _number(label)))
    return LENGTH.pack(len(content)) + content


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) < 32:
        return bytes((0xA0 | len(raw),)) + raw
    if len(raw) < 256:
        return bytes((0xD9, len(raw))) + raw
    return b"\xda" + struct.pack(">H", len(raw)) + raw


def _number(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    if value < 1 << 8:
        return b"\xcc" + bytes((value,))
    return b"\xcd" + struct.pack(">H", value) if value < 1 << 16 else b"\xce" + struct.pack(">I", value)


def page_entry(
    kind: str, page: int, number: int, size: int, shard: int, rows: range, groups: list[dict[str, int]]
) -> dict[str, Any]:
    """A page as the header lists it; `number` counts the pages of its kind."""
    return {
        "end_row_id": rows.stop,
        "page_id": page,
        "page_size": size,
        "page_type": kind,
        "page_type_id": number,
        "row_group_ids": groups,
        "shard_id": shard,
        "start_row_id": rows.start,
    }


def rows(data: memoryview) -> Iterator[PageRow]:
    """The records of a file that has one row group a page, which is what we write."""
    try:
        (length,) = LENGTH.unpack_from(data, 0)
        header = json.loads(bytes(data[LENGTH.size : LENGTH.size + length]))
        page_size, header_size = int(header["page_size"]), int(header["header_size"])
        pages = {
            kind: [page for page in header["page"] if page["page_type"] == kind]
            for kind in (PICTURES, FIELDS)
        }
        groups = {
            int(group["id"]): (int(page["page_id"]), int(group["offset"]))
            for page in pages[FIELDS]
            for group in page["row_group_ids"]
        }
        for group, page in enumerate(pages[PICTURES]):
            base = begin = header_size + int(page["page_id"]) * page_size
            fields_page, at = groups[group]
            fields_base = header_size + fields_page * page_size
            for number in range(page["start_row_id"], page["end_row_id"]):
                name, label, behind = _unpacked(data, fields_base + at)
                (size,) = LENGTH.unpack_from(data, begin)
                end = begin + LENGTH.size + size
                if end > len(data):
                    raise DamageError(begin, f"the file ends within record {number}")
                fields = fields_page, at, behind - fields_base
                yield PageRow(number, *fields, group, base, begin - base, end - base, name, label)
                begin, at = end, behind - fields_base
    except DamageError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, struct.error, RecursionError) as error:
        raise DamageError(
            0, f"no MindRecord file as we write it ({type(error).__name__}: {error})"
        ) from error


def _unpacked(data: memoryview, at: int) -> tuple[str, int, int]:
    (length,) = LENGTH.unpack_from(data, at)
    at += LENGTH.size
    content = bytes(data[at : at + length])
    if len(content) < length or content[:1] != b"\x82":
        raise DamageError(at, "a record without its two fields")
    _, place = _read_text(content, 1)
    name, place = _read_text(content, place)
    _, place = _read_text(content, place)
    size, start = {0xCC: (1, 1), 0xCD: (2, 1), 0xCE: (4, 1)}.get(content[place], (1, 0))
    label = int.from_bytes(content[place + start : place + start + size], "big")
    return name, label, at + length


def _read_text(content: bytes, at: int) -> tuple[str, int]:
    first = content[at]
    if first == 0xD9:
        length, at = content[at + 1], at + 2
    elif first == 0xDA:
        length, at = int.from_bytes(content[at + 1 : at + 3], "big"), at + 3
    else:
        length, at = first & 0x1F, at + 1
    return content[at : at + length].decode("utf-8", "surrogateescape"), at + length


SCHEMA = {"data": {"type": "bytes"}, "file_name": {"type": "string"}, "label": {"type": "int64"}}
INDEXES = (
    "ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, "
    "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
    "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL, INC_0 INT, file_name_0 TEXT, "
    "INC_1 INT, label_0 INTEGER, PRIMARY KEY(ROW_ID,INC_0,INC_1)"
)


@dataclass
class Page:
    """The pictures that share a page are a row group; their other fields wait for the end."""

    first: int
    size: int = 0
    fields: list[bytes] = field(default_factory=list)

    @property
    def rows(self) -> range:
        return range(self.first, self.first + len(self.fields))


class MindRecord(Sharded):
    name = "mindrecord"
    train_shards, val_shards = 128, 8
    patterns = ("*.mindrecord", "*.mindrecord[0-9]", "*.mindrecord[0-9]*[0-9]")
    largest = (256 << 20) - LENGTH.size

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"{split}.mindrecord" + ("" if total == 1 else f"{number:0{len(str(total - 1))}d}")

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        page_size = max(PAGE, 1 << (shard.largest + LENGTH.size - 1).bit_length())
        file.skip_to(HEADER)
        pages = [Page(0)]
        for record in records:
            picture = LENGTH.pack(len(record.data)) + record.data
            if pages[-1].size + len(picture) > page_size:
                file.skip_to(HEADER + len(pages) * page_size)
                pages.append(Page(pages[-1].rows.stop))
            pages[-1].size += len(picture)
            pages[-1].fields.append(packed(record.name, record.label))
            yield file.add(picture, LENGTH.size, len(record.data))
        listed = [
            page_entry(PICTURES, number, number, page.size, shard.number, page.rows, [{"id": 0, "offset": 0}])
            for number, page in enumerate(pages)
        ]
        listed += _write_fields(file, pages, page_size, shard.number)
        text = json.dumps(self._header(shard, listed, page_size), separators=(",", ":")).encode()
        file.rewrite(0, LENGTH.pack(len(text)) + text)

    def _header(self, shard: ShardPlan, pages: list[dict[str, Any]], page_size: int) -> dict[str, Any]:
        return {
            "header_size": HEADER,
            "index_fields": [{"index_field": name, "schema_id": 0} for name in ("file_name", "label")],
            "page": pages,
            "page_size": page_size,
            "compression_size": 0,
            "schema": [{"blob_fields": ["data"], "desc": "images", "schema": SCHEMA}],
            "shard_addresses": [self.shard_name(shard.split, n, shard.total) for n in range(shard.total)],
            "shard_id": shard.number,
            "statistics": None,
            "version": "3.0",
        }

    def finish(self, shard_name: str, part: Path) -> dict[str, Path]:
        """The SQLite file, without which MindSpore does not open the shard."""
        database = part.with_name(f"{part.name}.db")
        database.unlink(missing_ok=True)
        with mapped_file(part) as data, contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute(f"CREATE TABLE INDEXES({INDEXES})")
            connection.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            connection.execute("INSERT INTO SHARD_NAME VALUES(?)", (shard_name,))
            connection.executemany(
                "INSERT INTO INDEXES VALUES(?,?,?,?,?,?,?,?,0,?,0,?)",
                (row.places() for row in rows(data)),
            )
            connection.commit()
        return {f"{shard_name}.db": database}

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data:
            for row in rows(data):
                begin, length = row.base + row.begin, row.end - row.begin
                yield ScannedRecord(
                    begin, length, begin + LENGTH.size, length - LENGTH.size, row.label, row.name
                )


def _write_fields(file: ShardFile, pages: list[Page], page_size: int, shard: int) -> list[dict[str, Any]]:
    """Behind the pictures; a row group does not cross a page here either."""
    sizes, groups = list[int](), list[list[dict[str, int]]]()
    for number, page in enumerate(pages):
        content = b"".join(page.fields)
        if not sizes or sizes[-1] + len(content) > page_size:
            file.skip_to(HEADER + (len(pages) + len(sizes)) * page_size)
            sizes.append(0)
            groups.append([])
        groups[-1].append({"id": number, "offset": sizes[-1]})
        sizes[-1] += len(content)
        file.write(content)
    return [
        page_entry(FIELDS, len(pages) + number, number, size, shard, range(0), groups[number])
        for number, size in enumerate(sizes)
    ]


FORMAT = MindRecord()
