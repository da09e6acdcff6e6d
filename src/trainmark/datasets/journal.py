"""What is done of a set in the making, kept beside it, so that it can go on where it was stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.datasets.files import is_part, write_whole
from trainmark.datasets.index import DATASET, read_dataset

FOLDER = ".unfinished"
PLAN = "plan.json"


@dataclass(frozen=True)
class Entry:
    """One image file: its name within the split (CLASS/NAME.JPEG) and what its bytes add up to."""

    name: str
    size: int
    crc: int
    sha256: str

    def line(self) -> str:
        return f"{self.sha256} {self.crc} {self.size} {self.name}"

    @classmethod
    def of(cls, line: str) -> Entry:
        sha256, crc, size, name = line.split(" ", 3)
        return cls(name, int(size), int(crc), sha256)


@dataclass(frozen=True)
class Chunk:
    """What one task wrote, and one sentence for each thing it met that a person should know."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


class Journal:
    """`ROOT/.unfinished/`: the plan, and a file for each chunk that is done."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / FOLDER

    def open(self, plan: Mapping[str, Any]) -> bool:
        """Begins the set, or goes on with it; False where it is there already, whole, from the same plan."""
        if (self.root / DATASET).exists():
            _same(self.root, plan, read_dataset(self.root).about)
            self._remove()
            return False
        if (self.folder / PLAN).exists():
            _same(self.root, plan, _read(self.folder / PLAN))
            _sweep(self.root)
            return True
        if self.root.exists() and (not self.root.is_dir() or any(self.root.iterdir())):
            raise UserError(
                f"{self.root} exists and is no unfinished set; choose a folder that is new or empty."
            )
        self.folder.mkdir(parents=True)
        write_whole(self.folder / PLAN, (json.dumps(dict(plan), indent=1) + "\n").encode())
        return True

    def keep(self, chunk: str, done: Chunk) -> None:
        lines = [*(entry.line() for entry in done.entries), *(f"! {note}" for note in done.notes)]
        write_whole(
            self.folder / chunk, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        )

    def has(self, chunk: str) -> bool:
        return (self.folder / chunk).exists()

    def read(self, chunk: str) -> Chunk:
        text = (self.folder / chunk).read_bytes().decode("utf-8", "surrogateescape")
        lines = text.split("\n")[:-1]
        return Chunk(
            tuple(Entry.of(line) for line in lines if not line.startswith("! ")),
            tuple(line[2:] for line in lines if line.startswith("! ")),
        )

    def forget(self, chunks: Iterable[str]) -> None:
        for chunk in chunks:
            (self.folder / chunk).unlink(missing_ok=True)

    def close(self) -> None:
        """Called when dataset.json is there."""
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _same(root: Path, plan: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    for name, wanted in plan.items():
        if before.get(name) != wanted:
            raise UserError(
                f"{root} was begun with {name} = {before.get(name)}, not {wanted}; "
                "give the same arguments again, or choose another folder."
            )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
        return dict(value)
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove {path.parents[1]} and begin again.") from error


def _sweep(root: Path) -> None:
    """Half-written files of a process that was killed."""
    for path in root.rglob(".*"):
        if is_part(path.name):
            path.unlink(missing_ok=True)
