"""MindRecord: a page of JSON, pages of pictures, pages of their other fields; an SQLite file has the places.

Written without MindSpore: its FileWriter needs an interpreter of its own, and keeps in memory what it gets.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.datasets.mapped import mapped
from trainmark.datasets.records.format import Record, ScannedRecord, Shard, Sharded
from trainmark.datasets.records.mindpages import (
    FIELDS,
    HEADER,
    LENGTH,
    PAGE,
    PICTURES,
    packed,
    page_entry,
    rows,
)
from trainmark.datasets.records.shard_file import RecordOffset, ShardFile

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

    def write(self, file: ShardFile, records: Iterable[Record], shard: Shard) -> Iterator[RecordOffset]:
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

    def _header(self, shard: Shard, pages: list[dict[str, Any]], page_size: int) -> dict[str, Any]:
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
        with mapped(part) as data, contextlib.closing(sqlite3.connect(database)) as connection:
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
        with mapped(path) as data:
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
