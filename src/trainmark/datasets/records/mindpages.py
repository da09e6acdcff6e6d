"""The pages of a MindRecord file: a page holds the pictures of a row group, another their other fields."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmark.datasets.records.format import DamageError

HEADER, PAGE = 16 << 20, 32 << 20
LENGTH = struct.Struct("<Q")
PICTURES, FIELDS = "BLOB_DATA", "RAW_DATA"
FILE_NAME, LABEL = "file_name", "label"


@dataclass(frozen=True)
class Row:
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


def rows(data: memoryview) -> Iterator[Row]:
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
                yield Row(number, *fields, group, base, begin - base, end - base, name, label)
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
