"""Records that belong to this machine rather than to a run: `HOME/KIND/NAME.json`, a list in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from trainmark.home import home
from trainmark.store.files import StoreError, read_json, write_json
from trainmark.typed_json import DecodeError, decode, encode

T = TypeVar("T")


@dataclass(frozen=True)
class LocalRecords(Generic[T]):
    """All records of one type; what cannot be read is as none, and is made again by whoever needs it."""

    folder: str
    record: type[T]

    def read(self, name: str) -> list[T]:
        try:
            return [decode(self.record, plain) for plain in read_json(self.path(name))]
        except (StoreError, DecodeError, TypeError):
            return []

    def replace(self, name: str, replaced: Callable[[T], bool], *records: T) -> None:
        """Write these in place of the ones that are `replaced`, or nothing in their place."""
        others = [record for record in self.read(name) if not replaced(record)]
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, [encode(record) for record in (*others, *records)])

    def path(self, name: str) -> Path:
        return home() / self.folder / f"{name}.json"
