"""A bisection on disk: what was asked, every answer so far, and a run folder for each comparison.

`bisection.json` is written once and `state.json` after every answer, each whole or not at all; trials are as
safe as those of any run. After `kill -9` at any moment the rest follows from these files.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.measure.bisection import BisectionStep, PairedMeasurement
from trainmark.runner.bisect.settings import SettingDifference
from trainmark.store.files import StoreError, decoded, read_object, write_json
from trainmark.store.run import taken
from trainmark.view.catalogue import messages_of, with_messages

ASKED, STATE, REPORT = "bisection.json", "state.json", "report.html"


@dataclass(frozen=True)
class BisectRequest:
    """What was asked for, with all that was looked up in advance: a resumed bisection looks up nothing.

    `names` are versions or whole commits from good to bad. The case is the one at `case` of the suite `text`.
    """

    kind: str
    good: str
    bad: str
    text: str
    case: int
    folder: str | None
    matters: float
    error: float
    most: int
    command: str
    version: str
    names: tuple[str, ...] = ()
    differences: tuple[SettingDifference, ...] = ()
    common: tuple[tuple[str, str], ...] = ()
    repository: str = ""
    prefix: str = ""
    setup: str | None = None
    python: str = ""
    beside: tuple[str, ...] = ()
    created: float = 0.0


@dataclass(frozen=True)
class BisectState:
    reference: PairedMeasurement | None = None
    steps: tuple[BisectionStep, ...] = ()
    confirmation: PairedMeasurement | None = None
    preparation: float = 0.0
    unit: str = "samples"


class BisectionFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._made_parent = False
        self.runs = path / "steps"
        self.subjects = path / "subjects"

    @classmethod
    def create(cls, path: Path, asked: BisectRequest) -> BisectionFolder:
        folder = cls(path)
        folder._made_parent = not path.parent.exists()
        try:
            path.mkdir(parents=True)
        except FileExistsError as error:
            raise taken(path, ASKED, f"exists; go on with it by --resume {path}", "--folder") from error
        write_json(path / ASKED, typed_json.encode(replace(asked, created=time.time())))
        return folder

    @contextlib.contextmanager
    def removed_if_unused(self) -> Iterator[None]:
        """Leave nothing of a bisection that was refused before its first trial."""
        try:
            yield
        except UserError:
            if not any(self.runs.glob("*/trials/*/*")):
                shutil.rmtree(self.path, ignore_errors=True)
                if self._made_parent:
                    with contextlib.suppress(OSError):  # another bisection was begun beside it meanwhile
                        self.path.parent.rmdir()
            raise

    @property
    def asked(self) -> BisectRequest:
        if not (self.path / ASKED).is_file():
            raise StoreError(f"there is no bisection in {self.path}.")
        return decoded(BisectRequest, read_object(self.path / ASKED), self.path / ASKED)

    @property
    def state(self) -> BisectState:
        path = self.path / STATE
        return (
            decoded(BisectState, with_messages(read_object(path)), path) if path.is_file() else BisectState()
        )

    def keep(self, state: BisectState) -> None:
        write_json(self.path / STATE, typed_json.encode(state) | {"messages": messages_of(state)})

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock goes with the process, however it ends."""
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreError(
                    f"{self.path} is being bisected by another trainmark; wait for it."
                ) from error
            yield
