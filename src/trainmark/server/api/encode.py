"""JSON of the API: what the database stores as JSON is sent as it is, not decoded and encoded again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any


class Encoded(str):
    """Text that is JSON already."""

    __slots__ = ()


# Rows are plain dataclasses; json takes them apart faster than we do.
_ENCODER = json.JSONEncoder(default=vars, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: Any) -> str:
    return value if isinstance(value, Encoded) else _ENCODER.encode(value)


def encoded_rows(kind: type[Any], rows: Iterable[Sequence[Any]], stored: int) -> Encoded:
    """Return rows as a list of objects of a dataclass; the last `stored` values of each are JSON already."""
    return Encoded(f"[{','.join(_objects([field.name for field in fields(kind)], rows, stored))}]")


def _objects(names: Sequence[str], rows: Iterable[Sequence[Any]], stored: int) -> Iterator[str]:
    plain, prefixes = names[:-stored], [f',"{name}":' for name in names[-stored:]]
    for row in rows:
        start = _ENCODER.encode(dict(zip(plain, row[:-stored], strict=True)))
        parts = (prefix + text for prefix, text in zip(prefixes, row[-stored:], strict=True))
        yield f"{start[:-1]}{''.join(parts)}}}"
