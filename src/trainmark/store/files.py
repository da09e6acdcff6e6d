"""JSON files read back only as they were written, and records of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.base.files import home, read_regular, write_text
from trainmark.base.typed_json import DecodeError, decode, encode

# Of a trial with ten thousand ranks, some megabytes.
LARGEST_JSON_BYTES = 256 << 20

T = TypeVar("T")


class StoreError(UserError):
    """One sentence: which run or file, what is wrong with it, what to do."""


@dataclass(frozen=True)
class Damage:
    """A stored file that cannot be used, why, and what was done instead; `recovered` if nothing is lost."""

    path: str
    reason: str
    instead: str = "it was left out"
    recovered: bool = False

    @property
    def sentence(self) -> str:
        return f"{self.path} is damaged ({self.reason}); {self.instead}."


def json_text(plain: Any) -> str:
    """Return what the files of a run hold."""
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def write_json(path: Path, plain: Any) -> None:
    write_text(path, json_text(plain))


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_regular(path, LARGEST_JSON_BYTES))
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing.") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: {error}.") from error


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object, whatever it holds."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise StoreError(f"{path} is damaged: it holds no object.")
    return content


def reason_of(error: Exception, path: Path) -> str:
    """Return what is wrong with a file without its path, for a sentence that names it otherwise."""
    return str(error).removeprefix(f"{path} ").removeprefix("is damaged: ").rstrip(".")


def decoded(kind: type[T], plain: Any, path: Path, **given: Any) -> T:
    """Return the dataclass that was written to `path`, with fields from elsewhere that are `given`."""
    try:
        return typed_json.decode(kind, plain, **given)
    except typed_json.DecodeError as error:
        raise StoreError(f"{path} is damaged: {error}.") from error


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
